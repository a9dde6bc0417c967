//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args as ClapArgs, CommandFactory as _, FromArgMatches as _};
use clap::{Parser, Subcommand, ValueEnum};
use kennel_server::kinds::service::Cidr;

use crate::backup_args::{BackupArgs, RestoreArgs, ScheduleArgs};
use crate::bench::BenchArgs;
use crate::certs_args::CertsArgs;
use crate::check_flags::CheckArgs;
use crate::dns_args::{Advertise, DnsArgs, ServerDnsArgs};
use crate::election_flags::ElectionArgs;
use crate::eviction_flags::EvictionArgs;
use crate::generate::{CompletionsArgs, GenerateArgs};
use crate::migrate_args::MigrateArgs;
use crate::network_flags::ClusterCidr;
use crate::reset::ResetArgs;
use crate::rollout::RolloutArgs;
use crate::store_args::StoreArgs;
use crate::token_args::TokenArgs;
use crate::verb::dashboard::DashboardArgs;
use crate::verb::doctor::DoctorArgs;
use crate::verb::version::VersionArgs;
use crate::why::WhyArgs;
use kennel_agent::args::{AgentArgs, NodeArgs, ScenarioArgs};
use kennel_agent::flag_values::listen_address;
use kennel_agent::logging::{self, LogFormat};
use kennel_playground::PlaygroundArgs;
use kennel_server::audit;
use kennel_standalone::controller_manager::CLUSTER_CIDR;
use kennel_standalone::controller_manager::selection::{self, Selection};

/// Kubernetes DaemonSets in one small binary: API server, controllers and nodes
#[derive(Debug, Parser)]
#[command(name = "kennel", version, about, max_term_width = 100)]
pub(crate) struct Args {
    /// Log level (error, warn, info, debug) or filter, such as `kennel::request=debug`
    #[arg(long, global = true, env = "KENNEL_LOG", value_name = "FILTER", value_parser = logging::filter)]
    pub(crate) log: Option<String>,

    /// Format of log lines on stderr
    #[arg(
        long,
        global = true,
        env = "KENNEL_LOG_FORMAT",
        value_enum,
        default_value_t,
        value_name = "FORMAT"
    )]
    pub(crate) log_format: LogFormat,

    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// The file name under which kubectl finds this program as a plug-in.
const KUBECTL_PLUGIN: &str = "kubectl-kennel";

impl Args {
    /// Parses the command line. If this program was started as a kubectl plug-in, its help shows
    /// `kubectl kennel`.
    pub(crate) fn from_command_line() -> Self {
        let program = std::env::args_os().next();
        let program = program.map(PathBuf::from).unwrap_or_default();
        if program
            .file_name()
            .is_none_or(|name| name != KUBECTL_PLUGIN)
        {
            return Self::parse();
        }
        let mut command = Self::command().bin_name("kubectl kennel");
        let matches = command.get_matches_mut();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.format(&mut command).exit())
    }
}

#[derive(Debug, Subcommand)]
#[expect(
    clippy::doc_markdown,
    reason = "help for terminals, where commands are shown without markup"
)]
pub(crate) enum Verb {
    /// Serve the Kubernetes API
    ///
    /// The first start creates a CA, certificates and an admin kubeconfig. All state is in the data
    /// directory. Example:
    ///
    ///   kennel server --data-dir ./kennel &
    ///   kubectl --kubeconfig ./kennel/admin.kubeconfig get namespaces
    #[command(verbatim_doc_comment)]
    Server(Box<ServerArgs>),

    /// Run a whole cluster in one process: API server, controllers and a node
    ///
    /// By default this machine is the cluster's only node and runs pods, in containers or as plain
    /// processes. Pods keep running when kennel stops; the next start takes them over, and `kennel reset`
    /// ends them. With --simulate, nodes are simulated: they run nothing and need little memory. Example:
    ///
    ///   kennel up --simulate 3 --data-dir ./kennel &
    ///   kubectl --kubeconfig ./kennel/admin.kubeconfig apply -f daemonset.yaml
    ///   kubectl --kubeconfig ./kennel/admin.kubeconfig get daemonsets,pods -o wide
    #[command(verbatim_doc_comment)]
    Up(Box<UpArgs>),

