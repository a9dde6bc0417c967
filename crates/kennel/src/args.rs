//! What can be said on the command line.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::{Args as ClapArgs, CommandFactory as _, FromArgMatches as _};
use clap::{Parser, Subcommand, ValueEnum};
use kennel_server::admit::service::Cidr;

use crate::bench::BenchArgs;
use crate::controllers::{self, Selection};
use crate::generate::{CompletionsArgs, GenerateArgs};
use crate::patience::LifecycleArgs;
use crate::playground::PlaygroundArgs;
use crate::token_args::TokenArgs;
use crate::why::WhyArgs;
use kennel_agent::args::{AgentArgs, NodeArgs, ScenarioArgs};
use kennel_server::audit;

/// One daemon on every node: the Kubernetes DaemonSet, whole and small.
#[derive(Debug, Parser)]
#[command(name = "kennel", version, about, max_term_width = 100)]
pub(crate) struct Args {
    /// What to log: error, warn, info, debug, or a filter such as `kennel::request=debug`
    #[arg(long, global = true, env = "KENNEL_LOG", value_name = "FILTER")]
    pub(crate) log: Option<String>,

    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// The name under which kubectl finds this program as a plug-in.
const PLUG_IN: &str = "kubectl-kennel";

impl Args {
    /// What was said. Under the name of a plug-in, help says how it is called as one.
    pub(crate) fn from_command_line() -> Self {
        let mut words = std::env::args_os();
        let called = words.next().map(PathBuf::from).unwrap_or_default();
        if called.file_name().is_none_or(|name| name != PLUG_IN) {
            return Self::parse();
        }
        let mut command = Self::command().bin_name("kubectl kennel");
        let matches = command.get_matches_mut();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.format(&mut command).exit())
    }
}

/// The verbs.
#[derive(Debug, Subcommand)]
#[expect(
    clippy::doc_markdown,
    reason = "it is help for terminals, where commands stand as one types them"
)]
pub(crate) enum Verb {
    /// Serve the Kubernetes API
    ///
    /// Makes a CA, certificates and an admin kubeconfig at first start; everything lives in the
    /// data directory. Try:
    ///
    ///   kennel server --data-dir ./kennel &
    ///   kubectl --kubeconfig ./kennel/admin.kubeconfig get namespaces
    #[command(verbatim_doc_comment)]
    Server(ServerArgs),

    /// Serve the API, run the controllers, and be a node, all in one process
    ///
    /// Without --nodes and --simulate, this machine is the cluster's one node, and what is applied
    /// really runs on it, in containers or as plain processes; it keeps running when kennel stops, and
    /// is taken up again. Simulated nodes run nothing and cost little. Try:
    ///
    ///   kennel up --simulate 3 --data-dir ./kennel &
    ///   kubectl --kubeconfig ./kennel/admin.kubeconfig apply -f daemonset.yaml
    ///   kubectl --kubeconfig ./kennel/admin.kubeconfig get daemonsets,pods -o wide
    #[command(verbatim_doc_comment)]
    Up(Box<UpArgs>),

    /// Run the DaemonSet controller against any Kubernetes API
    ///
    /// Takes the place of the DaemonSet controller in kube-controller-manager, which must be started
    /// with --controllers='*,-daemonset-controller' beside it. It speaks to the cluster of
    /// --kubeconfig, of $KUBECONFIG or ~/.kube/config, or of the pod that it runs in, whichever is
    /// found first. Try:
    ///
    ///   kennel controller --kubeconfig ./kennel/admin.kubeconfig --metrics-listen 127.0.0.1:8080
    #[command(verbatim_doc_comment)]
    Controller(ControllerArgs),

    /// Make this machine a node: run the pods that a cluster gives it
    ///
    /// On the server, `kennel token create` prints the line to run here:
    ///
    ///   kennel agent --server https://10.0.0.1:6443 --token abcdef.0123456789abcdef --ca-hash sha256:...
    ///
    /// From then on `kennel agent` alone is enough. Or give a kubeconfig of any Kubernetes API. Pods run
    /// in containers where a container runtime is found, else as plain processes. They keep running when
    /// the agent stops or crashes; the next one takes them up again. With --manifest-dir and no cluster,
    /// it runs static pods alone. See docs/guides/join.md.
    ///
    /// With --runtime=simulated it plays nodes that run nothing, any number of them, as the user of
    /// --kubeconfig, of $KUBECONFIG or ~/.kube/config:
    ///
    ///   kennel agent --runtime=simulated --count=100 --kubeconfig ./kennel/admin.kubeconfig
    #[command(verbatim_doc_comment)]
    Agent(Box<AgentArgs>),

