//! The manifest that the tour edits and applies, and the diff that it shows for each edit. Pure: text only.

/// The name of the DaemonSet, and the value of its label `app`.
pub(super) const NAME: &str = "log-shipper";
pub(super) const FILE: &str = "log-shipper.yaml";

pub(super) const TAINT: &str = "node-role.kubernetes.io/control-plane";

/// The versions that crash; [`super::SCENARIO`] makes simulated pods of them crash.
pub(super) const BROKEN_VERSIONS: [&str; 2] = ["3.0", "3.1"];

/// The lines of a rollout policy.
const POLICY: &str = "    rollout.kennel.dev/stages: 1 manual, 100%      # one node, then a person, then all
    rollout.kennel.dev/on-failure: rollback
    rollout.kennel.dev/max-restarts: \"0\"            # of a new container, before its node has failed
";

/// The parts of the manifest that the tour changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Manifest {
    /// The image tag.
    pub(super) version: &'static str,
    /// The annotation `kubernetes.io/change-cause`.
    pub(super) cause: &'static str,
    pub(super) max_unavailable: &'static str,
    /// Whether it has a rollout policy.
    pub(super) staged: bool,
    /// Whether it tolerates the control-plane taint.
    pub(super) tolerates: bool,
    /// Whether it has a nodeSelector.
    pub(super) selects: bool,
    /// Whether Kennel runs without root, so that pods may not use PID namespaces and mounts.
    pub(super) unprivileged: bool,
}

impl Manifest {
    pub(super) fn yaml(&self) -> String {
        let Self {
            version,
            cause,
            max_unavailable,
            ..
        } = self;
        let policy = if self.staged { POLICY } else { "" };
        let head = format!(
            "\
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: {NAME}
  annotations:
    kubernetes.io/change-cause: {cause}
{policy}spec:
  selector:
    matchLabels: {{app: {NAME}}}
  minReadySeconds: 2         # a pod that has been ready this long is available
  updateStrategy:
    rollingUpdate:
      maxUnavailable: {max_unavailable}
  template:
    metadata:
      labels: {{app: {NAME}}}
    spec:
"
        );
        let last_line = self.last_line();
        let tail = format!(
            "      hostNetwork: true
      terminationGracePeriodSeconds: 5
      containers:            # here, images are only names: nothing is pulled
      - name: {NAME}
        image: {NAME}:{version}
        env:
        - name: NODE
          valueFrom: {{fieldRef: {{fieldPath: spec.nodeName}}}}
        command:
        - sh
        - -c
        - |
          trap exit TERM
          echo \"version {version} ships the logs of $NODE\"
          {last_line}
"
        );
        head + &self.pod_options() + &tail
    }

    /// The last line of the container's script.
    fn last_line(&self) -> &'static str {
        if BROKEN_VERSIONS.contains(&self.version) {
            "exec ship-logs --everywhere"
        } else {
            "sleep infinity & wait"
        }
    }

    /// The optional lines of the pod spec.
    fn pod_options(&self) -> String {
        let mut lines = String::new();
        if self.selects {
            lines += "      nodeSelector: {logs: ship}\n";
        }
        if self.tolerates {
            lines += "      tolerations:\n";
            lines.extend(["      - key: ", TAINT, "\n"]);
            lines += "        operator: Exists\n";
            lines += "        effect: NoSchedule\n";
        }
        if self.unprivileged {
            lines += "      hostPID: true            # without root there are no PID namespaces\n";
            lines += "      automountServiceAccountToken: false   # and no mounts\n";
        }
        lines
    }
}

/// A line diff, with one line of context before each change.
pub(super) fn diff(old: &str, new: &str) -> Vec<String> {
    let (old, new): (Vec<_>, Vec<_>) = (old.lines().collect(), new.lines().collect());
    let mut lines = Vec::new();
    let (mut i, mut j) = (0, 0);
    let mut context = None;
    while i < old.len() || j < new.len() {
        let (removed, added) = next_change(&old[i..], &new[j..]);
        if removed + added == 0 {
            context = Some(new[j]);
            (i, j) = (i + 1, j + 1);
            continue;
        }
        lines.extend(context.take().map(|line| format!("  {line}")));
        lines.extend(old[i..i + removed].iter().map(|line| format!("- {line}")));
        lines.extend(new[j..j + added].iter().map(|line| format!("+ {line}")));
        (i, j) = (i + removed, j + added);
    }
    lines
}

/// The smallest numbers of lines to skip in each text until both agree again.
fn next_change(old: &[&str], new: &[&str]) -> (usize, usize) {
    for skipped in 0..=old.len() + new.len() {
        for removed in 0..=skipped.min(old.len()) {
            let added = skipped - removed;
            if added <= new.len() && old.get(removed) == new.get(added) {
                return (removed, added);
            }
        }
    }
    (old.len(), new.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(old: &str, new: &str, expected: &[&str]) {
        assert_eq!(diff(old, new), expected, "{old:?} to {new:?}");
    }

    #[test]
    fn a_diff_shows_removed_and_added_lines_with_context() {
        check("a\nb\n", "a\nb\n", &[]);
        check("a\nb\n", "a\nc\n", &["  a", "- b", "+ c"]);
        check("a\nb\n", "a\nx\ny\nb\n", &["  a", "+ x", "+ y"]);
        check("a\nx\nb\n", "a\nb\n", &["  a", "- x"]);
        check("a\n", "b\n", &["- a", "+ b"]);
        check(
            "a\n1\nb\nc\n1\nd\n",
            "a\n2\nb\nc\n2\nd\n",
            &["  a", "- 1", "+ 2", "  c", "- 1", "+ 2"],
        );
    }

    #[test]
    fn a_new_version_changes_only_its_own_lines() {
        let old = Manifest {
            version: "1.0",
            cause: "version 1.0",
            max_unavailable: "1",
            staged: false,
            tolerates: false,
            selects: false,
            unprivileged: false,
        };
        let new = Manifest {
            version: "2.0",
            cause: "version 2.0",
            ..old.clone()
        };
        let lines = diff(&old.yaml(), &new.yaml());
        let added = lines.iter().filter(|line| line.starts_with('+'));
        assert_eq!(added.count(), 3, "cause, image and message: {lines:#?}");
        let removed = lines.iter().filter(|line| line.starts_with('-'));
        assert_eq!(removed.count(), 3, "{lines:#?}");
    }
}
