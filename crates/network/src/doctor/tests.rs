//! Checks, by example.

use super::*;

#[test]
fn missing_plugins_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let plugins = dir.path().join("bin");
    std::fs::create_dir(&plugins).unwrap();
    let options = Options {
        places: cni::Places {
            configurations: dir.path().join("net.d"),
            plugins: vec![plugins.clone()],
        },
        dns: Ipv4Addr::LOCALHOST,
        name: String::new(),
    };
    let find = || cni_finding(&options, Some(&Value::Null), true);
    for (plugin, before) in [
        ("ptp", "the plugins ptp and host-local are missing"),
        ("host-local", "the plugins host-local are missing"),
        (
            "portmap",
            "the plugin portmap is missing, so that host ports",
        ),
    ] {
        let found = find();
        assert!(!found.is_ok && found.text.contains(before), "{found:?}");
        std::fs::write(plugins.join(plugin), "").unwrap();
    }
    assert!(find().is_ok);
}

#[test]
fn a_configuration_beside_ours_is_a_problem_and_another_networks_is_none() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        places: cni::Places {
            configurations: dir.path().to_owned(),
            plugins: Vec::new(),
        },
        dns: Ipv4Addr::LOCALHOST,
        name: String::new(),
    };
    std::fs::write(dir.path().join("05-other.conflist"), "{}").unwrap();
    let beside = cni_finding(&options, Some(&Value::Null), true);
    let said = "05-other.conflist is there beside our 10-kennel.conflist";
    assert!(!beside.is_ok && beside.text.contains(said), "{beside:?}");
    let alone = cni_finding(&options, None, false);
    let said = "05-other.conflist belongs to another network";
    assert!(alone.is_ok && alone.text.contains(said), "{alone:?}");
}

#[test]
fn a_name_server_that_is_not_there_is_a_problem() {
    let options = Options {
        places: cni::Places::default(),
        dns: Ipv4Addr::LOCALHOST,
        name: "kubernetes.default.svc.cluster.local".to_owned(),
    };
    let found = services::names(&options, &[]);
    assert!(found.text.contains("127.0.0.1"), "{found:?}");
}
