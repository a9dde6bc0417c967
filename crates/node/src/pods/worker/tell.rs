//! Works out a pod's status and passes it on when it has changed.

use std::collections::BTreeMap;

use kennel_client::clock;
use kennel_core::pod::status::{OURS, Story, status};
use kennel_core::pod::{Instant, Observed, Run};
use serde_json::{Value, json};

use super::{Stage, Worker, fate};
use crate::pods::{Pod, View};

/// What was told of a pod, and what telling needs.
pub(super) struct Telling {
    /// As little of the pod as a status depends on, with the status that was told last.
    pod: Value,
    /// Nothing is told any more: the API has its last status.
    frozen: bool,
    /// Something was told.
    told: bool,
    /// Something was shown on this node.
    shown: Option<Observed>,
    /// When it began to count, by our own clock.
    began: Option<Instant>,
    /// How many runs there were of each container when we began, as its status says.
    counted: BTreeMap<String, u32>,
    /// The last words of runs, by id.
    words: BTreeMap<String, String>,
    /// The runs whose restart is known to wait.
    held: BTreeMap<String, String>,
}

impl Telling {
    pub(super) fn new(pod: &Pod) -> Self {
        Self {
            pod: lean(pod, &pod.object["status"]),
            frozen: false,
            told: false,
            shown: None,
            began: None,
            counted: counted(&pod.object["status"]),
            words: BTreeMap::new(),
            held: BTreeMap::new(),
        }
    }

    pub(super) fn freeze(&mut self) {
        self.frozen = true;
    }

    /// What others say in the status is taken over; what is ours stays.
    pub(super) fn pod_changed(&mut self, pod: &Pod) {
        let theirs = |condition: &Value| {
            let kind = condition["type"].as_str().unwrap_or_default();
            !OURS.contains(&kind)
        };
        let list = |status: &Value| status["conditions"].as_array().cloned().unwrap_or_default();
        let mut status = self.pod["status"].take();
        if !self.told {
            status = pod.object["status"].clone();
        } else if status.is_object() {
            let foreign = list(&pod.object["status"]).into_iter().filter(theirs);
            let ours = list(&status).into_iter().filter(|c| !theirs(c));
            status["conditions"] = foreign.chain(ours).collect();
        }
        self.pod = lean(pod, &status);
        self.shown = None;
    }

    /// The number of a container's next run. A runtime that has lost all runs, as after a restart of the machine,
    /// does not make the first one of it: statuses and logs would be mixed up.
    pub(super) fn next_attempt(&self, name: &str, attempt: u32, observed: &Observed) -> u32 {
        match self.counted.get(name) {
            Some(before) if observed.latest(name).is_none() => attempt.max(*before),
            _ => attempt,
        }
    }

    /// When it began to count. After a restart of the agent its status says so.
    pub(super) fn began(&mut self, now: Instant) -> Instant {
        let since = self.pod["status"]["startTime"].as_str();
        let passed = since.and_then(fate::since).unwrap_or_default();
        *self.began.get_or_insert(now.saturating_sub(passed))
    }

    /// It is over and will be gone: whatever its containers were to do, its phase says how they ended.
    pub(super) fn conclude(&mut self, pod: &Pod, observed: &Observed) {
        let phase = &self.pod["status"]["phase"];
        if self.frozen || *phase == "Succeeded" || *phase == "Failed" {
            return;
        }
        let well = |run: Option<&Run>| run.and_then(Run::exit).is_some_and(|exit| exit.code == 0);
        let mut mains = pod.spec.containers.iter();
        let well = mains.all(|main| well(observed.latest(&main.name)));
        let phase = if well { "Succeeded" } else { "Failed" };
        if !self.pod["status"].is_object() {
            self.pod["status"] = json!({});
        }
        self.pod["status"]["phase"] = json!(phase);
    }
}

fn lean(pod: &Pod, status: &Value) -> Value {
    let meta = pod.metadata();
    let id = &pod.id;
    json!({
        "metadata": {"namespace": id.namespace, "name": id.name, "uid": id.uid,
            "generation": meta["generation"]},
        "spec": {"hostNetwork": pod.host_network()},
        "status": status,
    })
}

