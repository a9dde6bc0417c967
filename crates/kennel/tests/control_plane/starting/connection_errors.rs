//! A server that cannot be reached: every command says why, and what to check.

use std::fs;
use std::path::Path;

use kennel_testkit::{Agent, AgentPlan, Kennel};
use tempfile::TempDir;

use super::{KENNEL, kennel};

/// The commands that ask a server once, with their exit codes for an unreachable one.
const COMMANDS: [(&[&str], i32); 6] = [
    (&["why", "ds/web"], 2),
    (&["rollout", "status", "ds/web"], 2),
    (&["token", "list"], 1),
    (&["token", "create"], 1),
    (&["version"], 1),
    (&["bench", "--nodes=1"], 1),
];

/// Each command fails for this reason, which it names once.
fn all_say(kubeconfig: &Path, words: &str) {
    let dir = tempfile::tempdir().unwrap();
    let flag = format!("--kubeconfig={}", kubeconfig.display());
    for (command, code) in COMMANDS {
        let ended = kennel(dir.path(), &[command, &[flag.as_str()]].concat());
        let said = &ended.stderr;
        assert_eq!(ended.code, Some(code), "{command:?}: {said}");
        assert_eq!(said.matches(words).count(), 1, "{command:?}: {said}");
        for noise in ["ServiceError", "kube_client"] {
            assert!(!said.contains(noise), "{command:?}: {said}");
        }
    }
}

/// Those that retry say so in their log.
fn agents_log(kubeconfig: &Path, words: &str) {
    let plan = AgentPlan {
        binary: KENNEL.into(),
        node: "n1".to_owned(),
        arguments: vec![
            "--runtime=process".to_owned(),
            format!("--kubeconfig={}", kubeconfig.display()),
        ],
    };
    Agent::start(plan, None).wait_for(words);
}

fn copied(kubeconfig: &Path) -> (TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let copy = dir.path().join("kubeconfig");
    fs::copy(kubeconfig, &copy).unwrap();
    (dir, copy)
}

#[test]
fn a_refused_connection_names_the_address_and_what_to_check() {
    let server = Kennel::server(KENNEL);
    let (_dir, kubeconfig) = copied(&server.kubeconfig());
    let url = server.url().to_owned();
    drop(server);
    let words = format!(
        "{url} refuses the connection: check that the server runs, and that this is the address it listens on"
    );
    all_say(&kubeconfig, &words);
    agents_log(&kubeconfig, &words);
}

#[test]
fn an_old_kubeconfig_is_recognised_by_its_authority() {
    let old = Kennel::server(KENNEL);
    let (_dir, kubeconfig) = copied(&old.kubeconfig());
    let old_url = old.url().to_owned();
    drop(old);
    let new = Kennel::server(KENNEL);
    let text = fs::read_to_string(&kubeconfig).unwrap();
    fs::write(&kubeconfig, text.replace(&old_url, new.url())).unwrap();
    let words = "this kubeconfig belongs to another cluster (its certificate authority differs): use the kubeconfig of";
    all_say(&kubeconfig, words);
    agents_log(&kubeconfig, words);
}