    /// Run the DaemonSet controller against any Kubernetes API
    ///
    /// Replaces the DaemonSet controller of kube-controller-manager, which must then run with
    /// --controllers='*,-daemonset-controller'. Connects to the cluster of --kubeconfig, of $KUBECONFIG
    /// or ~/.kube/config, or of the pod that it runs in, whichever is found first. Several replicas elect a
    /// leader. A DaemonSet controller that does not take part in the election is detected, and reported in
    /// the log and in events. Example:
    ///
    ///   kennel controller --kubeconfig ./kennel/admin.kubeconfig --metrics-listen 127.0.0.1:8080
    #[command(verbatim_doc_comment)]
    Controller(ControllerArgs),

    /// Run a node agent: register this machine as a node and run the pods bound to it
    ///
    /// To join a cluster, run the command that `kennel token create` prints on the server:
    ///
    ///   KENNEL_TOKEN=abcdef.0123456789abcdef kennel agent --server https://10.0.0.1:6443 --ca-hash sha256:...
    ///
    /// Later starts need no flags. A kubeconfig of any Kubernetes API works as well. Pods run in
    /// containers if a container runtime is found, else as plain processes. They keep running when the
    /// agent stops or crashes; the next start takes them over, and --cleanup ends them. With --manifest-dir
    /// and no cluster, the agent runs static pods only. See docs/guides/join.md.
    ///
    /// With --runtime=simulated it simulates any number of nodes, which run nothing, as the user of
    /// --kubeconfig, of $KUBECONFIG or ~/.kube/config:
    ///
    ///   kennel agent --runtime=simulated --count=100 --kubeconfig ./kennel/admin.kubeconfig
    #[command(verbatim_doc_comment)]
    Agent(Box<AgentArgs>),

    /// Back up a server into one file, while it runs or not
    ///
    /// The file has all objects (tokens among them) and the keys and certificates in pki/, with a checksum of
    /// each, and is read back before the command succeeds. Whoever has it can become administrator: seal it with
    /// a passphrase or a key, or keep it as you keep keys. It does not have the audit log, what nodes run, and the
    /// keys of --encryption-key-file. Example:
    ///
    ///   kennel backup --data-dir ./kennel /mnt/backups --passphrase-file ./passphrase
    ///
    /// `kennel server` and `kennel up` do so at an interval with --backup-dir. See
    /// docs/guides/back-up-and-restore.md.
    #[command(verbatim_doc_comment)]
    Backup(BackupArgs),

    /// Restore a backup into the data directory of a server that does not run
    ///
    /// Verifies the whole file before it changes anything. All objects get new resource versions, past everything
    /// that the server may have served since the backup, so that clients list again. Agents come back by
    /// themselves, and their pods keep running. Example:
    ///
    ///   kennel restore kennel-20260101T000000Z.backup --data-dir ./kennel --passphrase-file ./passphrase
    #[command(verbatim_doc_comment)]
    Restore(RestoreArgs),

    /// Move the objects of a stopped server from its data directory to an etcd, or back
    ///
    /// Everything is checked before anything is changed, and all objects are compared afterwards. If it is interrupted,
    /// repeat it: until then, no server starts on a part of the objects. Certificates and keys stay in the directory.
    /// See docs/guides/etcd.md. Example:
    ///
    ///   kennel migrate --from ./kennel --to etcd://127.0.0.1:2379
    ///   kennel server --data-dir ./kennel --store etcd://127.0.0.1:2379
    #[command(verbatim_doc_comment)]
    Migrate(Box<MigrateArgs>),

