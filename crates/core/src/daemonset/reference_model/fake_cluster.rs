//! A fake API server: objects in memory, and watches that lag behind.
//!
//! It executes the writes that the planners request and does nothing by itself.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use kennel_types::Timestamp;
use serde_json::{Value, json};

use super::super::HASH_LABEL;
use super::super::event::{
    Answer, ConfigEvent, Event, Failure, FailureKind, Identity, Outcome, Write,
};
use super::super::history::Revision;
use super::super::status::Counters;
use super::super::view::{
    Before, ConfigMapView, DaemonSetView, Health, NodeView, Phase, PodView, Readiness, Strategy,
    pinned_node,
};
use super::Uid;
use crate::rollout::BEFORE;
use crate::rollout::condition::Conditions;
use crate::rollout::config::ConfigCopy;
use crate::rollout::state::Record;
use crate::selector::Selector;

/// The kinds of objects that are watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum Kind {
    Sets,
    Nodes,
    Pods,
    Revisions,
}

pub(in super::super) const KINDS: [Kind; 4] =
    [Kind::Sets, Kind::Nodes, Kind::Pods, Kind::Revisions];

/// See the [module](self).
pub(in super::super) struct FakeCluster {
    pub(in super::super) now: Timestamp,
    pub(in super::super) sets: BTreeMap<Uid, DaemonSetView>,
    pub(in super::super) nodes: BTreeMap<Uid, NodeView>,
    pub(in super::super) pods: BTreeMap<Uid, PodView>,
    pub(in super::super) revisions: BTreeMap<Uid, Revision>,
    /// By name, with the hashes of their contents.
    pub(in super::super) config_maps: BTreeMap<Arc<str>, ConfigMapView>,
    /// Events that the watch of ConfigMaps has not delivered yet.
    pub(in super::super) config_events: VecDeque<Event>,
    /// Events that the watches have not delivered yet.
    pub(in super::super) queues: BTreeMap<Kind, VecDeque<(Uid, Event)>>,
    /// Objects that the watches have delivered and not reported as gone.
    delivered: BTreeMap<Kind, BTreeSet<Uid>>,
    /// What nodes were when they changed last.
    readiness: BTreeMap<Uid, Readiness>,
    /// Incremented with each change.
    pub(in super::super) version: u64,
    serial: u32,
}

impl FakeCluster {
    pub(in super::super) fn new(now: Timestamp) -> Self {
        Self {
            now,
            sets: BTreeMap::new(),
            nodes: BTreeMap::new(),
            pods: BTreeMap::new(),
            revisions: BTreeMap::new(),
            config_maps: BTreeMap::new(),
            config_events: VecDeque::new(),
            queues: KINDS.map(|kind| (kind, VecDeque::new())).into(),
            delivered: KINDS.map(|kind| (kind, BTreeSet::new())).into(),
            readiness: BTreeMap::new(),
            version: 0,
            serial: 0,
        }
    }

    pub(in super::super) fn serial(&mut self) -> u32 {
        self.serial += 1;
        self.serial
    }

    /// Now, in whole seconds as API objects carry times.
    pub(in super::super) fn timestamp(&self) -> Timestamp {
        Timestamp::from_secs(self.now.as_secs())
    }

    /// Queues a watch event for an object that has changed or is gone. `merged`: only the last state is delivered.
    pub(in super::super) fn changed(&mut self, kind: Kind, id: &Uid, merged: bool) {
        self.version += 1;
        if kind == Kind::Sets
            && let Some(set) = self.sets.get_mut(id)
        {
            set.version = self.version;
        }
        if kind == Kind::Revisions
            && let Some(revision) = self.revisions.get_mut(id)
        {
            revision.version = self.version.to_string().into();
        }
        if kind == Kind::Nodes {
            self.note_transition(id);
        }
        let event = self.event(kind, id);
        let queue = self.queues.get_mut(&kind).unwrap();
        if merged {
            queue.retain(|(other, _)| other != id);
        }
        queue.push_back((id.clone(), event));
    }

