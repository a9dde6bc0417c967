//! The command line of `kennel certs`.

use clap::{Args, Subcommand};

use crate::admin_args::AdminArgs;

#[derive(Clone, Debug, Args)]
pub(crate) struct CertsArgs {
    #[command(subcommand)]
    pub(crate) verb: Option<CertsVerb>,

    #[command(flatten)]
    pub(crate) admin: AdminArgs,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum CertsVerb {
    /// Show the server's certificates and when they end; the default
    Show,

    /// Renew certificates of the running server now, without a restart
    Renew {
        /// `server`, `admin`, `apiserver-kubelet-client` or `service-account` (the key that signs tokens) [default: all]
        names: Vec<String>,
    },

    /// Make a new certificate authority, which signs from now on; the old one stays trusted
    #[command(name = "rotate-ca")]
    RotateCa,

    /// Stop trusting earlier certificate authorities: what only they have signed is worthless from now on
    #[command(name = "retire-ca")]
    RetireCa,

    /// Write another admin kubeconfig; the certificates of earlier ones end
    #[command(name = "reissue-admin")]
    ReissueAdmin,

    /// End all client certificates that a user has by now; later ones are valid
    Revoke {
        /// The user: the common name of the certificate, such as `alice` or `system:node:web-1`
        user: String,
    },
}