    /// Check the database of a server, while it runs or not
    ///
    /// Reads everything: the structure of the file, and the checksum and the content of every object. Names
    /// objects that cannot be read; a server leaves them out and runs without them. Exit code: 0 if all is well,
    /// 1 if something is damaged, 2 if it could not be checked. Example:
    ///
    ///   kennel doctor --data-dir ./kennel
    ///   kennel doctor --data-dir ./kennel --raw /registry/configmaps/default/settings > settings.json
    ///   kubectl create -f settings.json                # repaired in an editor
    ///   kennel doctor --data-dir ./kennel --discard /registry/configmaps/default/settings
    #[command(verbatim_doc_comment)]
    Doctor(DoctorArgs),

    /// End Kennel's pods on this machine, and delete its data
    ///
    /// Pods keep running when kennel stops; this ends them, when no kennel uses the data directory. It ends
    /// pods (processes, and containers in a container runtime), unmounts their volumes, and deletes their
    /// logs, the node's certificates and, in the data directory of a server, the cluster: all objects and
    /// its certificate authority. It says what it will do and asks first. What Kennel did not create stays:
    /// images, static pod manifests, files of yours in the data directory. With --keep-data it ends pods
    /// and keeps all files; the next start runs the pods again. Exit code: 0 if nothing is left, 1 if
    /// something is (repeat the command), 2 if it was rejected and nothing changed. Example:
    ///
    ///   kennel reset --data-dir ./kennel              # a cluster of `kennel up`, as if it had never been
    ///   kennel reset --data-dir ./kennel --keep-data  # only end its pods
    ///   kennel agent --cleanup                        # a machine that has joined a cluster
    #[command(verbatim_doc_comment)]
    Reset(ResetArgs),

    /// Create, list and delete bootstrap tokens, which machines use to join
    ///
    /// Example, on the server's machine:
    ///
    ///   kennel token create --data-dir ./kennel
    #[command(verbatim_doc_comment)]
    Token(TokenArgs),

    /// Show, renew and replace the server's certificates, and revoke those of users
    ///
    /// A running server renews its certificates itself, 90 days before they end, and warns 30 days before
    /// anything ends. See docs/guides/certificates.md. Example:
    ///
    ///   kennel certs                  # what there is, and when it ends
    ///   kennel certs renew server     # another serving certificate, now
    ///   kennel certs revoke alice     # the certificates that alice has by now are worthless
    ///   kennel certs reissue-admin    # another admin kubeconfig; the old one stops working
    #[command(verbatim_doc_comment)]
    Certs(CertsArgs),

    /// Serve DNS for the services of a cluster, and for the daemon on each node
    ///
    /// Watches Services and EndpointSlices, and answers over UDP and TCP:
    ///
    ///   <service>.<namespace>.svc.<domain>            cluster IP, or all ready pods if headless
    ///   _<port>._<protocol>.<service>.<namespace>...  SRV, for named ports
    ///   <hostname>.<service>.<namespace>...           one pod
    ///   <node>.<service>.<namespace>...               the service's pods on one node
    ///
    /// Forwards other queries to upstream resolvers. See docs/guides/dns.md. Example:
    ///
    ///   kennel dns --kubeconfig ./kennel/admin.kubeconfig &
    ///   dig @127.0.0.1 -p 10053 sim-1.agent.default.svc.cluster.local
    #[command(verbatim_doc_comment)]
    #[allow(rustdoc::invalid_html_tags, reason = "help text is not Markdown")]
    Dns(DnsArgs),

    /// Explain why a DaemonSet's pod runs on a node, or does not
    ///
    /// Reads the cluster of --kubeconfig, of $KUBECONFIG or ~/.kube/config, without changing anything,
    /// and applies the rules of the DaemonSet controller and the scheduler to every node. Reports where
    /// a pod runs; where one is missing, with the first cause; which nodes are excluded, with the label
    /// or toleration that would change that; and where a pod runs that should not. Names labels and
    /// taints that the template seems to misspell, and shows the last log lines of crash loops. Exit
    /// code: 0 if every node is as it should be; 1 if not, or if a typo leaves no node; 2 if something
    /// that was named does not exist, or the cluster could not be read. Example:
    ///
    ///   kennel why ds/agent -n monitoring
    ///   kennel why ds/agent --node worker-7
    ///   kennel why pod/agent-x7k2p               # its DaemonSet, on its node
    ///   kennel why -A                            # every DaemonSet, problems first
    ///   kennel why -A --node worker-7            # every DaemonSet on one node
    ///   kennel why ds/agent -o json | jq '.nodes[] | select(.verdict == "missing")'
    ///
    /// A link named kubectl-kennel on the PATH makes it a kubectl plug-in: `kubectl kennel why ds/agent`.
    /// See docs/guides/find-out-why.md.
    #[command(verbatim_doc_comment)]
    Why(WhyArgs),