    /// Writes the time of a changed Ready condition, as the node lifecycle controller and the kubelet do.
    fn note_transition(&mut self, name: &Uid) {
        let now = self.timestamp();
        let Some(node) = self.nodes.get_mut(name) else {
            self.readiness.remove(name);
            return;
        };
        let old = self.readiness.insert(name.clone(), node.ready);
        if old != Some(node.ready) {
            node.ready_changed = Some(now);
        }
    }

    fn event(&self, kind: Kind, id: &Uid) -> Event {
        let found = match kind {
            Kind::Sets => self.sets.get(id).cloned().map(Event::DaemonSet),
            Kind::Nodes => self.nodes.get(id).cloned().map(Event::Node),
            Kind::Pods => self.pods.get(id).cloned().map(Event::Pod),
            Kind::Revisions => self.revisions.get(id).cloned().map(Event::Revision),
        };
        found.unwrap_or(match kind {
            Kind::Sets => Event::DaemonSetGone(id.clone()),
            Kind::Nodes => Event::NodeGone(id.clone()),
            Kind::Pods => Event::PodGone(id.clone()),
            Kind::Revisions => Event::RevisionGone(id.clone()),
        })
    }

    /// Takes the next event of a watch.
    pub(in super::super) fn deliver(&mut self, kind: Kind) -> Option<Event> {
        let (id, event) = self.queues.get_mut(&kind)?.pop_front()?;
        let delivered = self.delivered.get_mut(&kind)?;
        match event {
            Event::DaemonSetGone(_)
            | Event::NodeGone(_)
            | Event::PodGone(_)
            | Event::RevisionGone(_) => delivered.remove(&id),
            _ => delivered.insert(id),
        };
        Some(event)
    }

    /// A watch breaks and relists: queued events are lost, and everything is delivered again.
    pub(in super::super) fn relist(&mut self, kind: Kind) {
        self.queues.get_mut(&kind).unwrap().clear();
        let ids: BTreeSet<Uid> = match kind {
            Kind::Sets => self.sets.keys().cloned().collect(),
            Kind::Nodes => self.nodes.keys().cloned().collect(),
            Kind::Pods => self.pods.keys().cloned().collect(),
            Kind::Revisions => self.revisions.keys().cloned().collect(),
        };
        let gone: Vec<Uid> = self.delivered[&kind].difference(&ids).cloned().collect();
        for id in ids.into_iter().chain(gone) {
            let event = self.event(kind, &id);
            self.queues.get_mut(&kind).unwrap().push_back((id, event));
        }
    }

    /// All informers start from nothing.
    pub(in super::super) fn forget_deliveries(&mut self) {
        for kind in KINDS {
            self.delivered.get_mut(&kind).unwrap().clear();
            self.relist(kind);
        }
    }

    pub(in super::super) fn add_node(&mut self, name: &str) {
        let node = NodeView {
            name: name.into(),
            labels: BTreeMap::new(),
            taints: Vec::new(),
            unschedulable: false,
            ready: Readiness::Ready,
            ready_changed: None,
        };
        self.nodes.insert(name.into(), node);
        self.changed(Kind::Nodes, &name.into(), false);
    }

    pub(in super::super) fn add_set(&mut self, name: &str, strategy: Strategy) {
        let serial = self.serial();
        let uid: Uid = format!("set-{serial}").into();
        let set = DaemonSetView {
            namespace: "default".into(),
            name: name.into(),
            uid: uid.clone(),
            generation: 1,
            template_generation: Some(1),
            terminating: false,
            selector: Selector::parse("app=x").unwrap(),
            template: template(0),
            min_ready_seconds: 0,
            collision_count: None,
            status: Counters::default(),
            conditions: Arc::default(),
            strategy,
            revision_history_limit: 2,
            annotations: Arc::default(),
            version: 0,
        };
        self.sets.insert(uid.clone(), set);
        self.changed(Kind::Sets, &uid, false);
    }

