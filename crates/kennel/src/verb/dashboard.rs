//! `kennel dashboard`: the page about any cluster's DaemonSets, in a browser.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;

use clap::Args as ClapArgs;
use kennel_agent::flag_values::listen_address;
use kennel_agent::kubeconfig_certificate::KubeconfigCertificate;
use kennel_client::connection;
use kennel_dashboard::{Dashboard, Listen, Settings, TlsFiles};
use kube::config::Kubeconfig;
use tokio::sync::watch;

use crate::cluster;
use crate::inspect::print;
use crate::signals::run_until_signal;

#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct DashboardArgs {
    /// Kubeconfig of the cluster [default: $KUBECONFIG or ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig [default: the current one]
    #[arg(long, value_name = "CONTEXT")]
    context: Option<String>,

    /// Print the address and do not open a browser
    #[arg(long)]
    no_open: bool,

    /// Allow promote, pause, resume, abort, retry and undo, with the rights of the kubeconfig
    #[arg(long)]
    allow_changes: bool,

    /// Address to serve the page on; one that other machines reach needs --tls-cert
    /// [default: port 6480 of 127.0.0.1, or a free port if that is taken]
    #[arg(long, value_name = "ADDRESS", value_parser = listen_address)]
    listen: Option<SocketAddr>,

    /// Certificate in PEM, followed by those of its issuers; browsers must use a name that it has. Read again when it
    /// changes
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// Key of the certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
}

/// Serves until SIGINT or SIGTERM.
pub(crate) async fn run(args: DashboardArgs) -> anyhow::Result<()> {
    let kubeconfig = args.kubeconfig.as_deref();
    let config = cluster::config_with_context(kubeconfig, args.context.as_deref()).await?;
    let server = config.cluster_url.to_string();
    let server = server.trim_end_matches('/').to_owned();
    let certificate = KubeconfigCertificate::of(&config);
    let client = cluster::client_of(config)?;
    // Later the page says that the connection is lost; a wrong address is better known now.
    if let Err(error) = client.apiserver_version().await {
        anyhow::bail!("{}", connection::describe(&error));
    }
    let tls = args.tls_cert.clone().zip(args.tls_key.clone());
    let dashboard = Dashboard::bind(Settings {
        client,
        listen: args.listen.map_or(Listen::Loopback, Listen::At),
        tls: tls.map(|(certificate, key)| TlsFiles { certificate, key }),
        allow_changes: args.allow_changes,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        server: server.clone(),
        context: context(&args),
    });
    let dashboard = dashboard.await?;
    let mut address = dashboard.address();
    let first = address.borrow_and_update().clone();
    let mode = if args.allow_changes {
        "changes are allowed"
    } else {
        "read-only; --allow-changes allows changes"
    };
    print(&format!(
        "Dashboard of {server} ({mode}). Ctrl-C ends it.\nOpen it once:  {first}\n"
    ))?;
    if !args.no_open {
        open(&first);
    }
    run_until_signal(|stop| async move {
        tokio::spawn(
            stop.clone()
                .run_until_cancelled_owned(certificate.warn(drop)),
        );
        tokio::select! {
            () = dashboard.serve(stop) => Ok(()),
            failed = print_next(address) => failed,
        }
    })
    .await
}

/// Prints the next address each time that one was used. Fails if stdout cannot be written to.
async fn print_next(mut address: watch::Receiver<String>) -> anyhow::Result<()> {
    while address.changed().await.is_ok() {
        let next = address.borrow_and_update().clone();
        print(&format!("For another browser:  {next}\n"))?;
    }
    std::future::pending().await
}

/// The context in use, for people; none in a cluster's pod.
fn context(args: &DashboardArgs) -> Option<String> {
    let current = || {
        let kubeconfig = match &args.kubeconfig {
            Some(path) => Kubeconfig::read_from(path),
            None => Kubeconfig::read(),
        };
        kubeconfig.ok()?.current_context
    };
    args.context.clone().or_else(current)
}

/// Opens the user's browser, if there is a display. The address is printed whatever happens here.
fn open(address: &str) {
    let has_display = ["DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|variable| std::env::var_os(variable).is_some_and(|value| !value.is_empty()));
    if !has_display {
        return;
    }
    let browser = tokio::process::Command::new("xdg-open")
        .arg(address)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    match browser {
        // The runtime reaps it.
        Ok(browser) => drop(browser),
        Err(error) => tracing::debug!(%error, "cannot run xdg-open"),
    }
}
