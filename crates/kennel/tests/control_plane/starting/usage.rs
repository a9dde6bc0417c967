//! Values of flags: those that cannot be meant are usage errors, and addresses may be names or ports.

use super::{KENNEL, announcement, kennel};

/// Exit code of usage errors.
const USAGE: Option<i32> = Some(2);

#[test]
fn values_that_cannot_be_meant_are_usage_errors_with_an_example() {
    let dir = tempfile::tempdir().unwrap();
    let check = |arguments: &[&str], words: &str| {
        let ended = kennel(dir.path(), arguments);
        assert_eq!(ended.code, USAGE, "{arguments:?}: {}", ended.stderr);
        assert!(
            ended.stderr.contains(words),
            "{arguments:?}: {}",
            ended.stderr
        );
    };
    let url = "it is not a URL such as https://10.0.0.1:6443";
    for server in ["10.0.0.1:6443", "http://10.0.0.1:6443", "kennel"] {
        check(&["agent", "--server", server, "--token", "a.b"], url);
    }
    check(&["token", "create", "--server", "here"], url);
    check(
        &["server", "--log", "verbose"],
        "verbose is not a level: use error, warn, info",
    );
    check(
        &["server", "--log", "kennel=loud"],
        "it is not a filter such as info or warn,kennel::request=debug",
    );
    let address = "it is not an address such as 127.0.0.1:6443, localhost:6443 or :6443";
    for listen in ["6443", "localhost", "https://localhost:6443"] {
        check(&["server", "--listen", listen], address);
        check(&["agent", "--listen", listen], address);
        check(&["up", "--node-listen", listen], address);
        check(&["up", "--dns-listen", listen], address);
        check(&["dns", "--dns-listen", listen], address);
        check(&["controller", "--metrics-listen", listen], address);
        check(&["playground", "--listen", listen], address);
    }
    let left = std::fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(left, 0, "nothing was created");
}

#[test]
fn a_filter_in_the_environment_is_checked_too() {
    let output = std::process::Command::new(KENNEL)
        .args(["completions", "bash"])
        .env("KENNEL_LOG", "inof")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), USAGE, "{said}");
    assert!(said.contains("inof is not a level"), "{said}");
}

#[test]
fn a_server_listens_on_names_and_on_all_addresses() {
    let dir = tempfile::tempdir().unwrap();
    for listen in ["localhost:0", ":0"] {
        let lines = announcement(dir.path(), &["server", "--listen", listen]);
        let words = "Kennel serves the Kubernetes API at https://127.0.0.1:";
        assert!(lines[0].starts_with(words), "{lines:?}");
    }
}