    /// Changes a DaemonSet's spec.
    pub(in super::super) fn edit_set(
        &mut self,
        uid: &Uid,
        change: impl FnOnce(&mut DaemonSetView),
    ) {
        let Some(set) = self.sets.get_mut(uid) else {
            return;
        };
        let template = set.template.clone();
        change(set);
        set.generation += 1;
        if set.template != template {
            set.template_generation = set.template_generation.map(|number| number + 1);
        }
        self.changed(Kind::Sets, uid, false);
    }

    pub(in super::super) fn edit_pod(
        &mut self,
        uid: &Uid,
        merged: bool,
        change: impl FnOnce(&mut PodView),
    ) {
        if let Some(pod) = self.pods.get_mut(uid) {
            change(pod);
            self.changed(Kind::Pods, uid, merged);
        }
    }

    pub(in super::super) fn remove_pod(&mut self, uid: &Uid, merged: bool) {
        if self.pods.remove(uid).is_some() {
            self.changed(Kind::Pods, uid, merged);
        }
    }

    pub(in super::super) fn add_pod(&mut self, body: &Value) -> PodView {
        let serial = self.serial();
        let meta = &body["metadata"];
        let labels = meta["labels"].as_object().unwrap();
        let owner = &meta["ownerReferences"][0]["uid"];
        let required = body
            .pointer("/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution");
        let pod = PodView {
            namespace: "default".into(),
            name: format!("pod-{serial}").into(),
            uid: format!("pod-{serial}").into(),
            controller: owner.as_str().map(Into::into),
            labels: Arc::new(texts(labels)),
            bound_to: body["spec"]["nodeName"].as_str().map(Into::into),
            pinned_to: required.and_then(pinned_node).map(Into::into),
            created: self.timestamp(),
            terminating: false,
            phase: Phase::Active,
            ready_since: None,
            health: Health {
                before: Before::parse(meta["annotations"][BEFORE].as_str().unwrap_or_default()),
                ..Health::default()
            },
        };
        self.pods.insert(pod.uid.clone(), pod.clone());
        self.changed(Kind::Pods, &pod.uid, false);
        pod
    }

    pub(in super::super) fn execute(
        &mut self,
        by: &Identity,
        write: &Write,
        status: Option<Counters>,
    ) -> Outcome {
        self.execute_with(by, write, status, Arc::default())
    }

    /// The same, with conditions in the status.
    pub(in super::super) fn execute_with(
        &mut self,
        by: &Identity,
        write: &Write,
        status: Option<Counters>,
        conditions: Arc<Conditions>,
    ) -> Outcome {
        if *write == Write::WriteStatus {
            return Ok(self.write_status(by, status, conditions));
        }
        self.try_execute(by, write, status).or_else(failed)
    }

    fn try_execute(
        &mut self,
        by: &Identity,
        write: &Write,
        status: Option<Counters>,
    ) -> Result<Answer, FailureKind> {
        match write {
            Write::CreatePod {
                node,
                blueprint,
                before,
            } => {
                let body = blueprint.pod(node, None, *before);
                let body: Value = serde_json::from_str(&body).unwrap();
                let name = self.add_pod(&body).name;
                return Ok(Answer::Pod { name });
            }
            Write::DeletePod(pod) => {
                let found = self.pods.get(&pod.uid).ok_or(FailureKind::NotFound)?;
                if found.bound_to.is_none() {
                    self.remove_pod(&pod.uid, false);
                } else {
                    self.edit_pod(&pod.uid, false, |pod| pod.terminating = true);
                }
            }
            Write::AdoptPod(pod) => {
                self.check_live(by)?;
                let found = self.pods.get(&pod.uid).ok_or(FailureKind::NotFound)?;
                if found.controller.is_some() {
                    return Err(FailureKind::Refused);
                }
                let owner = Some(by.uid.clone());
                self.edit_pod(&pod.uid, false, |pod| pod.controller = owner);
            }
            Write::ReleasePod(pod) => self.edit_pod(&pod.uid, false, |pod| {
                pod.controller = pod.controller.take().filter(|uid| *uid != by.uid);
            }),
            Write::RelabelPod { pod, hash } => self.edit_pod(&pod.uid, false, |pod| {
                let labels = Arc::make_mut(&mut pod.labels);
                labels.insert(HASH_LABEL.into(), hash.to_string());
            }),
            Write::WriteStatus => return Ok(self.write_status(by, status, Arc::default())),
            Write::CountCollision { known } => {
                let set = self.sets.get_mut(&by.uid).ok_or(FailureKind::NotFound)?;
                if set.collision_count != *known {
                    return Err(FailureKind::Refused);
                }
                set.collision_count = Some(known.unwrap_or(0) + 1);
                self.changed(Kind::Sets, &by.uid, false);
            }
            Write::CopyConfig(copy) => return self.copy_config(copy),
            other => return self.write_revision(by, other),
        }
        Ok(Answer::Nothing)
    }

