//! Runs one static pod per name at a time: a changed manifest's new pod starts when the old one has terminated.
//!
//! Pods that ran before the agent started and that no manifest names any more count as old, too.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::directory::StaticPods;
use crate::pods::Pod;
use crate::runtime::PodId;

/// What runs on this machine.
pub(super) trait RunningPods {
    /// Whether the pod manager still has the pod.
    fn is_managed(&self, uid: &str) -> bool;
    /// Whether the runtime has another pod of the same name.
    fn is_name_in_use(&self, id: &PodId) -> bool;
}

#[derive(Clone, Debug)]
pub(super) enum Step {
    Start(Arc<Pod>),
    Stop(PodId),
    /// A stopped pod has terminated.
    Stopped(PodId),
}

#[derive(Default)]
pub(super) struct Sequencer {
    desired: StaticPods,
    started: StaticPods,
    stopping: BTreeMap<String, PodId>,
}

impl Sequencer {
    pub(super) fn set_desired(&mut self, pods: StaticPods) {
        self.desired = pods;
    }

    /// The steps that can be taken now. Takes them as done.
    pub(super) fn steps(&mut self, running: &impl RunningPods) -> Vec<Step> {
        let mut steps = Vec::new();
        self.find_stopped(running, &mut steps);
        self.stop(&mut steps);
        self.start(running, &mut steps);
        steps
    }

    /// Whether a pod has yet to terminate, or another waits for that.
    pub(super) fn is_waiting(&self) -> bool {
        !self.stopping.is_empty() || self.waiting().next().is_some()
    }

    /// Whether [`RunningPods::is_name_in_use`] decides about a step.
    pub(super) fn needs_runtime(&self) -> bool {
        self.waiting().next().is_some()
    }

    fn waiting(&self) -> impl Iterator<Item = (&(String, String), &Arc<Pod>)> {
        let started = |key: &(String, String), pod: &Pod| {
            let started = self.started.get(key);
            started.is_some_and(|started| started.id.uid == pod.id.uid)
        };
        let desired = self.desired.iter();
        desired.filter(move |(key, pod)| !started(key, pod))
    }

    fn find_stopped(&mut self, running: &impl RunningPods, steps: &mut Vec<Step>) {
        let stopped = |uid: &String, _: &mut PodId| !running.is_managed(uid);
        let stopped = self.stopping.extract_if(.., stopped);
        steps.extend(stopped.map(|(_, id)| Step::Stopped(id)));
    }

    fn stop(&mut self, steps: &mut Vec<Step>) {
        let desired = &self.desired;
        let superseded = |key: &(String, String), pod: &mut Arc<Pod>| {
            let desired = desired.get(key);
            desired.is_none_or(|desired| desired.id.uid != pod.id.uid)
        };
        for (_, pod) in self.started.extract_if(.., superseded) {
            self.stopping.insert(pod.id.uid.clone(), pod.id.clone());
            steps.push(Step::Stop(pod.id.clone()));
        }
    }

    fn start(&mut self, running: &impl RunningPods, steps: &mut Vec<Step>) {
        let stopping = |id: &PodId| {
            let mut stopping = self.stopping.values();
            stopping.any(|other| (&other.namespace, &other.name) == (&id.namespace, &id.name))
        };
        let free = |pod: &Pod| !stopping(&pod.id) && !running.is_name_in_use(&pod.id);
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
        managed: Vec<&'static str>,
        in_runtime: Vec<&'static str>,
    }

    impl RunningPods for Machine {
        fn is_managed(&self, uid: &str) -> bool {
            self.managed.contains(&uid)
        }
        fn is_name_in_use(&self, id: &PodId) -> bool {
            self.in_runtime.iter().any(|uid| *uid != id.uid)
        }
    }

    fn pod(uid: &str) -> StaticPods {
        let metadata = json!({"namespace": "ns", "name": "p", "uid": uid});
        let object = json!({"metadata": metadata, "spec": {"containers": []}});
        let pod = Pod::parse(object, Origin::File).unwrap();
        StaticPods::from([(("ns".to_owned(), "p".to_owned()), Arc::new(pod))])
    }

    fn steps(sequencer: &mut Sequencer, machine: &Machine) -> Vec<String> {
        let describe = |step| match step {
            Step::Start(pod) => format!("start {}", pod.id.uid),
            Step::Stop(id) => format!("stop {}", id.uid),
            Step::Stopped(id) => format!("stopped {}", id.uid),
        };
        sequencer.steps(machine).into_iter().map(describe).collect()
    }

    #[test]
    fn the_new_pod_starts_when_the_old_one_has_terminated() {
        let (mut sequencer, mut machine) = (Sequencer::default(), Machine::default());
        sequencer.set_desired(pod("a"));
        assert_eq!(steps(&mut sequencer, &machine), ["start a"]);
        machine.managed.push("a");
        sequencer.set_desired(pod("b"));
        assert_eq!(steps(&mut sequencer, &machine), ["stop a"]);
        assert_eq!(steps(&mut sequencer, &machine), [""; 0]);
        assert!(sequencer.is_waiting());
        machine.managed.clear();
        assert_eq!(steps(&mut sequencer, &machine), ["stopped a", "start b"]);
        assert!(!sequencer.is_waiting());
    }

    #[test]
    fn a_manifest_that_comes_back_unchanged_waits_too() {
        let (mut sequencer, mut machine) = (Sequencer::default(), Machine::default());
        sequencer.set_desired(pod("a"));
        steps(&mut sequencer, &machine);
        machine.managed.push("a");
        sequencer.set_desired(StaticPods::new());
        assert_eq!(steps(&mut sequencer, &machine), ["stop a"]);
        sequencer.set_desired(pod("a"));
        assert_eq!(steps(&mut sequencer, &machine), [""; 0]);
        machine.managed.clear();
        assert_eq!(steps(&mut sequencer, &machine), ["stopped a", "start a"]);
    }

    #[test]
    fn pods_from_before_the_start_terminate_first() {
        let (mut sequencer, mut machine) = (Sequencer::default(), Machine::default());
        machine.in_runtime = vec!["old", "new"];
        sequencer.set_desired(pod("new"));
        assert_eq!(steps(&mut sequencer, &machine), [""; 0]);
        machine.in_runtime = vec!["new"];
        assert_eq!(steps(&mut sequencer, &machine), ["start new"]);
    }
}
