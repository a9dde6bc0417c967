//! Chooses the runtime of a node, once: the choice is recorded in the data directory, and later starts without flags use
//! the recorded runtime even if its socket is missing. The agent logs the choice and its reason at start.

use std::collections::BTreeSet;
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use kennel_node::agent::{Paths, RuntimeRecord};
use kennel_node::cleanup::{self, Resources};
use kennel_node::runtime::process;

use crate::args::RuntimeKind;

/// containerd's default socket.
const CONTAINERD_SOCKET: &str = "/run/containerd/containerd.sock";

/// Where packages install containerd.
const CONTAINERD: &str = "/usr/bin/containerd";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SelectedRuntime {
    Real(RuntimeRecord),
    Simulated,
}

/// The value of `--runtime`, and the socket.
impl fmt::Display for SelectedRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Real(record) => record.fmt(f),
            Self::Simulated => f.write_str("simulated"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) kind: SelectedRuntime,
    /// For the log.
    pub(crate) reason: String,
    /// The choice may not be what is meant: a first start chose processes, although containerd is installed.
    pub(crate) is_doubtful: bool,
}

impl Choice {
    /// The container runtime's socket, if it is one.
    pub(crate) fn socket(&self) -> Option<&Path> {
        match &self.kind {
            SelectedRuntime::Real(RuntimeRecord::Cri { socket }) => Some(socket),
            SelectedRuntime::Real(RuntimeRecord::Process) | SelectedRuntime::Simulated => None,
        }
    }
}

/// `socket` is the value of `--cri-socket`, `recorded` the choice of an earlier start.
pub(crate) fn choose(
    flag: RuntimeKind,
    socket: Option<&str>,
    recorded: Option<&RuntimeRecord>,
    exists: impl Fn(&Path) -> bool,
) -> Choice {
    let given = socket.map(|text| PathBuf::from(text.strip_prefix("unix://").unwrap_or(text)));
    let known = match recorded {
        Some(RuntimeRecord::Cri { socket }) => Some(socket.clone()),
        Some(RuntimeRecord::Process) | None => None,
    };
    let path = given.clone().or(known);
    let path = path.unwrap_or_else(|| PathBuf::from(CONTAINERD_SOCKET));
    let shown = path.display().to_string();
    let cri = SelectedRuntime::Real(RuntimeRecord::Cri {
        socket: path.clone(),
    });
    let by_flag = || "--runtime selects it".to_owned();
    let mut is_doubtful = false;
    let (kind, reason) = match (flag, recorded) {
        (RuntimeKind::Simulated, _) => (SelectedRuntime::Simulated, by_flag()),
        (RuntimeKind::Process, _) => (SelectedRuntime::Real(RuntimeRecord::Process), by_flag()),
        (RuntimeKind::Cri, _) => (cri, by_flag()),
        // A socket that was given is used even if it does not exist yet.
        (RuntimeKind::Auto, _) if given.is_some() => (cri, "--cri-socket selects it".to_owned()),
        (RuntimeKind::Auto, Some(recorded)) => (
            SelectedRuntime::Real(recorded.clone()),
            "this node has used it before; --runtime changes it".to_owned(),
        ),
        (RuntimeKind::Auto, None) if exists(&path) => (
            cri,
            format!("a container runtime's socket was found at {shown}"),
        ),
        (RuntimeKind::Auto, None) => {
            is_doubtful = exists(Path::new(CONTAINERD));
            let advice = if is_doubtful {
                ", but containerd is installed; this node will run processes from now on: if it is to run containers, start \
                 containerd, and this node once with --runtime=cri"
            } else {
                ""
            };
            (
                SelectedRuntime::Real(RuntimeRecord::Process),
                format!("no container runtime's socket was found at {shown}{advice}"),
            )
        }
    };
    Choice {
        kind,
        reason,
        is_doubtful,
    }
}

/// The runtime that a node has used before: the recorded one or, for data directories of agents that recorded none, what they
/// left. A container runtime is preferred, because processes may be what an agent started without its socket.
pub(crate) fn used_before(data: &Path) -> anyhow::Result<Option<RuntimeRecord>> {
    if let Some(recorded) = RuntimeRecord::read(data)? {
        return Ok(Some(recorded));
    }
    let socket = recorded_sockets(data).pop_first();
    if let Some(socket) = socket {
        return Ok(Some(RuntimeRecord::Cri { socket }));
    }
    if !process::list(data).is_empty() {
        return Ok(Some(RuntimeRecord::Process));
    }
    // Agents of 0.1.0 recorded nothing else of pods in a container runtime.
    let has_pods = has_entries(&Paths::all_pods(data));
    let has_pods = has_pods.with_context(|| format!("cannot read {}", data.display()))?;
    Ok(has_pods.then(|| RuntimeRecord::Cri {
        socket: PathBuf::from(CONTAINERD_SOCKET),
    }))
}