/// How many runs of each container a status tells of.
fn counted(status: &Value) -> BTreeMap<String, u32> {
    let lists = ["initContainerStatuses", "containerStatuses"];
    let all = lists.iter().filter_map(|list| status[list].as_array());
    let count = |container: &Value| {
        let name = container["name"].as_str()?.to_owned();
        let restarts = container["restartCount"].as_u64()?;
        // One that was made and never started is no run.
        let states = [
            ("state", "running"),
            ("state", "terminated"),
            ("lastState", "terminated"),
        ];
        let mut states = states.into_iter();
        let ran = states.any(|(state, kind)| container[state][kind].is_object());
        Some((name, u32::try_from(restarts).ok()? + u32::from(ran)))
    };
    all.flatten().filter_map(count).collect()
}

impl Worker {
    /// Adds what ended containers have left behind.
    pub(super) async fn with_last_words(&mut self, mut observed: Observed) -> Observed {
        let mut words = std::mem::take(&mut self.telling.words);
        let mut kept = BTreeMap::new();
        for run in &mut observed.runs {
            let (name, attempt) = (run.name.clone(), run.attempt);
            let kennel_core::pod::State::Exited(exit) = &mut run.state else {
                continue;
            };
            if !exit.message.is_empty() {
                continue;
            }
            let said = if let Some(said) = words.remove(&run.id) {
                said
            } else {
                let supplies = &self.shared.parts.supplies;
                let failed = exit.code != 0;
                supplies.last_words(&self.pod, &name, attempt, failed).await
            };
            exit.message.clone_from(&said);
            kept.insert(run.id.clone(), said);
        }
        self.telling.words = kept;
        observed
    }

    /// Works out how the pod is, and passes it on if that is news.
    pub(super) fn tell(&mut self) {
        if matches!(self.stage, Stage::Clearing | Stage::Cleared) {
            return;
        }
        let before = &self.telling.pod["status"];
        let new = if self.telling.frozen {
            before.clone()
        } else {
            self.status()
        };
        let news = !self.telling.frozen && (!self.telling.told || new != *before);
        if news {
            // Nobody is told of what nobody asks for: another pod may have its name by now.
            if !self.gone {
                self.shared.reports.tell(&self.pod, new.clone());
            }
            self.telling.pod["status"] = new.clone();
            self.telling.told = true;
            self.say_who_waits(&new);
        }
        let same = |shown: &Observed| {
            shown.sandbox == self.observed.sandbox && shown.runs == self.observed.runs
        };
        if news || !self.telling.shown.as_ref().is_some_and(same) {
            self.telling.shown = Some(self.observed.clone());
            self.shared.parts.directory.set(View {
                pod: self.pod.clone(),
                observed: self.observed.clone(),
                status: new,
            });
        }
    }

    fn status(&self) -> Value {
        let alive = self.observed.alive().next().is_some();
        let verdict = self.fate.as_ref().and_then(|fate| fate.verdict.as_ref());
        let story = Story {
            pod: &self.telling.pod,
            spec: &self.pod.spec,
            observed: &self.observed,
            memory: &self.memory,
            host: &self.shared.parts.settings.addresses,
            runtime: &self.shared.runtime_name,
            // Nothing has failed for good while it still runs: its ports and volumes are in use.
            verdict: verdict.filter(|_| !alive),
            now: self.shared.now(),
            stamp: &clock::now_rfc3339(),
        };
        let mut status = status(&story);
        let before = &self.telling.pod["status"]["phase"];
        let is_final = |phase: &Value| *phase == "Succeeded" || *phase == "Failed";
        if alive && is_final(&status["phase"]) && !is_final(before) {
            let held = if before.is_string() {
                before.clone()
            } else {
                json!("Running")
            };
            status["phase"] = held;
        }
        if verdict.is_some() && self.observed.runs.is_empty() {
            // It never ran: there is nothing to say of its containers.
            if let Some(status) = status.as_object_mut() {
                status.remove("containerStatuses");
                status.remove("initContainerStatuses");
            }
        }
        status
    }

    /// Says of each crash once that its restart has to wait.
    fn say_who_waits(&mut self, status: &Value) {
        let lists = ["initContainerStatuses", "containerStatuses"];
        let all = lists.iter().filter_map(|list| status[list].as_array());
        for container in all.flatten() {
            if container["state"]["waiting"]["reason"] != "CrashLoopBackOff" {
                continue;
            }
            let text = |key: &str| container[key].as_str().unwrap_or_default().to_owned();
            let (name, id) = (text("name"), text("containerID"));
            let before = self.telling.held.insert(name.clone(), id.clone());
            if before.as_ref() != Some(&id) {
                let pod = &self.pod.id;
                let message = format!(
                    "Back-off restarting failed container {name} in pod {}_{}({})",
                    pod.name, pod.namespace, pod.uid
                );
                self.voice_of(&name).warn("BackOff", message);
            }
        }
    }
}