    /// Make, list and delete the tokens that machines join with
    ///
    /// Try, where the server runs:
    ///
    ///   kennel token create --data-dir ./kennel
    #[command(verbatim_doc_comment)]
    Token(TokenArgs),

    /// Answer for the names of a cluster's services, and of the daemon on each node
    ///
    /// A DNS server over UDP and TCP that watches services and endpoint slices and answers
    ///
    ///   <service>.<namespace>.svc.<domain>            cluster IP, or all ready pods if headless
    ///   _<port>._<protocol>.<service>.<namespace>...  SRV, for named ports
    ///   <hostname>.<service>.<namespace>...           one pod
    ///   <node>.<service>.<namespace>...               the service's pods on one node
    ///
    /// and asks other resolvers for the rest. See docs/guides/names.md. Try:
    ///
    ///   kennel dns --kubeconfig ./kennel/admin.kubeconfig &
    ///   dig @127.0.0.1 -p 10053 sim-1.agent.default.svc.cluster.local
    #[command(verbatim_doc_comment)]
    Dns(DnsArgs),

    /// Say why a DaemonSet's pod runs on a node, or does not
    ///
    /// Asks the cluster of --kubeconfig, of $KUBECONFIG or ~/.kube/config, changes nothing, and judges
    /// every node by the DaemonSet controller's and the scheduler's own rules: where a pod runs; where
    /// one should and does not, with the first cause; where none belongs, with the label or toleration
    /// that would change that; and where one runs that should not. Ends with 0 if all is as it should
    /// be, with 1 if not, with 2 if it could not find out. Try:
    ///
    ///   kennel why ds/agent -n monitoring
    ///   kennel why ds/agent --node worker-7
    ///   kennel why ds/agent -o json | jq '.nodes[] | select(.verdict == "missing")'
    ///
    /// As a link named kubectl-kennel on the PATH it is also `kubectl kennel why ds/agent`. See
    /// docs/guides/find-out-why.md.
    #[command(verbatim_doc_comment)]
    Why(WhyArgs),

    /// Measure what a cluster takes for a DaemonSet on many nodes
    ///
    /// Brings simulated nodes to the cluster of --kubeconfig, whose pods are ready at once and gone at
    /// once, and times three steps: a DaemonSet is created until all its pods are available, its
    /// template is changed until all are replaced, and it is deleted until all are gone. Prints times,
    /// rates, how long pods took from created over bound to ready, and the processor time and peak
    /// memory of the processes given with --pid: those of the control plane, usually. With the same
    /// options, two systems get the same load. Everything goes into the namespace kennel-bench and
    /// onto nodes with the label kennel-bench=node, and is removed at the end, on Ctrl-C and after
    /// failures, too. Try:
    ///
    ///   kennel up --nodes 0 --data-dir ./kennel &
    ///   kennel bench --kubeconfig ./kennel/admin.kubeconfig --nodes 1000 --pid $!
    ///   kennel bench --kubeconfig ./kennel/admin.kubeconfig --nodes 1000 --idle 60 --pid $! -o json
    #[command(verbatim_doc_comment)]
    Bench(BenchArgs),

    /// Try Kennel on this machine: three nodes that run real processes, and a guided tour
    ///
    /// One process is the whole cluster: server, controllers and nodes. As root, each node has a network
    /// of its own, so that their host ports do not collide; the first one is tainted as a control plane.
    /// Nothing has to be installed but kubectl. The tour goes through the life of a DaemonSet step by
    /// step, and shows each command that it runs. When it ends, or on Ctrl-C, nothing is left behind:
    /// no process, no network, no file. What a `kill -9` leaves, the next start removes. Try:
    ///
    ///   kennel playground                  # the tour, then a cluster to play with
    ///   kennel playground --no-tour        # the cluster alone
    ///   kennel playground --auto           # the tour without stopping; then it ends
    ///   kennel playground --simulate 1000  # many nodes that run nothing
    #[command(verbatim_doc_comment)]
    Playground(PlaygroundArgs),