/// A directory that does not exist has none.
fn has_entries(dir: &Path) -> std::io::Result<bool> {
    match std::fs::read_dir(dir) {
        Ok(mut entries) => Ok(entries.next().transpose()?.is_some()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn recorded_sockets(data: &Path) -> BTreeSet<PathBuf> {
    // A damaged record of resources is replaced by the start.
    let resources = Resources::read(data).ok().flatten();
    resources.unwrap_or_default().cri_sockets
}

/// Records the choice. Fails if that changes the node's runtime while another one still has its pods: they would run
/// twice.
pub(crate) async fn record(choice: &Choice, data: &Path) -> anyhow::Result<()> {
    let recorded = RuntimeRecord::read(data)?;
    let chosen = match &choice.kind {
        SelectedRuntime::Real(chosen) => Some(chosen),
        SelectedRuntime::Simulated => None,
    };
    let is_same = |recorded: &RuntimeRecord| chosen.is_some_and(|own| own.is_same(recorded));
    if recorded.as_ref().is_some_and(is_same) {
        return Ok(());
    }
    let mut others = recorded_sockets(data);
    if let Some(RuntimeRecord::Cri { socket }) = &recorded {
        others.insert(socket.clone());
    }
    others.retain(|socket| {
        let socket = socket.clone();
        !is_same(&RuntimeRecord::Cri { socket })
    });
    let processes = chosen != Some(&RuntimeRecord::Process);
    let left = cleanup::pods_in(data, processes, &others).await;
    if !left.is_empty() {
        let left: Vec<String> = left.iter().map(ToString::to_string).collect();
        let before = recorded.map_or_else(String::new, |record| format!(" from {record}"));
        anyhow::bail!(
            "cannot change the runtime of this node{before} to {}: the other one is not empty ({}); end these pods \
             first with `kennel reset --keep-data --data-dir {}`, or start with the --runtime that has them",
            choice.kind,
            left.join("; "),
            data.display()
        );
    }
    let Some(chosen) = chosen else {
        return Ok(());
    };
    let written = chosen.write(data);
    written.with_context(|| format!("cannot write to {}", data.display()))
}

#[cfg(test)]
mod tests {
    use kennel_core::pod::State;
    use kennel_node::agent::identity::{Certificate, authorities, join};

    use super::*;

    fn cri(socket: &str) -> RuntimeRecord {
        RuntimeRecord::Cri {
            socket: socket.into(),
        }
    }

    #[test]
    fn a_socket_decides_unless_a_flag_does() {
        let check = |flag, socket: Option<&str>, exists: bool, expected, text: &str| {
            let choice = choose(flag, socket, None, |_| exists);
            assert_eq!(choice.kind, SelectedRuntime::Real(expected));
            assert!(choice.reason.contains(text), "{}", choice.reason);
        };
        let (auto, process) = (RuntimeKind::Auto, RuntimeRecord::Process);
        let usual = || cri(CONTAINERD_SOCKET);
        check(auto, None, true, usual(), "found at /run/containerd");
        check(auto, None, false, process.clone(), "no container");
        check(auto, Some("/x.sock"), false, cri("/x.sock"), "--cri-socket");
        let url = Some("unix:///x.sock");
        check(auto, url, true, cri("/x.sock"), "--cri-socket");
        check(RuntimeKind::Cri, None, false, usual(), "--runtime");
        check(RuntimeKind::Process, None, true, process, "--runtime");
    }

    #[test]
    fn processes_are_doubtful_where_containerd_is_installed_and_nothing_was_chosen_before() {
        let check = |flag, recorded: Option<&RuntimeRecord>, installed: bool, expected: bool| {
            let exists = |path: &Path| installed && path == Path::new(CONTAINERD);
            let choice = choose(flag, None, recorded, exists);
            assert_eq!(choice.kind, SelectedRuntime::Real(RuntimeRecord::Process));
            assert_eq!(choice.is_doubtful, expected);
            assert_eq!(choice.reason.contains("--runtime=cri"), expected);
        };
        check(RuntimeKind::Auto, None, true, true);
        check(RuntimeKind::Auto, None, false, false);
        check(
            RuntimeKind::Auto,
            Some(&RuntimeRecord::Process),
            true,
            false,
        );
        check(RuntimeKind::Process, None, true, false);
    }

    #[test]
    fn a_recorded_runtime_stays_whatever_is_found() {
        let check = |flag, recorded: RuntimeRecord, exists: bool, expected| {
            let choice = choose(flag, None, Some(&recorded), |_| exists);
            assert_eq!(choice.kind, SelectedRuntime::Real(expected));
        };
        let own = || cri("/own.sock");
        check(RuntimeKind::Auto, own(), false, own());
        check(
            RuntimeKind::Auto,
            RuntimeRecord::Process,
            true,
            RuntimeRecord::Process,
        );
        check(RuntimeKind::Cri, own(), false, own());
        check(RuntimeKind::Process, own(), true, RuntimeRecord::Process);
    }

    #[tokio::test]
    async fn a_runtime_is_replaced_when_it_has_no_pods() {
        let data = tempfile::tempdir().unwrap();
        let data = data.path();
        let choice = |kind| Choice {
            kind: SelectedRuntime::Real(kind),
            reason: String::new(),
            is_doubtful: false,
        };
        let (own, process) = (choice(cri("/nowhere.sock")), choice(RuntimeRecord::Process));
        record(&own, data).await.unwrap();
        assert_eq!(used_before(data).unwrap(), Some(cri("/nowhere.sock")));
        // Whether a runtime that does not answer is empty is not known, if the agent has had pods.
        std::fs::create_dir_all(data.join("pods/uid-1")).unwrap();
        let refused = record(&process, data).await.unwrap_err().to_string();
        assert!(
            refused.contains("/nowhere.sock does not answer"),
            "{refused}"
        );
        assert!(refused.contains("kennel reset --keep-data"), "{refused}");
        assert_eq!(used_before(data).unwrap(), Some(cri("/nowhere.sock")));
        std::fs::remove_dir(data.join("pods/uid-1")).unwrap();
        record(&process, data).await.unwrap();
        assert_eq!(used_before(data).unwrap(), Some(RuntimeRecord::Process));
        // A pod of the process runtime.
        let sandbox = data.join("process/pods/s");
        std::fs::create_dir_all(&sandbox).unwrap();
        let text = r#"{"namespace": "n", "name": "p", "uid": "u", "attempt": 0, "cgroup": ""}"#;
        std::fs::write(sandbox.join("sandbox.json"), text).unwrap();
        let refused = record(&own, data).await.unwrap_err().to_string();
        assert!(
            refused.contains("1 pod in the process runtime: n/p"),
            "{refused}"
        );
    }

    #[test]
    fn recorded_sockets_are_traces_of_a_runtime() {
        let data = tempfile::tempdir().unwrap();
        assert_eq!(used_before(data.path()).unwrap(), None);
        let socket = Path::new("/run/x.sock");
        Resources::add(data.path(), Some(socket), Path::new("/var/log")).unwrap();
        assert_eq!(used_before(data.path()).unwrap(), Some(cri("/run/x.sock")));
    }

    /// Agents of 0.1.0 wrote neither `runtime.json` nor `resources.json`, but the files of each pod.
    #[test]
    fn a_node_of_0_1_0_with_pods_in_containers_does_not_run_them_as_processes() {
        let data = tempfile::tempdir().unwrap();
        let pod = data
            .path()
            .join("pods/9c6da6d1-972f-4be8-905a-8560551f8cd6");
        std::fs::create_dir_all(pod.join("containers/daemon")).unwrap();
        std::fs::write(pod.join("etc-hosts"), "127.0.0.1 localhost\n").unwrap();
        std::fs::create_dir_all(data.path().join("pki")).unwrap();
        let before = used_before(data.path()).unwrap();
        assert_eq!(before, Some(cri(CONTAINERD_SOCKET)));
        let choice = choose(RuntimeKind::Auto, None, before.as_ref(), |_| false);
        assert_eq!(choice.kind, SelectedRuntime::Real(cri(CONTAINERD_SOCKET)));
        let elsewhere = choose(RuntimeKind::Auto, Some("/x"), before.as_ref(), |_| false);
        assert_eq!(elsewhere.kind, SelectedRuntime::Real(cri("/x")));
        // The process runtime's directory alone says nothing: an agent may have opened it once.
        std::fs::create_dir_all(data.path().join("process/pods")).unwrap();
        assert_eq!(used_before(data.path()).unwrap(), before);
        std::fs::remove_dir_all(data.path().join("pods")).unwrap();
        assert_eq!(used_before(data.path()).unwrap(), None);
    }

    /// What an agent of 0.1.0 left on a machine that has been restarted since: its identity, and a sandbox with a container
    /// of the process runtime; it recorded no runtime. Paths and the names of host and boot were changed.
    #[test]
    fn the_data_directory_of_an_agent_0_1_0_is_understood() {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/0.1.0");
        assert_eq!(RuntimeRecord::read(&data).unwrap(), None);
        assert_eq!(used_before(&data).unwrap(), Some(RuntimeRecord::Process));
        let found = process::list(&data);
        let [pod] = &found[..] else {
            panic!("one pod: {found:?}");
        };
        let id = (&*pod.pod.namespace, &*pod.pod.name, &*pod.pod.uid);
        let uid = "9c6da6d1-972f-4be8-905a-8560551f8cd6";
        assert_eq!(id, ("default", "frozen-7zfgb", uid));
        let [run] = &pod.observed.runs[..] else {
            panic!("one run: {:?}", pod.observed);
        };
        assert_eq!(
            (&*run.name, &*run.image, run.attempt),
            ("daemon", "none", 0)
        );
        // The start of an agent finds that nothing of it runs any more.
        let State::Running { started_at } = &run.state else {
            panic!("no exit is recorded: {run:?}");
        };
        assert_eq!(started_at.as_secs(), 1_795_014_300);

        let pki = data.join("pki");
        assert!(join::has_joined(&pki));
        let client = Certificate::read(&pki.join("client.pem")).unwrap().unwrap();
        let authority = std::fs::read_to_string(pki.join("ca.crt")).unwrap();
        let authority = authorities::parse(&authority).unwrap();
        assert!(client.is_signed_by(&authority));
    }
}