    fn copy_config(&mut self, copy: &ConfigCopy) -> Result<Answer, FailureKind> {
        let source = self.config_maps.get(&copy.source);
        let source = source.filter(|source| source.hash == copy.hash);
        let source = source.ok_or(FailureKind::NotFound)?;
        let made = ConfigMapView {
            namespace: source.namespace.clone(),
            name: copy.name.clone(),
            hash: copy.hash.clone(),
            owner: Some(copy.revision.uid.clone()),
        };
        match self.config_maps.get(&copy.name) {
            Some(holder) if *holder == made => {}
            Some(_) => return Err(FailureKind::NameTaken),
            None => self.put_config_map(made.clone()),
        }
        Ok(Answer::ConfigMap(made))
    }

    pub(in super::super) fn put_config_map(&mut self, view: ConfigMapView) {
        self.config_maps.insert(view.name.clone(), view.clone());
        self.config_events
            .push_back(Event::Config(ConfigEvent::Applied(view)));
    }

    pub(in super::super) fn remove_config_map(&mut self, name: &str) {
        if let Some(view) = self.config_maps.remove(name) {
            let ConfigMapView {
                namespace, name, ..
            } = view;
            let gone = Event::Config(ConfigEvent::Gone { namespace, name });
            self.config_events.push_back(gone);
        }
    }

    fn check_live(&self, by: &Identity) -> Result<(), FailureKind> {
        let set = self.sets.get(&by.uid).ok_or(FailureKind::Refused)?;
        if set.terminating {
            return Err(FailureKind::Refused);
        }
        Ok(())
    }

    fn write_status(
        &mut self,
        by: &Identity,
        status: Option<Counters>,
        conditions: Arc<Conditions>,
    ) -> Answer {
        let (Some(set), Some(counters)) = (self.sets.get_mut(&by.uid), status) else {
            return Answer::Nothing;
        };
        set.status = counters;
        set.conditions = conditions.clone();
        self.changed(Kind::Sets, &by.uid, false);
        let version = self.version;
        Answer::Status {
            counters,
            conditions,
            version,
        }
    }

