//! The sandboxes and containers that a simulated runtime has.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use kennel_core::pod::{Exit, Observed, Run, Sandbox, State as RunState};

use super::play::Play;
use crate::runtime::{ContainerConfig, Error, Found, PodId, Result, SandboxConfig};

/// Something that happened, for those who check that nothing happens twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// A run began: pod's uid, container, how many runs before.
    Began(String, String, u32),
    /// A run began beside another of the same container.
    Doubled(String, String),
    /// A command was run in a container.
    Ran(String),
    /// A run ended: pod's uid, container, code.
    Ended(String, String, i32),
}

#[derive(Debug)]
pub(super) struct Holder {
    pub(super) pod: PodId,
    pub(super) sandbox: Sandbox,
}

#[derive(Debug)]
pub(super) struct Contained {
    pub(super) uid: String,
    pub(super) run: Run,
    pub(super) play: Play,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) sandboxes: BTreeMap<String, Holder>,
    pub(super) containers: BTreeMap<String, Contained>,
    pub(super) happened: Vec<(Duration, Happening)>,
    /// How long the runtime has been there.
    pub(super) age: Duration,
    numbers: u32,
}

impl State {
    pub(super) fn happened(&mut self, what: Happening) {
        self.happened.push((self.age, what));
    }

    fn number(&mut self) -> u32 {
        self.numbers += 1;
        self.numbers
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
        self.sandboxes.insert(id.clone(), Holder { pod, sandbox });
        Ok(id)
    }

    pub(super) fn add_container(
        &mut self,
        sandbox: &str,
        config: &ContainerConfig,
    ) -> Result<(String, String)> {
        let holder = self.sandboxes.get(sandbox);
        let holder = holder.filter(|holder| holder.sandbox.ready);
        let missing = || Error::NotFound(format!("there is no sandbox {sandbox}"));
        let uid = holder.ok_or_else(missing)?.pod.uid.clone();
        let same = |other: &Contained| {
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
        let contained = Contained {
            uid: uid.clone(),
            run,
            play: Play::read(&words),
        };
        self.containers.insert(id.clone(), contained);
        Ok((id, uid))
    }

    pub(super) fn begin(&mut self, id: &str, now: i64) -> Result<(String, Play)> {
        let missing = || Error::NotFound(format!("there is no container {id}"));
        let contained = self.containers.get(id).ok_or_else(missing)?;
        let (uid, name) = (contained.uid.clone(), contained.run.name.clone());
        let twin = |other: &Contained| {
            other.uid == uid && other.run.name == name && other.run.is_running()
        };
        if contained.run.state != RunState::Created {
            return Err(Error::Failed(format!(
                "container {id} has been started before"
            )));
        }
        if self.containers.values().any(twin) {
            let doubled = Happening::Doubled(uid.clone(), name.clone());
            self.happened(doubled);
        }
        let contained = self.containers.get_mut(id).ok_or_else(missing)?;
        contained.run.state = RunState::Running { since: now };
        let (attempt, play) = (contained.run.attempt, contained.play);
        self.happened(Happening::Began(uid.clone(), name, attempt));
        Ok((uid, play))
    }

    /// Ends a run, if it runs. Says whose it was.
    pub(super) fn end(&mut self, id: &str, code: i32, now: i64) -> Option<String> {
        let contained = self.containers.get_mut(id)?;
        let RunState::Running { since } = contained.run.state else {
            return None;
        };
        let exit = Exit {
            since,
            until: now,
            code,
            ..Exit::default()
        };
        contained.run.state = RunState::Exited(exit);
        let (uid, name) = (contained.uid.clone(), contained.run.name.clone());
        let ended = Happening::Ended(uid.clone(), name, code);
        self.happened(ended);
        Some(uid)
    }

    /// Ends all that runs in a sandbox. Says whose it was.
    pub(super) fn end_sandbox(&mut self, id: &str, now: i64) -> Option<String> {
        let holder = self.sandboxes.get_mut(id)?;
        holder.sandbox.ready = false;
        let uid = holder.pod.uid.clone();
        let inside = self.containers.values().filter(|c| c.run.sandbox == id);
        let inside: Vec<String> = inside.map(|contained| contained.run.id.clone()).collect();
        for container in inside {
            self.end(&container, 137, now);
        }
        Some(uid)
    }

    pub(super) fn forget_sandbox(&mut self, id: &str) {
        self.sandboxes.remove(id);
        self.containers.retain(|_, other| other.run.sandbox != id);
    }

    /// All that there is of a pod.
    pub(super) fn found(&self, uid: &str) -> Option<Found> {
        let own = self.sandboxes.values().filter(|other| other.pod.uid == uid);
        let mut own: Vec<&Holder> = own.collect();
        own.sort_by_key(|holder| holder.sandbox.attempt);
        let newest = own.pop()?;
        let runs = self.containers.values().filter(|other| other.uid == uid);
        Some(Found {
            pod: newest.pod.clone(),
            observed: Observed {
                sandbox: Some(newest.sandbox.clone()),
                runs: runs.map(|contained| contained.run.clone()).collect(),
            },
            stale: own.iter().map(|old| old.sandbox.id.clone()).collect(),
        })
    }

    pub(super) fn all(&self) -> Vec<Found> {
        let uids: std::collections::BTreeSet<&str> = self
            .sandboxes
            .values()
            .map(|holder| holder.pod.uid.as_str())
            .collect();
        uids.iter().filter_map(|uid| self.found(uid)).collect()
    }
}
