//! The flags of a store on etcd.

use std::path::PathBuf;

use clap::Args;
use kennel_server::server::{Endpoints, EtcdConfig, EtcdTls};

/// How to connect to etcd. These flags require `store`: the flag that names the etcd, or a group of such flags.
#[derive(Clone, Debug, Args)]
#[allow(clippy::struct_field_names, reason = "they are the names of the flags")]
pub(crate) struct EtcdArgs {
    /// Certificate authorities of etcd's TLS; without it, the connection is plain, to loopback addresses alone
    #[arg(long, value_name = "FILE", requires = "store")]
    store_ca_file: Option<PathBuf>,

    /// Client certificate for etcd; the files of TLS are read again for every connection
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
    #[arg(
        long,
        value_name = "NAME",
        requires = "store",
        requires = "store_password_file"
    )]
    store_user: Option<String>,

    /// File whose first line is the password of the user of etcd; only its owner may be able to read it
    #[arg(long, value_name = "FILE", requires = "store_user")]
    store_password_file: Option<PathBuf>,
}

impl EtcdArgs {
    pub(crate) fn config(self, endpoints: Endpoints) -> EtcdConfig {
        let client = self.store_cert_file.zip(self.store_key_file);
        EtcdConfig {
            endpoints,
            tls: self
                .store_ca_file
                .map(|ca_file| EtcdTls { ca_file, client }),
            user: self.store_user.zip(self.store_password_file),
            may_lose_fields: Vec::new(),
        }
    }
}

#[derive(Clone, Debug, Args)]
pub(crate) struct StoreArgs {
    /// etcd that stores the objects, such as `etcd://127.0.0.1:2379`, with all members comma-separated; see
    /// docs/guides/etcd.md [default: a database in --data-dir]
    #[arg(
        long,
        env = "KENNEL_STORE",
        value_name = "ADDRESS",
        conflicts_with = "backup_dir"
    )]
    store: Option<Endpoints>,

    #[command(flatten)]
    connection: EtcdArgs,

    /// Key in etcd of an object that kube-apiserver has stored with fields that this version does not know: allows writes, which drop
    /// them (may be repeated)
    #[arg(long, value_name = "KEY", requires = "store")]
    store_may_lose_fields: Vec<String>,
}

impl StoreArgs {
    /// `None`: the objects are in the data directory.
    pub(crate) fn etcd(self) -> Option<EtcdConfig> {
        Some(EtcdConfig {
            may_lose_fields: self.store_may_lose_fields,
            ..self.connection.config(self.store?)
        })
    }
}
