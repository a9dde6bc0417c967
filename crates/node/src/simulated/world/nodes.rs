//! What the machines do: register, renew their leases, tell how they are, fall silent, come back.

use std::sync::Arc;
use std::time::Duration;

use kennel_client::clock;
use kennel_client::write::Failure;

use super::{Outcome, RETRY, Told, World};
use crate::scenario::OutageKind;
use crate::simulated::{machine, shape};
use crate::stages;

impl World {
    /// Makes its Node object; `booted`: it has just booted.
    pub(super) fn register(&mut self, place: usize, booted: bool) {
        let name = self.name(place);
        let writer = self.writer(&name);
        let dice = self.dice().named(&name).named("boot");
        let machine = &mut self.machines[place];
        // Each boot follows from the one before, so that it is new even to those who saw the last.
        if machine.boot_id.is_empty() || booted && !machine.registering {
            machine.boot_id = machine::uuid(dice.named(&machine.boot_id)).into();
        }
        machine.registering = true;
        let (number, boot_id) = (machine.number, machine.boot_id.clone());
        let now = clock::now_rfc3339();
        let object = machine::node(&self.simulation, number, &boot_id, &now);
        self.work.push(async move {
            let registered = machine::register(&writer, &object, booted).await;
            let complain =
                |error: &Failure| tracing::warn!("registering node {name} failed: {error}");
            let uid = registered.inspect_err(complain).ok();
            if booted && uid.is_some() {
                let event = machine::rebooted(&name, &boot_id);
                if let Err(error) = machine::tell(&writer, &event).await {
                    tracing::debug!("an event of node {name} was not written: {error}");
                }
            }
            Outcome::Registered(place, booted, uid)
        });
    }

    pub(super) fn is_registered(&mut self, place: usize, uid: &str) {
        let machine = &mut self.machines[place];
        machine.registering = false;
        machine.uid = Some(uid.into());
        if !std::mem::replace(&mut machine.known, true) {
            self.registered.send_modify(|count| *count += 1);
        }
        self.renew(place);
    }

    /// Renews the leases of so many nodes, whose turn it is.
    pub(in crate::simulated) fn renew_next(&mut self, nodes: usize) {
        for _ in 0..nodes {
            let place = self.renews_next;
            self.renews_next = (place + 1) % self.machines.len();
            self.renew(place);
        }
    }

    fn renew(&mut self, place: usize) {
        let Some(uid) = self.heard(place) else {
            return;
        };
        if std::mem::replace(&mut self.machines[place].renewing, true) {
            return;
        }
        let name = self.name(place);
        let writer = self.writer(&name);
        // Before all else that waits: a node that is late is taken for dead.
        self.work.push_first(async move {
            if let Err(error) = machine::renew(&writer, &name, &uid).await {
                tracing::warn!("renewing the lease of node {name} failed: {error}");
            }
            Outcome::Renewed(place)
        });
    }

    /// Lets so many nodes tell how they are, which they do now and then if nothing changes.
    pub(in crate::simulated) fn report_next(&mut self, nodes: usize) {
        for _ in 0..nodes {
            let place = self.reports_next;
            self.reports_next = (place + 1) % self.machines.len();
            self.report(place, Vec::new());
        }
    }

    /// `wrong`: the conditions that the API shows otherwise.
    fn report(&mut self, place: usize, wrong: Vec<&'static str>) {
        if self.heard(place).is_none() {
            return;
        }
        if self.machines[place].reporting {
            self.machines[place].more |= !wrong.is_empty();
            return;
        }
        self.machines[place].reporting = true;
        let name = self.name(place);
        let writer = self.writer(&name);
        self.work.push_first(async move {
            let told = match machine::report(&writer, &name, &wrong).await {
                Ok(()) => Told::Known(0),
                Err(failure) if failure.is(404) => Told::Gone,
                Err(failure) => {
                    tracing::warn!("reporting on node {name} failed: {failure}");
                    Told::Failed
                }
            };
            Outcome::Reported(place, told)
        });
    }