    /// Show and direct the rollout of a DaemonSet: stages, promotion, rollback
    ///
    /// A DaemonSet with the annotation rollout.kennel.dev/stages is updated in stages by Kennel's
    /// controller, and goes back or stops by itself if nodes fail:
    ///
    ///   kubectl annotate ds agent 'rollout.kennel.dev/stages=1 5m, 10% 30m, 50% manual, 100%'
    ///   kennel rollout plan ds/agent                # which nodes come when
    ///   kubectl apply -f agent.yaml
    ///   kennel rollout status ds/agent --watch      # until complete, failed, or a person is needed
    ///   kennel rollout promote ds/agent             # past a manual stage
    ///   kennel rollout abort ds/agent               # back to the stable revision
    ///
    /// Commands are annotations that name the revision, so that an old one cannot hit the next rollout.
    /// A link named kubectl-kennel on the PATH makes it a kubectl plug-in: `kubectl kennel rollout
    /// status ds/agent`. See docs/reference/rollout.md.
    #[command(verbatim_doc_comment)]
    Rollout(RolloutArgs),

    /// Show the DaemonSets of a cluster in a browser: one cell per node, live
    ///
    /// Watches the cluster of --kubeconfig, of $KUBECONFIG or ~/.kube/config, with its rights, and serves a
    /// page on this machine: all DaemonSets with trouble first; for each the state of every node, stages,
    /// history, events, and for a node why, logs and commands. Opens the browser, if there is a display.
    /// The printed address works once; the browser that opens it keeps the access, and the next address
    /// is printed for another one. Read-only unless --allow-changes is given. Example:
    ///
    ///   kennel dashboard
    ///   kennel dashboard --no-open --listen 127.0.0.1:6480 --allow-changes
    ///   kennel dashboard --listen 0.0.0.0:443 --tls-cert tls.crt --tls-key tls.key
    ///
    /// From another machine: ssh -L 6480:127.0.0.1:6480 HOST. See docs/guides/dashboard.md.
    #[command(verbatim_doc_comment)]
    Dashboard(DashboardArgs),

    /// Benchmark a cluster's control plane with a DaemonSet on many simulated nodes
    ///
    /// Registers simulated nodes, whose pods start and stop without delay, with the cluster of
    /// --kubeconfig, and times three steps: create a DaemonSet until all its pods are available, change
    /// its template until all are replaced, and delete it until all are gone. Prints durations, rates,
    /// pod latencies (created, bound, ready), and the CPU time and peak memory of the processes given
    /// with --pid, usually those of the control plane. The same options put the same load on any
    /// cluster. All objects are in the namespace kennel-bench or are nodes with the label
    /// kennel-bench=node; they are removed at the end, also on Ctrl-C and after failures. Example:
    ///
    ///   kennel up --nodes 0 --data-dir ./kennel &
    ///   kennel bench --kubeconfig ./kennel/admin.kubeconfig --nodes 1000 --pid $!
    ///   kennel bench --kubeconfig ./kennel/admin.kubeconfig --nodes 1000 --idle 60 --pid $! -o json
    ///
    /// All nodes share the client of --kubeconfig, with one watch of pods and one of nodes, unless they
    /// have connections of their own, as kubelets and agents do. Then each node is the user
    /// system:node:NAME, with a certificate that the benchmark requests, approves and uses for a day at
    /// most, so that the kubeconfig must be an administrator's, and node authorisation is part of the
    /// figures. Pods then mount the tokens of service accounts, and a Service is over the DaemonSet:
    ///
    ///   kennel bench --kubeconfig ./kennel/admin.kubeconfig --connections --pid $!
    ///   kennel bench --kubeconfig ./kennel/admin.kubeconfig --connections=plain --pid $!
    #[command(verbatim_doc_comment)]
    Bench(BenchArgs),

