//! What the machines do with their pods: take them on, lead them through their stages, tell the API.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use kennel_client::feed::Identity;
use kennel_client::write::{Call, Content};
use kennel_client::{api, clock};

use super::ordinals::owner;
use super::{Outcome, RETRY, Told, World};
use crate::scenario::PodFacts;
use crate::simulated::pod::{self, Make, Past, Shown, SimulatedPod};
use crate::simulated::status::{self, Moment};
use crate::simulated::{address, shape};
use crate::stages::{self, Stage};

impl World {
    pub(super) fn pod(&mut self, object: shape::Pod) {
        let Some(place) = self.place(&object.spec.node_name) else {
            return;
        };
        let uid: Arc<str> = object.metadata.uid.as_deref().unwrap_or_default().into();
        if self.pods.contains_key(&uid) {
            self.pod_changed(&uid, &object);
        } else {
            self.take_on(place, &uid, object);
            if self.synced {
                self.begin(&uid);
            }
        }
    }

    fn pod_changed(&mut self, uid: &Arc<str>, object: &shape::Pod) {
        let Some(pod) = self.pods.get_mut(uid) else {
            return;
        };
        let version = shape::version(object.metadata.resource_version.as_ref());
        if version < pod.version {
            return;
        }
        pod.generation = object.metadata.generation.unwrap_or_default();
        pod.gates_open = pod::gates_open(object);
        let shown = Shown::of(object);
        let decided = pod::decided(object, &shown);
        if pod.busy {
            pod.late = Some((version, shown));
        } else {
            pod.see(shown);
        }
        match decided {
            Some(stage) if pod.turns_to(stage) => {
                pod.stage = stage;
                if self.synced {
                    self.enter(uid, stage);
                }
            }
            _ => self.write(uid),
        }
    }

    /// Begins to play a pod, in the stage that the API shows.
    fn take_on(&mut self, place: usize, uid: &Arc<str>, mut object: shape::Pod) {
        let shown = Shown::of(&object);
        let past = Past::of(&object);
        let id = Identity::of(&object);
        let stage = pod::stage(&object, &shown);
        let made = self.made(Make::of(&mut object.spec));
        let (owner, counted) = owner(&object);
        let node = self.name(place);
        let machine = &mut self.machines[place];
        let ordinal = if counted {
            machine.ordinal(owner, past.ordinal)
        } else {
            0
        };
        let address: Option<Ipv4Addr> = object.status.pod_ip.parse().ok();
        if let Some(address) = address {
            machine.pool.keep(address);
        }
        machine.pods.push(uid.clone());
        let facts = PodFacts {
            node: &node,
            namespace: &id.namespace,
            images: &made.images(),
        };
        let dice = self.dice().named(&node).numbered(owner);
        let fate = self
            .simulation
            .scenario
            .fate(facts, dice.numbered(ordinal.into()));
        let pod = SimulatedPod {
            node: place,
            make: made.clone(),
            fate,
            ordinal,
            generation: object.metadata.generation.unwrap_or_default(),
            address,
            gates_open: pod::gates_open(&object),
            stage,
            restarts: shown.containers.map_or(0, |(_, restarts)| restarts),
            started: past.started,
            ended: past.ended,
            turn: 0,
            shown,
            version: shape::version(object.metadata.resource_version.as_ref()),
            busy: false,
            late: None,
            id,
        };
        self.pods.insert(uid.clone(), pod);
    }

    /// The one of this making that all such pods share.
    fn made(&mut self, make: Make) -> Arc<Make> {
        if let Some(known) = self.makes.get(&make) {
            return known.clone();
        }
        let make = Arc::new(make);
        self.makes.insert(make.clone());
        make
    }

    pub(super) fn pod_gone(&mut self, uid: &str) {
        let Some(pod) = self.pods.remove(uid) else {
            return;
        };
        let machine = &mut self.machines[pod.node];
        machine.pods.retain(|other| **other != *uid);
        if let Some(address) = pod.address {
            machine.pool.release(address);
        }
        // The set's and the pod's own: nobody else is of this making.
        if Arc::strong_count(&pod.make) == 2 {
            self.makes.remove(&pod.make);
        }
    }

    /// Goes on from the stage that a pod is in.
    pub(super) fn begin(&mut self, uid: &Arc<str>) {
        match self.next(uid) {
            Some((Duration::ZERO, stage)) => self.enter(uid, stage),
            next => {
                self.wait(uid, next);
                self.write(uid);
            }
        }
    }

    /// Brings a pod to a stage, and on to those that follow at once.
    pub(super) fn enter(&mut self, uid: &Arc<str>, stage: Stage) {
        let mut next = Some((Duration::ZERO, stage));
        while let Some((Duration::ZERO, stage)) = next {
            self.change(uid, stage);
            next = self.next(uid);
        }
        self.wait(uid, next);
        self.write(uid);
    }

