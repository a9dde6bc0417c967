//! The command line of `kennel migrate`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use kennel_agent::node::absolute;
use kennel_server::server::{Endpoints, EtcdConfig};

use crate::store_args::EtcdArgs;

/// Where objects are.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    Directory(PathBuf),
    Etcd(Endpoints),
}

impl FromStr for Place {
    type Err = <Endpoints as FromStr>::Err;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.contains("://") {
            text.parse().map(Self::Etcd)
        } else {
            Ok(Self::Directory(absolute(text.as_ref())))
        }
    }
}

/// The group is what the flags of the connection require.
#[derive(Clone, Debug, Args)]
#[group(id = "store")]
pub(crate) struct MigrateArgs {
    /// Data directory that has the objects, or the etcd, such as `etcd://127.0.0.1:2379`, with all members comma-separated
    #[arg(long, value_name = "PLACE")]
    pub(crate) from: Place,

    /// The etcd, or the data directory, whose pki/ the agents know
    #[arg(long, value_name = "PLACE")]
    pub(crate) to: Place,

    /// Leave the revision of etcd as it is instead of raising it to that of the directory: clients that know older resource
    /// versions get 410 and list again
    #[arg(long)]
    pub(crate) new_revisions: bool,

    /// How long events are kept after their last update; as for the server
    #[arg(long, default_value_t = kennel_server::expire::TTL_DEFAULT.as_secs(), value_name = "SECONDS")]
    pub(crate) event_ttl: u64,

    #[command(flatten)]
    connection: EtcdArgs,
}

impl MigrateArgs {
    pub(crate) fn etcd(&self, endpoints: Endpoints) -> EtcdConfig {
        self.connection.clone().config(endpoints)
    }
}
