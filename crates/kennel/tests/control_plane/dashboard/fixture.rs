//! A rollout in stages on simulated nodes, and its dashboard.

use kennel_testkit::{Dashboard, Visitor};
use serde_json::Value;

pub(super) use crate::rollout::fixture::Fixture as Rollout;
pub(super) use crate::why::fixture::KENNEL;

/// Below which everything about the DaemonSet is.
pub(super) const AGENT: &str = "/api/daemonsets/default/agent";

pub(super) struct Fixture {
    pub(super) rollout: Rollout,
    pub(super) dashboard: Dashboard,
    pub(super) visitor: Visitor,
}

impl Fixture {
    /// So many nodes with version 1, a policy, and a dashboard that may be read only.
    pub(super) fn new(nodes: usize, policy: &[(&str, &str)], flags: &[&str]) -> Self {
        let rollout = Rollout::new(nodes, policy);
        let kubeconfig = rollout.cluster.kennel.kubeconfig();
        let dashboard = Dashboard::start(KENNEL, &kubeconfig, flags);
        Self {
            visitor: dashboard.visitor(),
            rollout,
            dashboard,
        }
    }

    pub(super) fn kubectl(&self, arguments: &[&str]) {
        self.rollout.cluster.kubectl.run(arguments).ok();
    }

    /// The answer to a GET that succeeds.
    pub(super) fn get(&self, path: &str) -> Value {
        let answer = self.visitor.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()
    }
}

/// A page that reads a stream of one DaemonSet: it keeps the cells as a browser does.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) nodes: Vec<String>,
    pub(super) cells: Vec<char>,
    pub(super) groups: Vec<String>,
    pub(super) group: Vec<usize>,
    pub(super) counts: Value,
}

impl Page {
    /// Enters a `picture` or a `delta`.
    pub(super) fn enter(&mut self, event: &str, data: &Value) {
        let number = |value: &Value| usize::try_from(value.as_u64().unwrap()).unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let letter = |value: &Value| text(value).chars().next().unwrap();
        let list = |key: &str| data[key].as_array().cloned().unwrap_or_default();
        match event {
            "picture" => {
                self.nodes = list("nodes").iter().map(text).collect();
                self.groups = list("groups").iter().map(text).collect();
                self.group = list("group").iter().map(number).collect();
                self.cells = text(&data["cells"]).chars().collect();
            }
            "delta" => {
                self.groups.extend(list("groups").iter().map(text));
                for node in list("add") {
                    self.nodes.push(text(&node["name"]));
                    self.group.push(number(&node["group"]));
                    self.cells.push(letter(&node["state"]));
                }
                for cell in list("cells") {
                    self.cells[number(&cell[0])] = letter(&cell[1]);
                }
                for group in list("group") {
                    self.group[number(&group[0])] = number(&group[1]);
                }
            }
            _ => return,
        }
        self.counts = data["counts"].clone();
        self.check();
    }

    /// The counts are those of the cells.
    fn check(&self) {
        let states = [
            ("old", 'o'),
            ("updating", 'u'),
            ("new", 'n'),
            ("failed", 'f'),
            ("down", 'd'),
            ("notEligible", 'x'),
            ("waiting", 'w'),
        ];
        for (name, letter) in states {
            assert_eq!(self.counts[name], self.count(letter), "{name} in {self:?}");
        }
    }

    pub(super) fn count(&self, letter: char) -> usize {
        self.cells.iter().filter(|cell| **cell == letter).count()
    }

    pub(super) fn cell(&self, node: &str) -> char {
        let index = self.nodes.iter().position(|name| name == node);
        self.cells[index.unwrap_or_else(|| panic!("no {node} in {self:?}"))]
    }

    pub(super) fn group_of(&self, node: &str) -> &str {
        let index = self.nodes.iter().position(|name| name == node).unwrap();
        &self.groups[self.group[index]]
    }
}
