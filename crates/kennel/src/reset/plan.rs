//! What a reset will do, for people.

use std::fmt;
use std::path::PathBuf;

use kennel_node::cleanup::Leftovers;

use super::target::Target;

/// Names of pods to show per runtime.
const NAMES_MAX: usize = 8;

#[derive(Debug, Default)]
pub(super) struct Plan {
    dir: PathBuf,
    /// Where pods run, and their names.
    pods: Vec<(String, Vec<String>)>,
    unreachable: Vec<String>,
    mounts: usize,
    logs: usize,
    network: bool,
    proxy: bool,
    node: bool,
    cluster: bool,
    /// Files that are not Kennel's.
    others: Vec<String>,
    keep_data: bool,
}

impl Plan {
    pub(super) fn of(target: &Target, leftovers: Option<&Leftovers>, keep_data: bool) -> Self {
        let mut plan = Self {
            dir: target.dir.clone(),
            node: target.agent.is_some(),
            cluster: target.server.is_some(),
            others: target.others(),
            keep_data,
            ..Self::default()
        };
        if let Some(leftovers) = leftovers {
            let pods = leftovers.pods().map(|(runtime, pods)| {
                let names = pods
                    .iter()
                    .map(|pod| format!("{}/{}", pod.namespace, pod.name));
                (runtime, names.collect())
            });
            plan.pods = pods.collect();
            let unreachable = leftovers.unreachable().iter();
            plan.unreachable = unreachable.map(ToString::to_string).collect();
            plan.mounts = leftovers.mounts.len();
            plan.logs = leftovers.logs.len();
            plan.network = leftovers.has_network();
            plan.proxy = leftovers.has_proxy();
        }
        plan
    }

    /// Whether there is nothing to end and nothing to delete.
    pub(super) fn is_empty(&self) -> bool {
        self.keep_data && self.pods.is_empty() && self.unreachable.is_empty() && self.mounts == 0
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "The reset of {}", self.dir.display())?;
        for (runtime, names) in &self.pods {
            let count = counted(names.len(), "pod");
            writeln!(f, "  ends {count} {runtime}: {}", some(names))?;
        }
        for unreachable in &self.unreachable {
            writeln!(f, "  CANNOT end {unreachable}")?;
        }
        if self.mounts > 0 {
            writeln!(f, "  unmounts {}", counted(self.mounts, "volume"))?;
        }
        if self.keep_data {
            return writeln!(f, "  keeps all files: the next start runs the pods again");
        }
        if self.network {
            writeln!(
                f,
                "  removes the pod network: routes, the VXLAN device, rules and the CNI configuration"
            )?;
        }
        if self.proxy {
            writeln!(f, "  removes the nftables rules of services")?;
        }
        if self.logs > 0 {
            writeln!(f, "  deletes the logs of {}", counted(self.logs, "pod"))?;
        }
        if self.node {
            writeln!(
                f,
                "  deletes the node's certificates, volumes and container state"
            )?;
        }
        if self.cluster {
            writeln!(
                f,
                "  DELETES THE CLUSTER: all its objects, its certificate authority and keys, its audit log"
            )?;
        }
        if !self.others.is_empty() {
            writeln!(f, "  keeps what is not Kennel's: {}", some(&self.others))?;
        }
        Ok(())
    }
}

fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

/// The first names, and how many more there are.
fn some(names: &[String]) -> String {
    let shown = names[..names.len().min(NAMES_MAX)].join(", ");
    match names.len().saturating_sub(NAMES_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        Plan {
            dir: "/data".into(),
            pods: vec![
                (
                    "in the process runtime".to_owned(),
                    vec!["default/a".to_owned()],
                ),
                (
                    "in the container runtime at /c.sock".to_owned(),
                    (1..=10).map(|number| format!("x/p{number}")).collect(),
                ),
            ],
            mounts: 2,
            logs: 11,
            network: true,
            proxy: true,
            node: true,
            cluster: true,
            others: vec!["encryption.key".to_owned()],
            ..Plan::default()
        }
    }

    #[test]
    fn everything_is_named() {
        let expected = "\
The reset of /data
  ends 1 pod in the process runtime: default/a
  ends 10 pods in the container runtime at /c.sock: x/p1, x/p2, x/p3, x/p4, x/p5, x/p6, x/p7, x/p8 and 2 more
  unmounts 2 volumes
  removes the pod network: routes, the VXLAN device, rules and the CNI configuration
  removes the nftables rules of services
  deletes the logs of 11 pods
  deletes the node's certificates, volumes and container state
  DELETES THE CLUSTER: all its objects, its certificate authority and keys, its audit log
  keeps what is not Kennel's: encryption.key
";
        assert_eq!(plan().to_string(), expected);
    }

    #[test]
    fn nothing_is_deleted_with_keep_data() {
        let plan = Plan {
            keep_data: true,
            unreachable: vec!["pods in the container runtime at /c.sock: gone".to_owned()],
            ..plan()
        };
        let text = plan.to_string();
        assert!(!text.to_lowercase().contains("delete"), "{text}");
        assert!(
            text.contains("CANNOT end pods in the container runtime"),
            "{text}"
        );
        assert!(
            text.ends_with("the next start runs the pods again\n"),
            "{text}"
        );
        assert!(!plan.is_empty());
        let idle = Plan {
            keep_data: true,
            ..Plan::default()
        };
        assert!(idle.is_empty());
    }
}