    fn next(&self, uid: &Arc<str>) -> Option<(Duration, Stage)> {
        let pod = self.pods.get(uid)?;
        let life = self.simulation.scenario.life(pod.fate, pod.restarts);
        stages::next(pod.stage, life, pod.make.restart, pod.restarts)
    }

    fn wait(&mut self, uid: &Arc<str>, next: Option<(Duration, Stage)>) {
        if let (Some((delay, stage)), Some(pod)) = (next, self.pods.get(uid)) {
            let (pod, turn) = (uid.clone(), pod.turn);
            self.work.later(delay, Outcome::Due { pod, turn, stage });
        }
    }

    fn change(&mut self, uid: &Arc<str>, stage: Stage) {
        let Some(pod) = self.pods.get_mut(uid) else {
            return;
        };
        pod.turn = pod.turn.wrapping_add(1);
        let before = std::mem::replace(&mut pod.stage, stage);
        match stage {
            Stage::Started => {
                pod.restarts += u32::from(matches!(before, Stage::CrashLoop(_)));
                pod.started = clock::now_rfc3339();
            }
            Stage::CrashLoop(code) | Stage::Finished(code) => pod.end(code),
            _ => {}
        }
        let has_network = matches!(stage, Stage::Started | Stage::PullFailed(_));
        if has_network && pod.address.is_none() {
            let machine = &mut self.machines[pod.node];
            pod.address = if pod.make.host_network {
                Some(address::of_node(machine.number))
            } else {
                machine.pool.take()
            };
        }
    }

    /// What was planned for a pod does not happen.
    pub(super) fn interrupt(&mut self, uid: &Arc<str>) {
        if let Some(pod) = self.pods.get_mut(uid) {
            pod.turn = pod.turn.wrapping_add(1);
        }
    }

    pub(super) fn due(&mut self, uid: &Arc<str>, turn: u32, stage: Stage) {
        if self.pods.get(uid).is_some_and(|pod| pod.turn == turn) {
            self.enter(uid, stage);
        }
    }

    /// Tells the API what it does not show yet, if the node can speak.
    pub(super) fn write(&mut self, uid: &Arc<str>) {
        let Some(pod) = self.pods.get_mut(uid).filter(|_| self.synced) else {
            return;
        };
        let machine = &self.machines[pod.node];
        if pod.busy || machine.dark.is_some() {
            return;
        }
        let moment = Moment {
            host: address::of_node(machine.number),
            now: &clock::now_rfc3339(),
        };
        let patch = match pod.stage {
            Stage::Stopped => None,
            _ => match status::patch(pod, moment) {
                Some(patch) => Some(patch),
                None => return,
            },
        };
        pod.busy = true;
        let (id, place) = (pod.id.clone(), pod.node);
        let node = self.name(place);
        match patch {
            None => self.remove(id, &node),
            Some((patch, shown)) => {
                let writer = self.writer(&node);
                self.work.push(async move {
                    let pods = api::core_path(&id.namespace, "pods");
                    let path = format!("{pods}/{}/status", id.name);
                    let call = Call::patch(path, Content::Strategic, &patch);
                    let told = match writer.send(&call).await {
                        Ok(answer) => {
                            let version = answer.written().resource_version;
                            Told::Known(shape::version(Some(&version)))
                        }
                        Err(failure) if failure.is(404) => Told::Gone,
                        Err(failure) => {
                            tracing::warn!("reporting on pod {} failed: {failure}", id.name);
                            Told::Failed
                        }
                    };
                    let (pod, shown) = (id.uid, Some(shown));
                    Outcome::Written { pod, told, shown }
                });
            }
        }
    }

    /// Confirms that a pod has stopped, which removes it.
    fn remove(&mut self, id: Identity, node: &str) {
        let client = (self.client_of)(node);
        self.work.push(async move {
            let path = api::core_path(&id.namespace, "pods");
            let told = match api::delete(&client, &path, &id.name, &id.uid, Some(0)).await {
                Err(error) if !api::already_gone(&error) => {
                    let why = api::explain(&error);
                    tracing::warn!("removing pod {} failed: {why}", id.name);
                    Told::Failed
                }
                _ => Told::Gone,
            };
            let (pod, shown) = (id.uid, None);
            Outcome::Written { pod, told, shown }
        });
    }

    pub(super) fn written(&mut self, uid: &Arc<str>, told: Told, shown: Option<Shown>) {
        let Some(pod) = self.pods.get_mut(uid) else {
            return;
        };
        let version = match told {
            Told::Known(version) => version,
            // The watch will tell.
            Told::Gone => return,
            Told::Failed => {
                return self.work.later(RETRY, Outcome::WriteAgain(uid.clone()));
            }
        };
        pod.busy = false;
        pod.version = version;
        if let Some(shown) = shown {
            pod.shown = shown;
        }
        if let Some((seen, late)) = pod.late.take()
            && seen > version
        {
            pod.see(late);
        }
        self.write(uid);
    }
}
