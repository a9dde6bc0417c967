//! The line of `kennel token create`: for other machines, or with a warning that they do not reach the server.

use kennel_node::agent::machine;
use kennel_testkit::Kennel;

use super::{Ended, KENNEL, kennel};

const WARNING: &str =
    "the server listens on the loopback address only; start it with --listen 0.0.0.0:";

fn create_token(server: &Kennel) -> Ended {
    let flag = format!("--data-dir={}", server.data_dir().display());
    let created = kennel(&server.data_dir(), &["token", "create", &flag]);
    assert_eq!(created.code, Some(0), "{}", created.stderr);
    created
}

/// It also listens on the machine's address, but for pods of this machine alone.
#[test]
fn a_server_on_a_loopback_address_is_for_no_other_machine() {
    let server = Kennel::start(KENNEL, &["server"]);
    let created = create_token(&server);
    let expected = format!(" --server https://{} ", server.address());
    assert!(created.stdout.contains(&expected), "{}", created.stdout);
    assert!(created.stderr.contains(WARNING), "{}", created.stderr);
}

#[test]
fn a_server_on_all_addresses_is_named_by_that_of_the_machine() {
    let own = machine::address(None);
    if own.is_loopback() {
        return kennel_test_support::skip("this machine has no address");
    }
    let server = Kennel::start_at(KENNEL, &["server"], "0.0.0.0:0");
    let created = create_token(&server);
    let expected = format!(" --server https://{own}:{} ", server.address().port());
    assert!(created.stdout.contains(&expected), "{}", created.stdout);
    assert!(!created.stderr.contains(WARNING), "{}", created.stderr);
}
