//! Valid and invalid scenario files, and the rules that they apply.

use std::time::Duration;

use super::*;

fn check_error(text: &str, expected: &[&str]) {
    let error = Scenario::parse(text).expect_err(text).to_string();
    for words in expected {
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn an_invalid_file_is_refused_with_line_and_reason() {
    check_error("pods:\n- pul: 2s\n", &["line 2", "pul"]);
    check_error("pods:\n- image: x\n  pull: 2\n", &["line 3", "2"]);
    check_error("pods:\n- pull: soon\n", &["line 2", "soon", "1s-5s"]);
    check_error("pods:\n- percent: 101\n", &["line 2", "between 0 and 100"]);
    check_error(
        "nodes:\n- taints:\n  - {key: a, effect: Never}\n",
        &["line 3", "Never"],
    );
    check_error("nodes:\n- labels: {'a b': c}\n", &["line 2", "a b"]);
    check_error("nodes:\n- capacity: {cpu: much}\n", &["line 2", "much"]);
    check_error("nodes:\n- silent: {for: 5s}\n", &["line 2", "at", "every"]);
    check_error("nodes:\n- silent: {every: 0s}\n", &["line 2", "every"]);
}

#[test]
fn with_an_empty_file_every_step_is_immediate() {
    let scenario = Scenario::parse("").unwrap();
    let pod = PodFacts {
        node: "n",
        namespace: "ns",
        images: &["i"],
    };
    let rule = scenario.pod_rule(pod, SeededRandom::new(1), SeededRandom::new(1));
    assert_eq!(scenario.behaviour(rule, 0), PodBehaviour::IMMEDIATE);
}

#[test]
fn the_first_rule_that_matches_decides() {
    let scenario = "pods:\n- {image: 'bad*', unpullable: true}\n- {node: n-1, start: 1s}\n\
                    - {percent: 0, start: 9s}\n- {start: 2s, exits: {after: 3s, times: 2}}\n";
    let scenario = Scenario::parse(scenario).unwrap();
    let behaviour = |node, image, restarts| {
        let pod = PodFacts {
            node,
            namespace: "ns",
            images: &["side", image],
        };
        let random = SeededRandom::new(1);
        scenario.behaviour(scenario.pod_rule(pod, random, random), restarts)
    };
    let second = Duration::from_secs(1);
    assert!(behaviour("n-1", "bad:1", 0).unpullable);
    assert_eq!(behaviour("n-1", "good", 0).start, second);
    assert_eq!(behaviour("n-2", "good", 0).start, 2 * second);
    let exit = Exit {
        after: 3 * second,
        code: 1,
    };
    assert_eq!(behaviour("n-2", "good", 1).exit, Some(exit));
    assert_eq!(behaviour("n-2", "good", 2).exit, None);
}

#[test]
fn randomness_depends_on_the_seed_and_the_pod_alone() {
    let scenario = Scenario::parse("pods: [{percent: 30, start: 1s-1h}]").unwrap();
    let behaviours = |seed: u64| -> Vec<PodBehaviour> {
        let of = |number| {
            let pod = PodFacts {
                node: "n",
                namespace: "ns",
                images: &["i"],
            };
            let random = SeededRandom::new(seed);
            let rule = scenario.pod_rule(pod, random, random.numbered(number));
            scenario.behaviour(rule, 0)
        };
        (0..100).map(of).collect()
    };
    assert_eq!(behaviours(1), behaviours(1));
    assert_ne!(behaviours(1), behaviours(2));
    let slow = behaviours(1)
        .iter()
        .filter(|behaviour| **behaviour != PodBehaviour::IMMEDIATE)
        .count();
    assert!((15..45).contains(&slow), "{slow}");
}

/// The nodes among 5,000 on which this pod of the DaemonSet, counted from its first, crashes before it is ready.
fn broken_nodes(scenario: &Scenario, image: &str, ordinal: u64) -> Vec<String> {
    let breaks = |name: &String| {
        let random = SeededRandom::new(0).named(name);
        let pod = PodFacts {
            node: name,
            namespace: "default",
            images: &[image],
        };
        let rule = scenario.pod_rule(pod, random, random.numbered(ordinal));
        let behaviour = scenario.behaviour(rule, 0);
        let exits = |exit: Exit| exit.code != 0 && exit.after <= behaviour.ready;
        behaviour.exit.is_some_and(exits)
    };
    let names = (1..=5_000).map(|number| format!("sim-{number}"));
    names.filter(breaks).collect()
}

#[test]
fn version_2_of_the_bad_release_breaks_the_same_node_in_fifty_each_time() {
    let scenario = builtin("bad-release").unwrap().unwrap();
    let broken = broken_nodes(&scenario, "example.com/agent:2", 1);
    assert!((80..=120).contains(&broken.len()), "{}", broken.len());
    assert_eq!(broken, broken_nodes(&scenario, "example.com/agent:2", 2));
    for image in ["example.com/agent:1", "example.com/agent:2.1", "agent"] {
        assert_eq!(broken_nodes(&scenario, image, 1), [""; 0], "{image}");
    }
}

#[test]
fn every_built_in_scenario_can_be_read() {
    for name in BUILTIN_NAMES {
        let scenario = builtin(name).unwrap().unwrap();
        assert!(!scenario.pods.is_empty(), "{name}");
    }
    assert!(builtin("world.yaml").is_none());
}