    pub(super) fn has_reported(&mut self, place: usize, told: Told) {
        match told {
            Told::Failed => self.work.later(RETRY, Outcome::ReportAgain(place)),
            Told::Known(_) | Told::Gone => {
                self.machines[place].reporting = false;
                if std::mem::take(&mut self.machines[place].more) {
                    self.report_again(place);
                }
            }
        }
    }

    /// Nobody knows any more what the API shows: say all of it.
    pub(super) fn report_again(&mut self, place: usize) {
        self.machines[place].reporting = false;
        if self.heard(place).is_some() {
            self.register(place, false);
        }
    }

    /// The uid of its Node object, if there is one and it can speak.
    fn heard(&self, place: usize) -> Option<Arc<str>> {
        let machine = &self.machines[place];
        machine.uid.clone().filter(|_| machine.dark.is_none())
    }

    pub(super) fn node(&mut self, object: &shape::Node) {
        let name = object.metadata.name.as_deref().unwrap_or_default();
        let Some(place) = self.place(name) else {
            return;
        };
        let machine = &mut self.machines[place];
        if machine.dark.is_none() && !object.status.node_info.boot_id.is_empty() {
            machine.boot_id = object.status.node_info.boot_id.as_str().into();
        }
        if machine.registering {
            return;
        }
        let uid = object.metadata.uid.as_deref().unwrap_or_default();
        if machine.uid.as_deref() != Some(uid) {
            // Somebody has made it anew.
            machine.uid = Some(uid.into());
            self.renew(place);
        }
        let wrong = machine::wrong(&object.status);
        if !wrong.is_empty() {
            self.report(place, wrong);
        }
    }

    /// As a kubelet that runs does not, neither do we make a node again that somebody has deleted.
    pub(super) fn node_gone(&mut self, name: &str, uid: &str) {
        let Some(place) = self.place(name) else {
            return;
        };
        let machine = &mut self.machines[place];
        if machine.uid.as_deref() == Some(uid) && !machine.registering {
            machine.uid = None;
            tracing::info!("node {name} was deleted, and is made again when it reboots");
        }
    }

    /// Finds out when the node falls silent next.
    pub(super) fn plan_outage(&mut self, place: usize, from: Duration) {
        if self.simulation.scenario.nodes.is_empty() {
            return;
        }
        let (name, dice) = (self.name(place), self.dice());
        let next = self.simulation.scenario.next_outage(&name, from, dice);
        if let Some((begin, end, kind)) = next {
            let wait = begin.saturating_sub(self.began.elapsed());
            self.work.later(wait, Outcome::Dark(place, kind, end));
        }
    }

    pub(super) fn falls_silent(&mut self, place: usize, kind: OutageKind, until: Duration) {
        let now = self.began.elapsed();
        self.machines[place].dark = Some(kind);
        tracing::info!("node {} is silent: {kind:?}", self.name(place));
        if kind == OutageKind::Reboot {
            for uid in self.machines[place].pods.clone() {
                self.interrupt(&uid);
            }
        }
        let wait = until.saturating_sub(now).max(Duration::from_millis(1));
        self.work.later(wait, Outcome::Light(place, now + wait));
    }

    pub(super) fn comes_back(&mut self, place: usize, since: Duration) {
        let Some(kind) = self.machines[place].dark.take() else {
            return;
        };
        tracing::info!("node {} is back: {kind:?}", self.name(place));
        let rebooted = kind == OutageKind::Reboot;
        // Whatever others have made of it meanwhile is put right; a deleted one stays so.
        if rebooted || self.machines[place].uid.is_some() {
            self.register(place, rebooted);
        }
        for uid in self.machines[place].pods.clone() {
            if rebooted {
                self.pod_rebooted(&uid);
            } else {
                self.write(&uid);
            }
        }
        self.plan_outage(place, since);
    }

    /// A reboot does to a pod what it does to all that runs.
    fn pod_rebooted(&mut self, uid: &Arc<str>) {
        let Some(pod) = self.pods.get_mut(uid) else {
            return;
        };
        let before = pod.stage;
        let after = stages::rebooted(before, pod.make.restart);
        if before == after {
            self.begin(uid);
            return;
        }
        if stages::has_run(before) && after == stages::Stage::Creating {
            pod.lost();
        }
        self.enter(uid, after);
    }
}