    /// Start a temporary cluster of three real nodes on this machine, with a guided tour
    ///
    /// One process runs the whole cluster: API server, controllers and nodes. As root, each node gets a
    /// network namespace, so that host ports do not collide; the first node has the control-plane taint.
    /// Only kubectl has to be installed. The tour goes through the life of a DaemonSet step by step, and
    /// shows each command that it runs. At the end, also on Ctrl-C, all processes, networks and files
    /// are removed. What a `kill -9` leaves, the next start removes. Example:
    ///
    ///   kennel playground                  # the tour, then a cluster to play with
    ///   kennel playground --no-tour        # only the cluster
    ///   kennel playground --auto           # the tour without pauses, then exit
    ///   kennel playground --simulate 1000  # many simulated nodes
    #[command(verbatim_doc_comment)]
    Playground(PlaygroundArgs),

    /// Print the version of this program, and of the server if one is configured
    ///
    /// Asks the server of --kubeconfig, of $KUBECONFIG or ~/.kube/config. If it cannot be reached, prints
    /// the version of this program, and exits with 1. Example:
    ///
    ///   kennel version
    ///   kennel version --client -o json
    #[command(verbatim_doc_comment)]
    Version(VersionArgs),

    /// Print a shell completion script
    ///
    /// For bash, in this shell and in later ones:
    ///
    ///   source <(kennel completions bash)
    ///   kennel completions bash > ~/.local/share/bash-completion/completions/kennel
    ///
    /// For zsh, write it to a directory in $fpath. For fish:
    ///
    ///   kennel completions fish > ~/.config/fish/completions/kennel.fish
    #[command(verbatim_doc_comment)]
    Completions(CompletionsArgs),

    /// Write the reference, man pages or completions into a directory
    #[command(hide = true)]
    Generate(GenerateArgs),
}

impl Verb {
    /// The log filter without --log. Log lines must not interrupt the tour of the playground.
    pub(crate) fn default_log_filter(&self) -> &'static str {
        match self {
            Self::Playground(_) | Self::Reset(_) => "error",
            Self::Agent(args) if args.cleanup => "error",
            // Answers of the API that matter are part of the explanation.
            Self::Why(_) => "warn,kube_client=off",
            // The screen says what is interrupted.
            Self::Rollout(args) if args.draws() => "error,kube_client=off",
            Self::Token(_)
            | Self::Certs(_)
            | Self::Rollout(_)
            | Self::Dashboard(_)
            | Self::Version(_)
            | Self::Backup(_)
            | Self::Restore(_)
            | Self::Migrate(_)
            | Self::Doctor(_) => "warn",
            _ => logging::DEFAULT_FILTER,
        }
    }
}