    /// Print what makes a shell complete kennel's words
    ///
    /// For bash, in this shell and in all that follow:
    ///
    ///   source <(kennel completions bash)
    ///   kennel completions bash > ~/.local/share/bash-completion/completions/kennel
    ///
    /// For zsh, into a directory of $fpath; for fish:
    ///
    ///   kennel completions fish > ~/.config/fish/completions/kennel.fish
    #[command(verbatim_doc_comment)]
    Completions(CompletionsArgs),

    /// Write the reference, man pages or completions into a directory: for packages and the repository
    #[command(hide = true)]
    Generate(GenerateArgs),
}

impl Verb {
    /// What to log unless somebody says otherwise: what people want to see of a server, and nothing that would
    /// talk into a tour.
    pub(crate) fn usual_log(&self) -> &'static str {
        match self {
            Self::Playground(_) => "error",
            Self::Token(_) | Self::Why(_) => "warn",
            _ => kennel_agent::logging::USUAL,
        }
    }
}

/// How to serve.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct ServerArgs {
    /// Where to keep objects, certificates and the admin kubeconfig
    #[arg(
        long,
        env = "KENNEL_DATA_DIR",
        default_value = "kennel-data",
        value_name = "DIR"
    )]
    pub(crate) data_dir: PathBuf,

    /// Where to listen; port 0 chooses a free one
    #[arg(
        long,
        env = "KENNEL_LISTEN",
        default_value = "127.0.0.1:6443",
        value_name = "ADDRESS"
    )]
    pub(crate) listen: SocketAddr,

    /// Another name or address for the serving certificate (may be repeated)
    #[arg(long, value_name = "NAME")]
    pub(crate) tls_san: Vec<String>,

    /// The range that services get their cluster IPs from
    #[arg(long, default_value = "10.96.0.0/16", value_name = "CIDR")]
    pub(crate) service_cidr: Cidr,

    /// Encrypt secrets on disk with the first key in this file; see docs/guides/encryption-at-rest.md
    #[arg(long, value_name = "FILE")]
    pub(crate) encryption_key_file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) audit: AuditArgs,

    /// A CSV file of static tokens: token,user,uid,"group1,group2"
    #[arg(long, env = "KENNEL_TOKEN_FILE", value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,

    /// Replace the key that signs service-account tokens at start once it is this old; 0 replaces it now
    #[arg(long, default_value_t = kennel_server::pki::keys::DAYS_DEFAULT, value_name = "DAYS")]
    pub(crate) token_key_days: u32,

    /// How long an event is kept after it was last written
    #[arg(long, default_value_t = kennel_server::expire::TTL_DEFAULT.as_secs(), value_name = "SECONDS")]
    pub(crate) event_ttl: u64,

    /// Wait nowhere longer than this for a client: for tests of impatient servers
    #[arg(long, hide = true, value_name = "SECONDS")]
    pub(crate) patience_seconds: Option<u64>,
}

/// How to keep the audit log.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct AuditArgs {
    /// Where to log every request that would change something: a file, `-` for stdout, or `off`
    /// [default: audit/audit.log in the data directory]
    #[arg(long = "audit-log", value_name = "PATH")]
    pub(crate) place: Option<String>,

    /// Put the audit log away before it grows beyond this
    #[arg(long = "audit-log-max-size", default_value_t = audit::SIZE, value_name = "BYTES")]
    pub(crate) max_size: audit::Bytes,

    /// How many files of audit log to keep, the current one included
    #[arg(long = "audit-log-max-files", default_value_t = audit::FILES, value_name = "FILES",
          value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) max_files: u16,

    /// Leave nodes' accepted renewals of their own leases out of the audit log
    #[arg(long = "audit-log-skip-heartbeats")]
    pub(crate) skip_heartbeats: bool,
}

