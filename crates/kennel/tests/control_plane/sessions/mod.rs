//! The terminal sessions in `sessions/`, each run with each kubectl against a Kennel of its own with
//! three simulated nodes. `crates/testkit/src/session/mod.rs` says how to read and write them.

use std::collections::BTreeSet;
use std::path::Path;

use kennel_testkit::session::Terminal;
use kennel_testkit::{Kennel, Version};

fn sessions() -> &'static Path {
    Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/control_plane/sessions"
    ))
}

fn check(name: &str, version: Version) {
    let program = env!("CARGO_BIN_EXE_kennel");
    let kennel = Kennel::up(program, 3);
    let file = sessions().join(name).with_extension("session");
    let text = std::fs::read_to_string(&file).unwrap();
    let mut terminal = Terminal::new(version);
    terminal.set("KUBECONFIG", kennel.kubeconfig());
    terminal.program("kennel", &format!("exec {program} \"$@\""));
    terminal.play(&file, &text);
}

/// A test per session and kubectl, and the list of all of them.
macro_rules! sessions {
    ($($name:ident),* $(,)?) => {
        $(mod $name {
            #[test]
            fn with_kubectl_1_20() {
                super::check(stringify!($name), kennel_testkit::Version::V1_20);
            }

            #[test]
            fn with_kubectl_1_32() {
                super::check(stringify!($name), kennel_testkit::Version::V1_32);
            }

            #[test]
            fn with_kubectl_1_36() {
                super::check(stringify!($name), kennel_testkit::Version::V1_36);
            }
        })*

        const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

sessions!(
    access,
    adoption,
    cascades,
    certificates,
    charts,
    cluster,
    configmaps,
    daemonsets,
    disruption,
    drain,
    endpoints,
    first_hour,
    generators,
    identity,
    kustomize,
    namespaces,
    nodes,
    pinned_config,
    placement,
    pod_security,
    pods,
    quotas,
    rollout_undo,
    rollouts,
    scheduling,
    secrets,
    server_side_apply,
    services,
    top,
);

#[test]
fn every_session_is_run() {
    let files = std::fs::read_dir(sessions()).unwrap();
    let files = files.map(|entry| entry.unwrap().path());
    let sessions = files.filter(|path| path.extension().is_some_and(|e| e == "session"));
    let files = sessions.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned());
    let named = NAMES.iter().map(ToString::to_string);
    assert_eq!(
        files.collect::<BTreeSet<_>>(),
        named.collect::<BTreeSet<_>>()
    );
}
