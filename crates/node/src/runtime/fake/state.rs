//! The sandboxes and containers of the fake runtime.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use kennel_core::pod::{Exit, Observed, Run, Sandbox, State as RunState};
use kennel_types::Timestamp;

use super::KILLED;
use super::script::Script;
use crate::runtime::{ContainerConfig, Error, Found, PodId, Result, SandboxConfig};

/// What the runtime did, for tests that check that nothing happens twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuntimeEvent {
    /// Pod uid, container, attempt.
    Started(String, String, u32),
    /// A container started while another attempt of it was running: pod uid, container.
    StartedTwice(String, String),
    /// A command was executed in a container.
    Executed(String),
    /// Pod uid, container, exit code.
    Exited(String, String, i32),
}

#[derive(Debug)]
pub(super) struct SandboxEntry {
    pub(super) pod: PodId,
    pub(super) sandbox: Sandbox,
}

#[derive(Debug)]
pub(super) struct ContainerEntry {
    pub(super) uid: String,
    pub(super) run: Run,
    pub(super) script: Script,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) sandboxes: BTreeMap<String, SandboxEntry>,
    pub(super) containers: BTreeMap<String, ContainerEntry>,
    pub(super) history: Vec<(Duration, RuntimeEvent)>,
    /// Time since the runtime was made, set before each access.
    pub(super) age: Duration,
    last_number: u32,
}

impl State {
    pub(super) fn record(&mut self, event: RuntimeEvent) {
        self.history.push((self.age, event));
    }

    fn number(&mut self) -> u32 {
        self.last_number += 1;
        self.last_number
    }

    pub(super) fn add_sandbox(&mut self, config: &SandboxConfig) -> Result<String> {
        let SandboxConfig { pod, attempt, .. } = config;
        let mut others = self.sandboxes.values();
        if others.any(|other| other.pod.uid == pod.uid && other.sandbox.attempt == *attempt) {
            let message = format!("sandbox {attempt} of {} exists", pod.name);
            return Err(Error::Failed(message));
        }
        let number = self.number();
        let id = format!("sandbox-{number}");
        let [_, a, b, c] = number.to_be_bytes();
        let own = IpAddr::V4(Ipv4Addr::new(10, a | 0x80, b, c));
        let sandbox = Sandbox {
            id: id.clone(),
            ready: true,
            addresses: if config.host_network {
                Vec::new()
            } else {
                vec![own]
            },
            attempt: *attempt,
        };
        let pod = pod.clone();
        self.sandboxes
            .insert(id.clone(), SandboxEntry { pod, sandbox });
        Ok(id)
    }

    pub(super) fn add_container(
        &mut self,
        sandbox: &str,
        config: &ContainerConfig,
    ) -> Result<(String, String)> {
        let entry = self.sandboxes.get(sandbox);
        let entry = entry.filter(|entry| entry.sandbox.ready);
        let missing = || Error::NotFound(format!("there is no sandbox {sandbox}"));
        let uid = entry.ok_or_else(missing)?.pod.uid.clone();
        let same = |other: &ContainerEntry| {
            let run = &other.run;
            other.uid == uid && run.name == config.name && run.attempt == config.attempt
        };
        if self.containers.values().any(same) {
            let message = format!("run {} of {} exists", config.attempt, config.name);
            return Err(Error::Failed(message));
        }
        let id = format!("container-{}", self.number());
        let run = Run {
            name: config.name.clone(),
            id: id.clone(),
            attempt: config.attempt,
            sandbox: sandbox.to_owned(),
            image: config.image.clone(),
            image_id: config.image_reference.clone(),
            state: RunState::Created,
        };
        let words: Vec<String> = config.command.iter().chain(&config.args).cloned().collect();
        let entry = ContainerEntry {
            uid: uid.clone(),
            run,
            script: Script::parse(&words),
        };
        self.containers.insert(id.clone(), entry);
        Ok((id, uid))
    }