/// How to run everything.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct UpArgs {
    #[command(flatten)]
    pub(crate) server: ServerArgs,

    /// How many real nodes to run on this machine: 0 or 1 [default: 1, or 0 with --simulate]
    #[arg(long, value_name = "NODES", value_parser = real_nodes)]
    pub(crate) nodes: Option<u32>,

    /// How many nodes to simulate [default: 0]
    #[arg(long, value_name = "NODES")]
    pub(crate) simulate: Option<u32>,

    /// Where the real node answers the server (logs, exec and the like)
    /// [default: port 10250 of its address, or a free port if that is taken]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) node_listen: Option<SocketAddr>,

    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,

    /// Answer for the names of services and of nodes' daemons there, as `kennel dns` does; without it,
    /// nobody does
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) dns_listen: Option<SocketAddr>,

    #[command(flatten)]
    pub(crate) names: NamesArgs,

    /// Give the first node the control plane's role: its label, and the taint that keeps other pods away
    ///
    /// Both are seen to once after each start; what is changed afterwards stays changed until the next.
    #[arg(long)]
    pub(crate) taint_control_plane: bool,

    /// Which controllers to run: '*' for all, 'name' for one, '-name' for all but one
    #[arg(
        long,
        default_value = "*",
        value_name = "LIST",
        allow_hyphen_values = true,
        long_help = controllers::help()
    )]
    pub(crate) controllers: Selection,

    #[command(flatten)]
    pub(crate) node: NodeArgs,

    #[command(flatten)]
    pub(crate) lifecycle: LifecycleArgs,
}

/// How to answer for names.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct DnsArgs {
    /// The kubeconfig of the cluster; its current context is used
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Where to answer, over UDP and TCP; port 0 chooses a free one
    #[arg(long, default_value = "127.0.0.1:10053", value_name = "ADDRESS")]
    pub(crate) dns_listen: SocketAddr,

    #[command(flatten)]
    pub(crate) names: NamesArgs,
}

/// Which names, and whom to ask for others.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct NamesArgs {
    /// The domain that the cluster's names are below
    #[arg(long, default_value = "cluster.local", value_name = "DOMAIN")]
    pub(crate) cluster_domain: String,

    /// Whom to ask for all other names, as address or address:port (may be repeated)
    /// [default: the nameservers in /etc/resolv.conf]
    #[arg(long, value_name = "RESOLVER", value_parser = resolver)]
    pub(crate) dns_upstream: Vec<SocketAddr>,
}

/// A resolver's address, with or without a port.
fn resolver(text: &str) -> Result<SocketAddr, String> {
    let without_port = || text.parse().map(|address: IpAddr| (address, 53).into());
    text.parse()
        .or_else(|_| without_port())
        .map_err(|error| error.to_string())
}

/// How to run the controller.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct ControllerArgs {
    /// The kubeconfig of the cluster; its current context is used
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Take part in an election, and write only while elected: for more than one replica
    #[arg(long)]
    pub(crate) leader_elect: bool,

    /// The namespace of the lease that is elected with
    #[arg(long, default_value = "kube-system", value_name = "NAMESPACE")]
    pub(crate) leader_elect_resource_namespace: String,

    /// The name of the lease that is elected with
    #[arg(
        long,
        default_value = "kennel-daemonset-controller",
        value_name = "NAME"
    )]
    pub(crate) leader_elect_resource_name: String,

    /// How pods come to their nodes
    #[arg(long, value_enum, default_value_t, value_name = "WAY")]
    pub(crate) placement: Placement,

    /// Where to serve /metrics, /healthz, /livez and /readyz, over plain HTTP; port 0 chooses a free one
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) metrics_listen: Option<SocketAddr>,
}

/// How pods come to their nodes.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum Placement {
    /// Node affinity names the node, and a scheduler binds the pod, as upstream does
    #[default]
    Scheduler,
    /// The pod is created with spec.nodeName: no scheduler is needed
    Direct,
}

fn real_nodes(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(count @ 0..=1) => Ok(count),
        Ok(count) => Err(format!(
            "more than one real node on a machine would share its ports; join other machines with \
             `kennel token create`, or simulate nodes with --simulate {count}"
        )),
        Err(_) => Err("this is no number of nodes".to_owned()),
    }
}

impl UpArgs {
    /// How many real nodes there are to be.
    pub(crate) fn real_nodes(&self) -> u32 {
        self.nodes.unwrap_or(u32::from(self.simulate.is_none()))
    }
}