#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct ServerArgs {
    /// Directory of objects, certificates and the admin kubeconfig
    #[arg(
        long,
        env = "KENNEL_DATA_DIR",
        default_value = "kennel-data",
        value_name = "DIR"
    )]
    pub(crate) data_dir: PathBuf,

    /// Address to serve the API on, such as `localhost:6443` or `:6443` (all addresses); port 0 chooses a free port
    #[arg(
        long,
        env = "KENNEL_LISTEN",
        default_value = "127.0.0.1:6443",
        value_name = "ADDRESS",
        value_parser = listen_address
    )]
    pub(crate) listen: SocketAddr,

    /// Address of this machine at which pods and other machines reach the API, through the Service `kubernetes`; or `off`
    /// [default: that of --listen, or that of the default route if that is a loopback address or all addresses]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) advertise_address: Option<Advertise>,

    /// Additional name or address for the serving certificate (may be repeated)
    #[arg(long, value_name = "NAME")]
    pub(crate) tls_san: Vec<String>,

    /// Range of the cluster IPs of services
    #[arg(long, default_value = "10.96.0.0/16", value_name = "CIDR")]
    pub(crate) service_cidr: Cidr,

    #[command(flatten)]
    pub(crate) dns: ServerDnsArgs,

    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Encrypt secrets at rest with the first key in this file; see docs/guides/encryption-at-rest.md
    #[arg(long, value_name = "FILE")]
    pub(crate) encryption_key_file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) audit: AuditArgs,

    #[command(flatten)]
    pub(crate) pod_security: PodSecurityArgs,

    /// CSV file of static tokens: token,user,uid,"group1,group2"
    #[arg(long, env = "KENNEL_TOKEN_FILE", value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,

    /// Age at which the key that signs service-account tokens is replaced; 0 replaces it at every start
    #[arg(long, default_value_t = kennel_server::pki::keys::DAYS_DEFAULT, value_name = "DAYS")]
    pub(crate) token_key_days: u32,

    /// How long events are kept after their last update
    #[arg(long, default_value_t = kennel_server::expire::TTL_DEFAULT.as_secs(), value_name = "SECONDS")]
    pub(crate) event_ttl: u64,

    /// Size of all objects together from which on users' writes are rejected with 507
    ///
    /// Nodes may use 15 % more and controllers a quarter, and deletions always work. See docs/reference/limits.md.
    #[arg(long, default_value_t = kennel_server::quota::QUOTA_DEFAULT, value_name = "BYTES")]
    pub(crate) storage_quota: audit::Bytes,

    #[command(flatten)]
    pub(crate) backups: ScheduleArgs,

    /// Upper bound of all timeouts for clients; for tests
    #[arg(long = "patience-seconds", hide = true, value_name = "SECONDS")]
    pub(crate) client_timeout: Option<u64>,
}

#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct PodSecurityArgs {
    /// Namespaces that are exempt from Pod Security admission, comma-separated
    #[arg(
        long = "pod-security-exempt-namespaces",
        value_name = "NAMES",
        value_delimiter = ','
    )]
    pub(crate) namespaces: Vec<String>,

    /// Users whose pods are exempt from Pod Security admission, comma-separated
    #[arg(
        long = "pod-security-exempt-users",
        value_name = "NAMES",
        value_delimiter = ','
    )]
    pub(crate) users: Vec<String>,

    /// Runtime classes whose pods are exempt from Pod Security admission, comma-separated
    #[arg(
        long = "pod-security-exempt-runtime-classes",
        value_name = "NAMES",
        value_delimiter = ','
    )]
    pub(crate) runtime_classes: Vec<String>,
}

#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct AuditArgs {
    /// Audit log of changes, and of reads of secrets, logs, exec and proxies: a file, `-` for stdout, or `off`
    /// [default: audit/audit.log in the data directory]
    #[arg(long = "audit-log", value_name = "PATH")]
    pub(crate) path: Option<String>,

    /// Size at which the audit log is rotated
    #[arg(long = "audit-log-max-size", default_value_t = audit::DEFAULT_MAX_SIZE, value_name = "BYTES")]
    pub(crate) max_size: audit::Bytes,

    /// Number of audit log files to keep, including the current one
    #[arg(long = "audit-log-max-files", default_value_t = audit::DEFAULT_MAX_FILES, value_name = "FILES",
          value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) max_files: u16,

    /// Do not log successful renewals of node leases
    #[arg(long = "audit-log-skip-heartbeats")]
    pub(crate) skip_heartbeats: bool,
}