    fn write_revision(&mut self, by: &Identity, write: &Write) -> Result<Answer, FailureKind> {
        if let Write::WriteRecord {
            revision, version, ..
        } = write
        {
            let found = self.revisions.get(&revision.uid);
            if found.ok_or(FailureKind::NotFound)?.version != *version {
                return Err(FailureKind::Refused);
            }
        }
        let mut edit = |uid: &Uid, change: &dyn Fn(&mut Revision)| {
            let found = self.revisions.get_mut(uid).ok_or(FailureKind::NotFound)?;
            change(found);
            self.changed(Kind::Revisions, uid, false);
            Ok(revision_answer(self.revisions[uid].clone()))
        };
        match write {
            Write::RenumberRevision { revision, number } => {
                edit(&revision.uid, &|r| r.revision = *number)
            }
            Write::LabelRevision { revision, hash } => edit(&revision.uid, &|r| {
                r.labels.insert(HASH_LABEL.into(), hash.to_string());
            }),
            Write::AdoptRevision(revision) => {
                let live = self.check_live(by);
                let found = self.revisions.get_mut(&revision.uid);
                let found = found.ok_or(FailureKind::NotFound)?;
                live?;
                if found.controller.is_some() {
                    return Err(FailureKind::Refused);
                }
                found.controller = Some(by.uid.clone());
                self.changed(Kind::Revisions, &revision.uid, false);
                Ok(Answer::Nothing)
            }
            Write::WriteRecord {
                revision, record, ..
            } => {
                // As annotations, which carry times in whole seconds.
                let written = record.annotations().into_iter();
                let written = written.map(|(key, value)| (key.to_owned(), value));
                let record = Record::parse(&written.collect());
                edit(&revision.uid, &|r| r.record = record.clone())
            }
            Write::ReleaseRevision(revision) => edit(&revision.uid, &|r| r.controller = None),
            Write::DeleteRevision(revision) => {
                self.revisions.remove(&revision.uid);
                self.changed(Kind::Revisions, &revision.uid, false);
                Ok(Answer::Nothing)
            }
            Write::CreateRevision { name, data, body } => {
                let mut all = self.revisions.values();
                match all.find(|r| r.name == *name) {
                    Some(holder) if holder.data == *data => Ok(revision_answer(holder.clone())),
                    Some(_) => Err(FailureKind::NameTaken),
                    None => Ok(revision_answer(self.create_revision(by, name, data, body))),
                }
            }
            other => panic!("not about a revision: {other:?}"),
        }
    }

    fn create_revision(&mut self, by: &Identity, name: &str, data: &str, body: &str) -> Revision {
        let body: Value = serde_json::from_str(body).unwrap();
        let labels = body["metadata"]["labels"].as_object().unwrap();
        let annotations = body["metadata"]["annotations"].as_object();
        let record = Record::parse(&annotations.map(texts).unwrap_or_default());
        let serial = self.serial();
        let revision = Revision {
            namespace: "default".into(),
            name: name.into(),
            uid: format!("revision-{serial}").into(),
            controller: Some(by.uid.clone()),
            labels: texts(labels),
            revision: body["revision"].as_i64().unwrap(),
            data: data.into(),
            terminating: false,
            template_generation: None,
            record,
            version: "".into(),
        };
        let uid = revision.uid.clone();
        self.revisions.insert(uid.clone(), revision);
        self.changed(Kind::Revisions, &uid, false);
        self.revisions[&uid].clone()
    }
}

fn revision_answer(revision: Revision) -> Answer {
    Answer::Revision(Box::new(revision))
}

fn texts(object: &serde_json::Map<String, Value>) -> BTreeMap<String, String> {
    let own = |(key, value): (&String, &Value)| (key.clone(), value.as_str().unwrap().to_owned());
    object.iter().map(own).collect()
}

pub(in super::super) fn failed(kind: FailureKind) -> Outcome {
    Err(Failure {
        kind,
        message: "no".to_owned(),
        retry_after: None,
    })
}

/// How many templates there are.
pub(in super::super) const TEMPLATES: u32 = 7;

/// One of a few templates, some of which are not eligible everywhere.
pub(in super::super) fn template(version: u32) -> Arc<Value> {
    let mut spec = json!({"containers": [{"name": "c", "image": format!("image:{version}")}]});
    if version % 4 == 3 {
        spec["nodeSelector"] = json!({"zone": "a"});
    }
    if version % 5 == 4 {
        spec["tolerations"] = json!([{"operator": "Exists"}]);
    }
    if version == TEMPLATES - 1 {
        spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] = json!({"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "zone", "operator": "Exists"}]},
                {"matchFields": [
                    {"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}]});
    }
    Arc::new(json!({"metadata": {"labels": {"app": "x"}}, "spec": spec}))
}
