//! The flags of commands for administrators of a server: which cluster they are about.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use kube::Config;

use crate::cluster;

/// The data directory of `kennel up` and `kennel server`, if none is given.
const DATA_DIR: &str = "kennel-data";
const KUBECONFIG: &str = "admin.kubeconfig";

#[derive(Clone, Debug, Args)]
pub(crate) struct AdminArgs {
    /// Kubeconfig of an administrator [default: admin.kubeconfig in --data-dir; without that, $KUBECONFIG, then
    /// kennel-data/admin.kubeconfig, then ~/.kube/config]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Data directory of the server
    #[arg(long, global = true, env = "KENNEL_DATA_DIR", value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
}

impl AdminArgs {
    /// The configuration of a client.
    pub(crate) async fn config(&self) -> anyhow::Result<Config> {
        let variable = std::env::var_os("KUBECONFIG").is_some_and(|value| !value.is_empty());
        let file = self.file(variable, Path::exists);
        cluster::config(file.as_deref())
            .await
            .context("set --data-dir to the server's, or --kubeconfig to an administrator's")
    }

    /// The kubeconfig; none for the one that kubectl would use. `variable`: `$KUBECONFIG` is set.
    fn file(&self, variable: bool, exists: impl Fn(&Path) -> bool) -> Option<PathBuf> {
        if let Some(file) = &self.kubeconfig {
            return Some(file.clone());
        }
        if let Some(dir) = &self.data_dir {
            return Some(dir.join(KUBECONFIG));
        }
        let default = Path::new(DATA_DIR).join(KUBECONFIG);
        (!variable && exists(&default)).then_some(default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cluster_is_the_one_that_is_named_most_clearly() {
        let check = |kubeconfig: Option<&str>,
                     data_dir: Option<&str>,
                     variable: bool,
                     exists: bool,
                     expected: Option<&str>| {
            let args = AdminArgs {
                kubeconfig: kubeconfig.map(PathBuf::from),
                data_dir: data_dir.map(PathBuf::from),
            };
            let found = args.file(variable, |_| exists);
            assert_eq!(found, expected.map(PathBuf::from));
        };
        check(Some("k"), Some("d"), true, true, Some("k"));
        check(None, Some("d"), true, true, Some("d/admin.kubeconfig"));
        check(None, None, true, true, None);
        check(
            None,
            None,
            false,
            true,
            Some("kennel-data/admin.kubeconfig"),
        );
        check(None, None, false, false, None);
    }
}
