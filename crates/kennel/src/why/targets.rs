//! What `kennel why` is asked about, in kubectl's syntax: `ds/web pod/web-x7k2p`, `ds web db`, `web`.

use crate::inspect::options::is_daemon_set_kind;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    DaemonSet(String),
    Pod(String),
    /// A DaemonSet, or else a pod.
    Name(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Targets {
    /// Every DaemonSet.
    All,
    Named(Vec<Target>),
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TargetError {
    #[error("{kind} is not a DaemonSet or a pod: use ds/{name}")]
    Kind { kind: String, name: String },
    #[error("use {0}/NAME")]
    Name(String),
    #[error("name the pods: pod/NAME")]
    NoPod,
    #[error("use either {kind} NAME or {word}, not both")]
    Mixed { kind: String, word: String },
}

#[derive(Clone, Copy)]
enum Kind {
    DaemonSet,
    Pod,
}

impl Kind {
    fn parse(word: &str) -> Option<Self> {
        let is_pod = matches!(word.to_ascii_lowercase().as_str(), "po" | "pod" | "pods");
        if is_pod {
            return Some(Self::Pod);
        }
        is_daemon_set_kind(word).then_some(Self::DaemonSet)
    }

    fn target(self, name: &str) -> Target {
        match self {
            Self::DaemonSet => Target::DaemonSet(name.to_owned()),
            Self::Pod => Target::Pod(name.to_owned()),
        }
    }
}

pub(super) fn parse(words: &[String]) -> Result<Targets, TargetError> {
    let Some((first, rest)) = words.split_first() else {
        return Ok(Targets::All);
    };
    let Some(kind) = Kind::parse(first) else {
        if let ([name, ..], true) = (rest, is_other_kind(first)) {
            let (kind, name) = (first.clone(), name.clone());
            return Err(TargetError::Kind { kind, name });
        }
        let named = words.iter().map(|word| target(word));
        return named.collect::<Result<_, _>>().map(Targets::Named);
    };
    if let Some(word) = rest.iter().find(|word| word.contains('/')) {
        let (kind, word) = (first.clone(), word.clone());
        return Err(TargetError::Mixed { kind, word });
    }
    match (kind, rest) {
        (Kind::DaemonSet, []) => Ok(Targets::All),
        (Kind::Pod, []) => Err(TargetError::NoPod),
        (kind, names) => {
            let named = names.iter().map(|name| kind.target(name));
            Ok(Targets::Named(named.collect()))
        }
    }
}

/// Whether a word before a name is kubectl's for another kind of workload.
fn is_other_kind(word: &str) -> bool {
    let kinds = [
        "deploy",
        "deployment",
        "deployments",
        "rs",
        "replicaset",
        "replicasets",
        "sts",
        "statefulset",
        "statefulsets",
        "job",
        "jobs",
    ];
    kinds.contains(&word.to_ascii_lowercase().as_str())
}

fn target(word: &str) -> Result<Target, TargetError> {
    let Some((kind, name)) = word.split_once('/') else {
        return Ok(Target::Name(word.to_owned()));
    };
    let Some(parsed) = Kind::parse(kind) else {
        let (kind, name) = (kind.to_owned(), name.to_owned());
        return Err(TargetError::Kind { kind, name });
    };
    if name.is_empty() || name.contains('/') {
        return Err(TargetError::Name(kind.to_owned()));
    }
    Ok(parsed.target(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &str) -> Result<Targets, String> {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        parse(&words).map_err(|error| error.to_string())
    }

    fn set(name: &str) -> Target {
        Target::DaemonSet(name.to_owned())
    }

    fn pod(name: &str) -> Target {
        Target::Pod(name.to_owned())
    }

    #[test]
    fn targets_are_named_in_kubectls_syntax() {
        let check = |words: &str, expected: &[Target]| {
            assert_eq!(
                parsed(words),
                Ok(Targets::Named(expected.to_vec())),
                "{words}"
            );
        };
        check("ds/web", &[set("web")]);
        check("ds web", &[set("web")]);
        check("daemonsets.apps web db", &[set("web"), set("db")]);
        check("DaemonSet/web ds/db", &[set("web"), set("db")]);
        check("web", &[Target::Name("web".to_owned())]);
        check("ds/ds", &[set("ds")]);
        check("pod/p1 ds/web", &[pod("p1"), set("web")]);
        check("po p1 p2", &[pod("p1"), pod("p2")]);
        assert_eq!(parsed(""), Ok(Targets::All));
        assert_eq!(parsed("ds"), Ok(Targets::All));
    }

    #[test]
    fn other_words_are_refused() {
        let check = |words: &str, expected: &str| {
            assert_eq!(parsed(words), Err(expected.to_owned()), "{words}");
        };
        check(
            "deploy/web",
            "deploy is not a DaemonSet or a pod: use ds/web",
        );
        check(
            "deploy web",
            "deploy is not a DaemonSet or a pod: use ds/web",
        );
        check("ds/", "use ds/NAME");
        check("ds/a/b", "use ds/NAME");
        check("pod", "name the pods: pod/NAME");
        check("ds web ds/db", "use either ds NAME or ds/db, not both");
    }
}
