//! The command line of `kennel migrate`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use kennel_agent::node::absolute;
use kennel_server::server::{Endpoints, EtcdConfig, EtcdTls};

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

#[derive(Clone, Debug, Args)]
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

    /// Certificate authorities of etcd's TLS; without it, the connection is plain, to loopback addresses alone
    #[arg(long, value_name = "FILE")]
    store_ca_file: Option<PathBuf>,

    /// Client certificate for etcd
    #[arg(
        long,
        value_name = "FILE",
        requires = "store_ca_file",
        requires = "store_key_file"
    )]
    store_cert_file: Option<PathBuf>,

    /// Key of the client certificate for etcd
    #[arg(long, value_name = "FILE", requires = "store_cert_file")]
    store_key_file: Option<PathBuf>,

    /// User of etcd
    #[arg(long, value_name = "NAME", requires = "store_password_file")]
    store_user: Option<String>,

    /// File whose first line is the password of the user of etcd
    #[arg(long, value_name = "FILE", requires = "store_user")]
    store_password_file: Option<PathBuf>,
}

impl MigrateArgs {
    pub(crate) fn etcd(&self, endpoints: Endpoints) -> EtcdConfig {
        let client = self
            .store_cert_file
            .clone()
            .zip(self.store_key_file.clone());
        let ca_file = self.store_ca_file.clone();
        EtcdConfig {
            endpoints,
            tls: ca_file.map(|ca_file| EtcdTls { ca_file, client }),
            user: self
                .store_user
                .clone()
                .zip(self.store_password_file.clone()),
        }
    }
}
