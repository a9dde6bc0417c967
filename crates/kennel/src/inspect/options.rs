//! The flags that all of them have.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args as ClapArgs, ValueEnum};
use serde::Serialize;

/// Which cluster, and which namespace of it.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct ClusterArgs {
    /// Namespace of the DaemonSet [default: that of the context]
    #[arg(short, long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,

    /// Kubeconfig of the cluster [default: $KUBECONFIG or ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig [default: the current one]
    #[arg(long, value_name = "CONTEXT")]
    pub(crate) context: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// Human-readable
    #[default]
    Text,
    /// Machine-readable; see docs/reference/why.md and docs/reference/rollout.md
    Json,
    /// The same as YAML
    Yaml,
}

impl Output {
    /// The value in this format; `text` is the human-readable one.
    pub(crate) fn render(
        self,
        value: &impl Serialize,
        text: impl FnOnce() -> String,
    ) -> anyhow::Result<String> {
        Ok(match self {
            Self::Text => text(),
            Self::Json => serde_json::to_string_pretty(value)? + "\n",
            Self::Yaml => serde_saphyr::to_string(value)?,
        })
    }
}

/// Whether a word is kubectl's for DaemonSets.
pub(crate) fn is_daemon_set_kind(word: &str) -> bool {
    let kinds = [
        "ds",
        "daemonset",
        "daemonsets",
        "daemonset.apps",
        "daemonsets.apps",
    ];
    kinds.contains(&word.to_ascii_lowercase().as_str())
}

/// The name of a DaemonSet, in kubectl's syntax.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DaemonSetName(pub(crate) String);

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DaemonSetNameError {
    #[error("{kind} is not a DaemonSet: use ds/{name}")]
    Kind { kind: String, name: String },
    #[error("use ds/NAME")]
    Name,
}

impl FromStr for DaemonSetName {
    type Err = DaemonSetNameError;

    fn from_str(text: &str) -> Result<Self, DaemonSetNameError> {
        let (kind, name) = text.split_once('/').unwrap_or(("ds", text));
        if !is_daemon_set_kind(kind) {
            let (kind, name) = (kind.to_owned(), name.to_owned());
            return Err(DaemonSetNameError::Kind { kind, name });
        }
        if name.is_empty() || name.contains('/') {
            return Err(DaemonSetNameError::Name);
        }
        Ok(Self(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_set_is_named_in_kubectls_syntax() {
        let check = |text: &str, expected: Result<&str, &str>| {
            let found = text.parse::<DaemonSetName>().map(|name| name.0);
            let found = found.map_err(|error| error.to_string());
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{text}");
        };
        check("ds/agent", Ok("agent"));
        check("agent", Ok("agent"));
        check("DaemonSet/agent", Ok("agent"));
        check("daemonsets.apps/agent", Ok("agent"));
        check(
            "deploy/agent",
            Err("deploy is not a DaemonSet: use ds/agent"),
        );
        check("ds/", Err("use ds/NAME"));
    }
}
