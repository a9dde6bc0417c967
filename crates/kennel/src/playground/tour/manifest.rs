//! The one file that the tour edits and applies, and what each edit changes in it. Only text: nothing here
//! knows a cluster or a disk.

/// The DaemonSet's name, its file's, and its label's value.
pub(super) const NAME: &str = "log-shipper";
/// The file, as commands name it.
pub(super) const FILE: &str = "log-shipper.yaml";

/// The taint of control planes.
pub(super) const TAINT: &str = "node-role.kubernetes.io/control-plane";

/// The version that cannot start. [`super::SCENARIO`] knows it, too.
pub(super) const BROKEN: &str = "3.0";

/// What can be chosen in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Manifest {
    /// The version that is shipped with.
    pub(super) version: &'static str,
    /// Why this was applied, for the history.
    pub(super) cause: &'static str,
    /// How many nodes may be without at once.
    pub(super) max_unavailable: &'static str,
    /// Whether it goes to the control plane, too.
    pub(super) tolerates: bool,
    /// Whether it goes only where the label is.
    pub(super) selects: bool,
    /// Whether its processes are those of a user who is not root, who can do less.
    pub(super) unprivileged: bool,
}

impl Manifest {
    /// The file's text.
    pub(super) fn text(&self) -> String {
        let Self {
            version,
            cause,
            max_unavailable,
            ..
        } = self;
        let head = format!(
            "\
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: {NAME}
  annotations:
    kubernetes.io/change-cause: {cause}
spec:
  selector:
    matchLabels: {{app: {NAME}}}
  minReadySeconds: 2         # a pod that has been ready for so long is available
  updateStrategy:
    rollingUpdate:
      maxUnavailable: {max_unavailable}
  template:
    metadata:
      labels: {{app: {NAME}}}
    spec:
"
        );
        let work = self.work();
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
          {work}
"
        );
        head + &self.choices() + &tail
    }

    /// What the process does after its first words.
    fn work(&self) -> &'static str {
        if self.version == BROKEN {
            "exec ship-logs --everywhere"
        } else {
            "sleep infinity & wait"
        }
    }

    /// The lines that say where it goes, and those that it needs to run there.
    fn choices(&self) -> String {
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
            lines += "      hostPID: true            # without root, processes cannot be hidden,\n";
            lines += "      automountServiceAccountToken: false   # and nothing can be mounted\n";
        }
        lines
    }
}

/// What changed from one text to the next: lines with `-` and `+`, and before each place the line above it.
pub(super) fn difference(old: &str, new: &str) -> Vec<String> {
    let (old, new): (Vec<_>, Vec<_>) = (old.lines().collect(), new.lines().collect());
    let mut shown = Vec::new();
    let (mut i, mut j) = (0, 0);
    let mut above = None;
    while i < old.len() || j < new.len() {
        let (gone, come) = next_change(&old[i..], &new[j..]);
        if gone + come == 0 {
            above = Some(new[j]);
            (i, j) = (i + 1, j + 1);
            continue;
        }
        shown.extend(above.take().map(|line| format!("  {line}")));
        shown.extend(old[i..i + gone].iter().map(|line| format!("- {line}")));
        shown.extend(new[j..j + come].iter().map(|line| format!("+ {line}")));
        (i, j) = (i + gone, j + come);
    }
    shown
}

/// How many lines of each have to be passed over until both agree again: the fewest.
fn next_change(old: &[&str], new: &[&str]) -> (usize, usize) {
    for passed in 0..=old.len() + new.len() {
        for gone in 0..=passed.min(old.len()) {
            let come = passed - gone;
            if come <= new.len() && old.get(gone) == new.get(come) {
                return (gone, come);
            }
        }
    }
    (old.len(), new.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(old: &str, new: &str, expected: &[&str]) {
        assert_eq!(difference(old, new), expected, "{old:?} to {new:?}");
    }

    #[test]
    fn differences_show_what_goes_and_comes_below_the_line_above() {
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
    fn an_edit_changes_only_what_it_says() {
        let old = Manifest {
            version: "1.0",
            cause: "version 1.0",
            max_unavailable: "1",
            tolerates: false,
            selects: false,
            unprivileged: false,
        };
        let new = Manifest {
            version: "2.0",
            cause: "version 2.0",
            ..old.clone()
        };
        let shown = difference(&old.text(), &new.text());
        let come = shown.iter().filter(|line| line.starts_with('+'));
        assert_eq!(come.count(), 3, "cause, image and words: {shown:#?}");
        let gone = shown.iter().filter(|line| line.starts_with('-'));
        assert_eq!(gone.count(), 3, "{shown:#?}");
    }
}
