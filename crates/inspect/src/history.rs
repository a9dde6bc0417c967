//! The revisions of a DaemonSet: for `kennel rollout history`, and for what changed between two of them.

use std::collections::BTreeMap;

use kennel_core::daemonset::DaemonSetView;
use kennel_core::daemonset::history::Revision;
use kennel_core::rollout::history::{DatedRevision, History};
use kennel_core::rollout::outline::{Input, Outline};
use kennel_types::Timestamp;
use kube::Client;
use kube::api::DynamicObject;

use crate::lists::list;
use crate::{Error, snapshot};

const CHANGE_CAUSE: &str = "kubernetes.io/change-cause";

/// A DaemonSet and its revisions.
#[derive(Clone, Debug)]
pub struct Revisions {
    pub daemon_set: DaemonSetView,
    pub dated: Vec<DatedRevision>,
}

/// Reads the DaemonSet and its revisions.
pub async fn read(client: &Client, namespace: &str, name: &str) -> Result<Revisions, Error> {
    let daemon_set = snapshot::daemon_set(client, namespace, name).await?;
    let selector = daemon_set.selector.to_string();
    let path = snapshot::revisions(namespace);
    let objects = list(client, &path, Some(&selector), None).await;
    let what = format!("cannot list the revisions of DaemonSet {namespace}/{name}");
    let objects = objects.map_err(Error::api(what))?;
    let objects = objects.into_iter().map(serde_json::from_value);
    let objects = objects.filter_map(|object: Result<DynamicObject, _>| object.ok());
    let dated = objects.filter_map(|object| dated(&object)).collect();
    Ok(Revisions { daemon_set, dated })
}

/// A revision with what its history shows.
pub(crate) fn dated(object: &DynamicObject) -> Option<DatedRevision> {
    let annotations = object.metadata.annotations.as_ref();
    let cause = annotations.and_then(|all| all.get(CHANGE_CAUSE));
    let created = object.metadata.creation_timestamp.as_ref();
    Some(DatedRevision {
        revision: kennel_control::view::revision(object)?,
        created: created.map(Timestamp::from),
        cause: cause.cloned(),
    })
}

impl Revisions {
    pub fn history(&self) -> History {
        let revisions = self.dated.iter().map(|dated| dated.revision.clone());
        let revisions: Vec<Revision> = revisions.collect();
        let outline = Outline::of(&Input {
            daemon_set: &self.daemon_set,
            namespace: &BTreeMap::new(),
            nodes: &[],
            pods: &[],
            revisions: &revisions,
            now: snapshot::now(),
        });
        History::of(&outline, &self.dated)
    }

    /// Those that the DaemonSet owns, the oldest first.
    pub fn owned(&self) -> Vec<&Revision> {
        let owner = Some(&self.daemon_set.uid);
        let revisions = self.dated.iter().map(|dated| &dated.revision);
        let owned = revisions.filter(|r| r.controller.as_ref() == owner && !r.terminating);
        let mut owned: Vec<_> = owned.collect();
        owned.sort_by_key(|revision| revision.revision);
        owned
    }
}
