//! Which pods are to be shown and which mirrors there are: what follows from that.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::MIRROR;
use crate::pods::{Origin, Pod, PodUpdate};
use crate::runtime::PodId;

/// Namespace and name.
pub(super) type Key = (String, String);

/// Something to do.
#[derive(Clone, Debug)]
pub(super) enum Act {
    /// Make a mirror of this pod.
    Create(Arc<Pod>),
    /// Delete the mirror with this uid.
    Delete(String),
    /// Tell which mirror a pod has.
    Tell { uid: String, mirror: Option<String> },
}

/// A mirror that the API has.
#[derive(Clone, Debug)]
struct Picture {
    uid: String,
    /// Of the pod it shows.
    hash: String,
    /// Somebody wants it gone.
    unwanted: bool,
    /// We have already deleted it: it will be gone.
    deleted: bool,
}

/// See the [module](self).
#[derive(Default)]
pub(super) struct Album {
    pods: BTreeMap<Key, Arc<Pod>>,
    pictures: BTreeMap<Key, Picture>,
    /// The files have said everything once; before, what they do not name may still come.
    files_known: bool,
    /// The API has said everything once; before, what it does not have may still come.
    pictures_known: bool,
    /// Which mirror each pod was last told to have.
    told: BTreeMap<String, String>,
}

impl Album {
    /// The files say something.
    pub(super) fn has(&mut self, change: PodUpdate) {
        match change {
            PodUpdate::Set(pod) => {
                self.pods.insert(key(&pod.id), pod);
            }
            PodUpdate::Removed(id) => {
                let key = key(&id);
                if self.pods.get(&key).is_some_and(|pod| pod.id.uid == id.uid) {
                    self.pods.remove(&key);
                }
                self.told.remove(&id.uid);
            }
            PodUpdate::Synced(origin) => self.files_known |= origin == Origin::File,
        }
    }

    /// The API says something.
    pub(super) fn shows(&mut self, change: PodUpdate) {
        match change {
            PodUpdate::Set(mirror) => {
                let hash = mirror.metadata()["annotations"][MIRROR].as_str();
                let known = self.pictures.get(&key(&mirror.id));
                let same = known.filter(|known| known.uid == mirror.id.uid);
                let picture = Picture {
                    uid: mirror.id.uid.clone(),
                    hash: hash.unwrap_or_default().to_owned(),
                    unwanted: mirror.is_deleted(),
                    deleted: same.is_some_and(|known| known.deleted),
                };
                self.pictures.insert(key(&mirror.id), picture);
            }
            PodUpdate::Removed(id) => {
                let key = key(&id);
                if self
                    .pictures
                    .get(&key)
                    .is_some_and(|known| known.uid == id.uid)
                {
                    self.pictures.remove(&key);
                }
            }
            PodUpdate::Synced(origin) => self.pictures_known |= origin == Origin::Api,
        }
    }

    /// A mirror was made.
    pub(super) fn created(&mut self, key: &Key, uid: &str, pod: &Pod) {
        let picture = Picture {
            uid: uid.to_owned(),
            hash: pod.id.uid.clone(),
            unwanted: false,
            deleted: false,
        };
        self.pictures.entry(key.clone()).or_insert(picture);
    }

    /// A mirror was deleted, and is already gone or will be.
    pub(super) fn deleted(&mut self, key: &Key, uid: &str, gone: bool) {
        let Some(picture) = self.pictures.get_mut(key).filter(|known| known.uid == uid) else {
            return;
        };
        picture.deleted = true;
        if gone {
            self.pictures.remove(key);
        }
    }

    /// A pod was told which mirror it has.
    pub(super) fn told(&mut self, uid: &str, mirror: Option<&str>) {
        match mirror {
            Some(mirror) => self.told.insert(uid.to_owned(), mirror.to_owned()),
            None => self.told.remove(uid),
        };
    }

    /// Is there anything under this name?
    pub(super) fn knows(&self, key: &Key) -> bool {
        self.pods.contains_key(key) || self.pictures.contains_key(key)
    }

    /// All that can be done now, at most one thing for each name.
    pub(super) fn acts(&self) -> Vec<(Key, Act)> {
        if !self.pictures_known {
            return Vec::new();
        }
        let pods = self.pods.iter();
        let shown = pods.filter_map(|(key, pod)| Some((key.clone(), self.shown(key, pod)?)));
        let unknown = self.pictures.iter().filter_map(|(key, picture)| {
            let gone = self.files_known && !self.pods.contains_key(key) && !picture.deleted;
            gone.then(|| (key.clone(), Act::Delete(picture.uid.clone())))
        });
        shown.chain(unknown).collect()
    }

