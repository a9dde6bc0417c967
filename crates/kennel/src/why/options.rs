//! What can be said to `kennel why`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args as ClapArgs, ValueEnum};

/// What to find out.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct WhyArgs {
    /// The DaemonSet: ds/NAME, daemonset/NAME or just NAME
    #[arg(value_name = "DAEMONSET")]
    pub(crate) daemon_set: DaemonSetName,

    /// Its namespace [default: that of the context]
    #[arg(short, long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,

    /// Go into detail about this node: every rule, its pods and containers, the last events
    #[arg(long, value_name = "NODE")]
    pub(crate) node: Option<String>,

    /// Name every node, however many there are
    #[arg(long)]
    pub(crate) all: bool,

    /// How to print the answer
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) output: Output,

    /// The kubeconfig of the cluster [default: $KUBECONFIG or ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// The context to use [default: the current one]
    #[arg(long, value_name = "CONTEXT")]
    pub(crate) context: Option<String>,
}

/// How the answer is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people
    #[default]
    Text,
    /// For programs; see docs/reference/why.md
    Json,
}

/// A DaemonSet as people write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DaemonSetName(pub(crate) String);

impl FromStr for DaemonSetName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, name) = text.split_once('/').unwrap_or(("ds", text));
        let kinds = [
            "ds",
            "daemonset",
            "daemonsets",
            "daemonset.apps",
            "daemonsets.apps",
        ];
        if !kinds.contains(&kind.to_ascii_lowercase().as_str()) {
            return Err(format!("{kind} is no DaemonSet: say ds/{name}"));
        }
        if name.is_empty() || name.contains('/') {
            return Err("say ds/NAME".to_owned());
        }
        Ok(Self(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_set_is_named_as_kubectl_names_it() {
        let check = |text: &str, expected: Result<&str, &str>| {
            let found = text.parse::<DaemonSetName>().map(|name| name.0);
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{text}");
        };
        check("ds/agent", Ok("agent"));
        check("agent", Ok("agent"));
        check("DaemonSet/agent", Ok("agent"));
        check("daemonsets.apps/agent", Ok("agent"));
        check("deploy/agent", Err("deploy is no DaemonSet: say ds/agent"));
        check("ds/", Err("say ds/NAME"));
    }
}
