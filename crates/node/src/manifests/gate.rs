//! One pod at a time under each name: the new one of a file starts when the old one is over.
//!
//! What was running when the agent began counts as old, too, if no file asks for it any more.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::folder::Pods;
use crate::pods::Pod;
use crate::runtime::PodId;

/// What there is on this machine.
pub(super) trait Present {
    /// Is a pod still being looked after?
    fn is_kept(&self, uid: &str) -> bool;
    /// Is there anything left of another pod of this name?
    fn has_another(&self, id: &PodId) -> bool;
}

/// What to tell.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// A pod is to run.
    Start(Arc<Pod>),
    /// A pod is to end.
    End(PodId),
    /// A pod that was to end has ended.
    Over(PodId),
}

/// See the [module](self).
#[derive(Default)]
pub(super) struct Gate {
    wanted: Pods,
    started: Pods,
    ending: BTreeMap<String, PodId>,
}

impl Gate {
    /// What the files ask for now.
    pub(super) fn wants(&mut self, pods: Pods) {
        self.wanted = pods;
    }

    /// What can be told now.
    pub(super) fn steps(&mut self, present: &impl Present) -> Vec<Step> {
        let mut steps = Vec::new();
        self.over(present, &mut steps);
        self.end(&mut steps);
        self.start(present, &mut steps);
        steps
    }

    /// Does anything wait for the end of something else, or something that ends for its being over?
    pub(super) fn is_waiting(&self) -> bool {
        !self.ending.is_empty() || self.waiting().next().is_some()
    }

    /// Is it necessary to know what the runtime has?
    pub(super) fn needs_runtime(&self) -> bool {
        self.waiting().next().is_some()
    }

    fn waiting(&self) -> impl Iterator<Item = (&(String, String), &Arc<Pod>)> {
        let started = |key: &(String, String), pod: &Pod| {
            let started = self.started.get(key);
            started.is_some_and(|started| started.id.uid == pod.id.uid)
        };
        let wanted = self.wanted.iter();
        wanted.filter(move |(key, pod)| !started(key, pod))
    }

    fn over(&mut self, present: &impl Present, steps: &mut Vec<Step>) {
        let over = |uid: &String, _: &mut PodId| !present.is_kept(uid);
        let over = self.ending.extract_if(.., over);
        steps.extend(over.map(|(_, id)| Step::Over(id)));
    }

    fn end(&mut self, steps: &mut Vec<Step>) {
        let wanted = &self.wanted;
        let unwanted = |key: &(String, String), pod: &mut Arc<Pod>| {
            let wanted = wanted.get(key);
            wanted.is_none_or(|wanted| wanted.id.uid != pod.id.uid)
        };
        for (_, pod) in self.started.extract_if(.., unwanted) {
            self.ending.insert(pod.id.uid.clone(), pod.id.clone());
            steps.push(Step::End(pod.id.clone()));
        }
    }

    fn start(&mut self, present: &impl Present, steps: &mut Vec<Step>) {
        let ends = |id: &PodId| {
            let mut ending = self.ending.values();
            ending.any(|other| (&other.namespace, &other.name) == (&id.namespace, &id.name))
        };
        let free = |pod: &Pod| !ends(&pod.id) && !present.has_another(&pod.id);
        let ready = self.waiting().filter(|(_, pod)| free(pod));
        let ready: Vec<_> = ready
            .map(|(key, pod)| (key.clone(), Arc::clone(pod)))
            .collect();
        for (key, pod) in ready {
            steps.push(Step::Start(Arc::clone(&pod)));
            self.started.insert(key, pod);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::pods::Origin;

    #[derive(Default)]
    struct Machine {
        kept: Vec<&'static str>,
        left: Vec<&'static str>,
    }

    impl Present for Machine {
        fn is_kept(&self, uid: &str) -> bool {
            self.kept.contains(&uid)
        }
        fn has_another(&self, id: &PodId) -> bool {
            self.left.iter().any(|uid| *uid != id.uid)
        }
    }

    fn pod(uid: &str) -> Pods {
        let metadata = json!({"namespace": "ns", "name": "p", "uid": uid});
        let object = json!({"metadata": metadata, "spec": {"containers": []}});
        let pod = Pod::parse(object, Origin::File).unwrap();
        Pods::from([(("ns".to_owned(), "p".to_owned()), Arc::new(pod))])
    }

    fn told(gate: &mut Gate, machine: &Machine) -> Vec<String> {
        let tell = |step| match step {
            Step::Start(pod) => format!("start {}", pod.id.uid),
            Step::End(id) => format!("end {}", id.uid),
            Step::Over(id) => format!("over {}", id.uid),
        };
        gate.steps(machine).into_iter().map(tell).collect()
    }

    #[test]
    fn the_new_pod_starts_when_the_old_one_is_over() {
        let (mut gate, mut machine) = (Gate::default(), Machine::default());
        gate.wants(pod("a"));
        assert_eq!(told(&mut gate, &machine), ["start a"]);
        machine.kept.push("a");
        gate.wants(pod("b"));
        assert_eq!(told(&mut gate, &machine), ["end a"]);
        assert_eq!(told(&mut gate, &machine), [""; 0]);
        assert!(gate.is_waiting());
        machine.kept.clear();
        assert_eq!(told(&mut gate, &machine), ["over a", "start b"]);
        assert!(!gate.is_waiting());
    }

    #[test]
    fn a_file_that_comes_back_unchanged_waits_too() {
        let (mut gate, mut machine) = (Gate::default(), Machine::default());
        gate.wants(pod("a"));
        told(&mut gate, &machine);
        machine.kept.push("a");
        gate.wants(Pods::new());
        assert_eq!(told(&mut gate, &machine), ["end a"]);
        gate.wants(pod("a"));
        assert_eq!(told(&mut gate, &machine), [""; 0]);
        machine.kept.clear();
        assert_eq!(told(&mut gate, &machine), ["over a", "start a"]);
    }

    #[test]
    fn what_is_left_from_before_ends_first() {
        let (mut gate, mut machine) = (Gate::default(), Machine::default());
        machine.left = vec!["old", "new"];
        gate.wants(pod("new"));
        assert_eq!(told(&mut gate, &machine), [""; 0]);
        machine.left = vec!["new"];
        assert_eq!(told(&mut gate, &machine), ["start new"]);
    }
}