    fn shown(&self, key: &Key, pod: &Arc<Pod>) -> Option<Act> {
        let uid = pod.id.uid.clone();
        let told = self.told.get(&uid);
        match self.pictures.get(key) {
            Some(picture) if picture.hash == uid && !picture.unwanted => {
                let mirror = Some(picture.uid.clone());
                (told != mirror.as_ref()).then_some(Act::Tell { uid, mirror })
            }
            _ if told.is_some() => Some(Act::Tell { uid, mirror: None }),
            Some(picture) if picture.deleted => None,
            Some(picture) => Some(Act::Delete(picture.uid.clone())),
            None => Some(Act::Create(Arc::clone(pod))),
        }
    }
}

fn key(id: &PodId) -> Key {
    (id.namespace.clone(), id.name.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(uid: &str) -> PodUpdate {
        let metadata = json!({"namespace": "ns", "name": "p", "uid": uid});
        set(&metadata, Origin::File)
    }

    fn mirror(uid: &str, of: &str, deleted: bool) -> PodUpdate {
        let mut metadata = json!({"namespace": "ns", "name": "p", "uid": uid,
            "annotations": {MIRROR: of}});
        if deleted {
            metadata["deletionTimestamp"] = "2026-01-02T03:04:05Z".into();
        }
        set(&metadata, Origin::Api)
    }

    fn set(metadata: &serde_json::Value, origin: Origin) -> PodUpdate {
        let object = json!({"metadata": metadata, "spec": {"containers": []}});
        PodUpdate::Set(Arc::new(Pod::parse(object, origin).unwrap()))
    }

    fn gone(uid: &str) -> PodUpdate {
        PodUpdate::Removed(PodId {
            namespace: "ns".to_owned(),
            name: "p".to_owned(),
            uid: uid.to_owned(),
        })
    }

    /// Does what is to be done, and says what it was.
    fn next(album: &mut Album) -> String {
        let Some((key, act)) = album.acts().pop() else {
            return String::new();
        };
        match act {
            Act::Create(pod) => {
                album.created(&key, "m9", &pod);
                format!("create {}", pod.id.uid)
            }
            Act::Delete(uid) => {
                album.deleted(&key, &uid, false);
                format!("delete {uid}")
            }
            Act::Tell { uid, mirror } => {
                album.told(&uid, mirror.as_deref());
                format!("{uid} has {mirror:?}")
            }
        }
    }

    fn ready() -> Album {
        let mut album = Album::default();
        album.has(PodUpdate::Synced(Origin::File));
        album.shows(PodUpdate::Synced(Origin::Api));
        album
    }

    #[test]
    fn a_pod_gets_one_mirror() {
        let mut album = Album::default();
        album.has(pod("a"));
        assert_eq!(next(&mut album), "", "the API may have it already");
        album.shows(PodUpdate::Synced(Origin::Api));
        assert_eq!(next(&mut album), "create a");
        assert_eq!(next(&mut album), "a has Some(\"m9\")");
        album.shows(mirror("m9", "a", false));
        assert_eq!(next(&mut album), "");
    }

    #[test]
    fn a_mirror_that_is_deleted_comes_back() {
        let mut album = ready();
        album.has(pod("a"));
        album.shows(mirror("m1", "a", false));
        assert_eq!(next(&mut album), "a has Some(\"m1\")");
        album.shows(mirror("m1", "a", true));
        assert_eq!(next(&mut album), "a has None");
        assert_eq!(next(&mut album), "delete m1");
        assert_eq!(next(&mut album), "", "it is not gone yet");
        album.shows(gone("m1"));
        assert_eq!(next(&mut album), "create a");
    }

    #[test]
    fn a_mirror_of_another_pod_is_replaced() {
        let mut album = ready();
        album.shows(mirror("m1", "old", false));
        album.has(pod("a"));
        assert_eq!(next(&mut album), "delete m1");
        album.shows(gone("m1"));
        assert_eq!(next(&mut album), "create a");
    }

    #[test]
    fn mirrors_of_nothing_go_when_the_files_are_known() {
        let mut album = Album::default();
        album.shows(mirror("m1", "a", false));
        album.shows(PodUpdate::Synced(Origin::Api));
        assert_eq!(next(&mut album), "");
        album.has(PodUpdate::Synced(Origin::File));
        assert_eq!(next(&mut album), "delete m1");
        assert_eq!(next(&mut album), "");
    }

    #[test]
    fn pods_of_the_api_that_are_gone_change_nothing() {
        let mut album = ready();
        album.has(pod("a"));
        album.shows(mirror("m1", "a", false));
        next(&mut album);
        album.shows(gone("other"));
        assert_eq!(next(&mut album), "");
    }
}
