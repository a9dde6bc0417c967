//! The command line of `kennel reset`.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use kennel_agent::args::AgentArgs;

#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct ResetArgs {
    /// Data directory of `kennel up`, `kennel server`, `kennel agent` or `kennel playground`
    #[arg(
        long,
        env = "KENNEL_DATA_DIR",
        default_value = "kennel-data",
        value_name = "DIR"
    )]
    pub(crate) data_dir: PathBuf,

    /// Do not ask
    #[arg(long)]
    pub(crate) yes: bool,

    /// End pods, shims and mounts only, and keep all files: the next start begins where this one ended
    #[arg(long)]
    pub(crate) keep_data: bool,

    /// Delete the files even if some pods could not be ended
    #[arg(long, conflicts_with = "keep_data")]
    pub(crate) force: bool,
}

/// What to reset.
pub(super) struct Request {
    pub(super) args: ResetArgs,
    /// Whether to reset the directory as an agent's only.
    pub(super) agent_only: bool,
    /// The value of `--cri-socket`.
    pub(super) cri_socket: Option<String>,
    /// The value of `--log-dir`.
    pub(super) log_dir: Option<PathBuf>,
}

impl From<ResetArgs> for Request {
    fn from(args: ResetArgs) -> Self {
        Self {
            args,
            agent_only: false,
            cri_socket: None,
            log_dir: None,
        }
    }
}

impl From<AgentArgs> for Request {
    /// Of `kennel agent --cleanup`.
    fn from(args: AgentArgs) -> Self {
        Self {
            args: ResetArgs {
                data_dir: args.data_dir,
                yes: args.yes,
                keep_data: false,
                force: false,
            },
            agent_only: true,
            cri_socket: args.node.cri_socket,
            log_dir: args.node.log_dir,
        }
    }
}
