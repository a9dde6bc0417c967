//! `kennel controller`: the DaemonSet controller alone, against any Kubernetes API.

use std::sync::Arc;

use anyhow::Context as _;
use clap::CommandFactory as _;
use clap::error::ErrorKind;
use kennel_agent::kubeconfig_certificate::KubeconfigCertificate;
use kennel_client::events::{Note, Recorder, Reference};
use kennel_client::fence::Fence;
use kennel_client::lease::{Elector, Leadership, Lease, Timing};
use kennel_client::metrics::{Observed, Page};
use kennel_client::write::Writer;
use kennel_control::daemonset::{self, Metrics, Settings};
use kennel_control::frame::{self, Setup};
use kennel_control::informers::Informers;
use kennel_core::certificates::expiry;
use kennel_standalone::supervisor::with_informers;
use kennel_types::Identity;
use kube::Client;
use tokio_util::sync::CancellationToken;

use crate::args::{Args, ControllerArgs, Placement};
use crate::cluster;
use crate::election_flags;
use crate::metrics_server::{self, Observable};
use crate::signals::run_until_signal;

/// Runs until SIGINT or SIGTERM.
pub(crate) async fn run(args: ControllerArgs) -> anyhow::Result<()> {
    let timing = args.election.timing().unwrap_or_else(|error| {
        let kind = ErrorKind::ValueValidation;
        Args::command().error(kind, error).exit()
    });
    run_until_signal(|stop| work(args, timing, stop)).await
}

async fn work(args: ControllerArgs, timing: Timing, stop: CancellationToken) -> anyhow::Result<()> {
    let config = cluster::config(args.kubeconfig.as_deref()).await?;
    let certificate = KubeconfigCertificate::of(&config);
    let client = cluster::client_of(config)?;
    let elects = args.election.leader_elect;
    let fence = if elects {
        Fence::closed()
    } else {
        tracing::info!("leader election is off: no other DaemonSet controller may run");
        Fence::open()
    };
    let identity = identity();
    let settings = Settings {
        placement: match args.placement {
            Placement::Scheduler => daemonset::Placement::Scheduler,
            Placement::Direct => daemonset::Placement::Direct,
        },
        foreign: daemonset::is_foreign(&client).await,
        metrics: Arc::default(),
        checks: args.checks.settings(),
        assist: args.assist,
        instance: identity.as_str().into(),
    };
    let setup = Setup::new(fence.clone(), stop.clone());
    let lease = Lease {
        name: args.election.lease_name(args.assist),
        namespace: args.election.leader_elect_resource_namespace,
        identity,
        timing,
    };
    tokio::spawn(warn(
        certificate,
        client.clone(),
        lease.clone(),
        stop.clone(),
    ));
    let source = MetricsSource {
        metrics: settings.metrics.clone(),
        rounds: setup.metrics.clone(),
        leadership: Leadership {
            fence: fence.clone(),
            name: lease.name.clone(),
        },
        certificate,
    };
    if let Some(address) = args.metrics_listen {
        let (address, serving) = metrics_server::listen(address, source).await?;
        tracing::info!("serving metrics at http://{address}/metrics");
        tokio::spawn(serving);
    }
    let term = || Box::pin(term(client.clone(), settings.clone(), setup.clone()));
    if !elects {
        return term().await;
    }
    let writer = Writer::new(client.clone(), Fence::open());
    let elector = Elector::new(lease, writer, fence);
    match elector.lead(&stop, term).await {
        Ok(ended) => ended.unwrap_or(Ok(())),
        Err(error) => {
            let advice = election_flags::advice(&error);
            Err(error.failure).context(advice)
        }
    }
}

/// What a controller without the right to watch Namespaces does not do.
const WITHOUT_NAMESPACES: &str = "rollout policies on Namespaces do not count, only those on DaemonSets; \
                                  grant the verbs list and watch on namespaces to the controller";

/// One term of leadership: runs the controller with informers of its own.
async fn term(client: Client, settings: Settings, setup: Setup) -> anyhow::Result<()> {
    let mut informers = Informers::new(&client);
    informers.namespaces = informers.namespaces.optional(WITHOUT_NAMESPACES);
    let stop = setup.stop.clone();
    let controller = daemonset::run(client, &mut informers, settings, setup);
    Ok(Box::pin(with_informers(controller, informers, stop)).await?)
}

/// Warns of the end of the kubeconfig's certificate: in the log, and by an event about the Lease, also of a standby replica.
async fn warn(
    certificate: KubeconfigCertificate,
    client: Client,
    lease: Lease,
    stop: CancellationToken,
) {
    let writer = Writer::new(client, Fence::open());
    let component = daemonset::COMPONENT;
    let (recorder, written) =
        Recorder::of_instance(writer, component, &lease.identity, stop.clone());
    let object = Identity::new(&lease.namespace, &lease.name, "");
    let about = Reference::new("coordination.k8s.io/v1", "Lease", &object);
    let record = |warning| {
        let note = Note::new(true, expiry::REASON, warning);
        recorder.emit(about.clone(), note);
    };
    let warn = async { tokio::join!(certificate.warn(record), written) };
    stop.run_until_cancelled(warn).await;
}

/// The holder identity in the lease: the host name, and a random suffix.
fn identity() -> String {
    let host = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    format!("{host}_{}", uuid::Uuid::new_v4())
}

struct MetricsSource {
    metrics: Arc<Metrics>,
    rounds: Arc<frame::Metrics>,
    leadership: Leadership,
    certificate: KubeconfigCertificate,
}

impl Observable for MetricsSource {
    fn metrics(&self) -> String {
        Page::of([
            &*self.metrics as &dyn Observed,
            &*self.rounds,
            &self.leadership,
            &self.certificate,
        ])
    }

    /// A standby replica is healthy.
    fn is_alive(&self) -> bool {
        !self.leadership.fence.is_open() || self.metrics.is_alive()
    }
}