#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct UpArgs {
    #[command(flatten)]
    pub(crate) server: ServerArgs,

    /// Number of real nodes on this machine: 0 or 1 [default: 1, or 0 with --simulate]
    #[arg(long, value_name = "NODES", value_parser = real_nodes)]
    pub(crate) nodes: Option<u32>,

    /// Number of simulated nodes [default: 0]
    #[arg(long, value_name = "NODES")]
    pub(crate) simulate: Option<u32>,

    /// Address of the real node's kubelet API (logs, exec, port-forward)
    /// [default: port 10250 of its address, or a free port if that is taken]
    #[arg(long, value_name = "ADDRESS", value_parser = listen_address)]
    pub(crate) node_listen: Option<SocketAddr>,

    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,

    /// Serve the page of `kennel dashboard` on this machine, and print its address
    #[arg(long)]
    pub(crate) dashboard: bool,

    /// Allow changes on that page: promote, pause, resume, abort, retry and undo
    #[arg(long, requires = "dashboard")]
    pub(crate) dashboard_allow_changes: bool,

    /// Give the first node the control-plane label and the taint `NoSchedule`
    ///
    /// Done once per start; you may remove them until the next start.
    #[arg(long)]
    pub(crate) taint_control_plane: bool,

    /// Controllers to run, comma-separated: '*' for all, 'name' to enable one, '-name' to disable one
    #[arg(
        long,
        default_value = "*",
        value_name = "LIST",
        allow_hyphen_values = true,
        long_help = selection::help()
    )]
    pub(crate) controllers: Selection,

    /// Range of the pods of all nodes: each node that asks gets a /24 of it
    #[arg(long, default_value = CLUSTER_CIDR, value_name = "CIDR")]
    pub(crate) cluster_cidr: ClusterCidr,

    #[command(flatten)]
    pub(crate) node: NodeArgs,

    #[command(flatten)]
    pub(crate) eviction: EvictionArgs,

    #[command(flatten)]
    pub(crate) checks: CheckArgs,
}

#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct ControllerArgs {
    /// Kubeconfig of the cluster; its current context is used
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) election: ElectionArgs,

    /// Stage rollouts beside the cluster's own DaemonSet controller, where that cannot be switched off
    ///
    /// For DaemonSets with the update strategy `OnDelete` and a rollout policy: deletes old pods in the order of the
    /// stages, at most `rollingUpdate.maxUnavailable` (1 if absent) at a time, and the cluster's own controller makes the
    /// new ones. Creates no pods and no revisions. Does not work this way, and is rejected: going back by
    /// itself (`on-failure: rollback`), `stages-on-create` and `pin-config`; `abort` only stops, and `freeze` only
    /// stops deletions. See docs/guides/existing-cluster.md.
    #[arg(long)]
    pub(crate) assist: bool,

    /// How pods are bound to their nodes
    #[arg(long, value_enum, default_value_t, value_name = "MODE")]
    pub(crate) placement: Placement,

    /// Address to serve /metrics, /healthz, /livez and /readyz on, over plain HTTP; port 0 chooses a free port
    #[arg(long, value_name = "ADDRESS", value_parser = listen_address)]
    pub(crate) metrics_listen: Option<SocketAddr>,

    #[command(flatten)]
    pub(crate) checks: CheckArgs,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum Placement {
    /// Pods name their node in a node affinity and a scheduler binds them, as upstream
    #[default]
    Scheduler,
    /// Pods are created with spec.nodeName and need no scheduler
    Direct,
}

/// An invalid `--nodes`.
#[derive(Debug, thiserror::Error)]
enum RealNodesError {
    #[error(
        "more than one real node on a machine would share its ports; join other machines with \
         `kennel token create`, or simulate nodes with --simulate {0}"
    )]
    TooMany(u32),
    #[error("not a number of nodes")]
    NotANumber(#[from] std::num::ParseIntError),
}

fn real_nodes(text: &str) -> Result<u32, RealNodesError> {
    match text.parse()? {
        count @ 0..=1 => Ok(count),
        count => Err(RealNodesError::TooMany(count)),
    }
}

impl UpArgs {
    pub(crate) fn real_nodes(&self) -> u32 {
        self.nodes.unwrap_or(u32::from(self.simulate.is_none()))
    }
}