    pub(super) fn start(&mut self, id: &str, now: Timestamp) -> Result<(String, Script)> {
        let missing = || Error::NotFound(format!("there is no container {id}"));
        let entry = self.containers.get(id).ok_or_else(missing)?;
        let (uid, name) = (entry.uid.clone(), entry.run.name.clone());
        let running_twin = |other: &ContainerEntry| {
            other.uid == uid && other.run.name == name && other.run.is_running()
        };
        if entry.run.state != RunState::Created {
            return Err(Error::Failed(format!(
                "container {id} has been started before"
            )));
        }
        if self.containers.values().any(running_twin) {
            let event = RuntimeEvent::StartedTwice(uid.clone(), name.clone());
            self.record(event);
        }
        let entry = self.containers.get_mut(id).ok_or_else(missing)?;
        entry.run.state = RunState::Running { started_at: now };
        let (attempt, script) = (entry.run.attempt, entry.script);
        self.record(RuntimeEvent::Started(uid.clone(), name, attempt));
        Ok((uid, script))
    }

    /// Marks a running container as exited. Returns the uid of its pod.
    pub(super) fn exit(&mut self, id: &str, code: i32, now: Timestamp) -> Option<String> {
        let entry = self.containers.get_mut(id)?;
        let RunState::Running { started_at } = entry.run.state else {
            return None;
        };
        let exit = Exit {
            started_at,
            finished_at: now,
            code,
            ..Exit::default()
        };
        entry.run.state = RunState::Exited(exit);
        let (uid, name) = (entry.uid.clone(), entry.run.name.clone());
        self.record(RuntimeEvent::Exited(uid.clone(), name, code));
        Some(uid)
    }

    /// Changes the reason of an exit. Returns the uid of its pod.
    pub(super) fn correct_exit(&mut self, id: &str, reason: &str) -> Option<String> {
        let entry = self.containers.get_mut(id)?;
        if let RunState::Exited(exit) = &mut entry.run.state {
            reason.clone_into(&mut exit.reason);
        }
        Some(entry.uid.clone())
    }

    /// Marks a sandbox as not ready and its containers as exited. Returns the uid of its pod.
    pub(super) fn exit_sandbox(&mut self, id: &str, now: Timestamp) -> Option<String> {
        let entry = self.sandboxes.get_mut(id)?;
        entry.sandbox.ready = false;
        let uid = entry.pod.uid.clone();
        let inside = self.containers.values().filter(|c| c.run.sandbox == id);
        let inside: Vec<String> = inside.map(|entry| entry.run.id.clone()).collect();
        for container in inside {
            self.exit(&container, KILLED, now);
        }
        Some(uid)
    }

    pub(super) fn forget_sandbox(&mut self, id: &str) {
        self.sandboxes.remove(id);
        self.containers.retain(|_, other| other.run.sandbox != id);
    }

    pub(super) fn found(&self, uid: &str) -> Option<Found> {
        let own = self.sandboxes.values().filter(|other| other.pod.uid == uid);
        let mut own: Vec<&SandboxEntry> = own.collect();
        own.sort_by_key(|entry| entry.sandbox.attempt);
        let newest = own.pop()?;
        let runs = self.containers.values().filter(|other| other.uid == uid);
        Some(Found {
            pod: newest.pod.clone(),
            observed: Observed {
                sandbox: Some(newest.sandbox.clone()),
                runs: runs.map(|entry| entry.run.clone()).collect(),
            },
            stale: own.iter().map(|old| old.sandbox.id.clone()).collect(),
        })
    }

    pub(super) fn all(&self) -> Vec<Found> {
        let uids: std::collections::BTreeSet<&str> = self
            .sandboxes
            .values()
            .map(|entry| entry.pod.uid.as_str())
            .collect();
        uids.iter().filter_map(|uid| self.found(uid)).collect()
    }
}
