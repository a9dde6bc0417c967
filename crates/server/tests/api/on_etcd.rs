//! The tests of some modules once more, on a real etcd: this binary runs again with [`ENGINE`] set.
//!
//! Chosen are the modules that depend on what engines do in ways of their own: revisions, failed comparisons, the past, watches,
//! allocation, and the end of events. Authorisation, formats and validation do not reach the engine.

use std::process::Command;

use kennel_test_support::Etcd;

use crate::fixture::{ENGINE, ETCD};

fn check(module: &str) {
    if Etcd::start_in_memory().is_none() {
        return;
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .arg(format!("{module}::"))
        .env(ENGINE, ETCD)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{errors}");
    assert!(
        said.contains(" passed") && !said.contains(" 0 passed"),
        "{said}"
    );
}

macro_rules! modules {
    ($($module:ident)*) => {$(
        #[test]
        fn $module() {
            check(stringify!($module));
        }
    )*};
}

modules! {
    addresses
    apply
    bootstrap
    coalescing
    creation
    deletion
    disruption
    events
    generations
    lists
    namespaces
    own_services
    patches
    quotas
    revisions
    updates
    watches
}
