//! Who stands in which slice of one service: as few slices as needed, and as few of them written as possible.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::facts::{Family, Labels, Uid};
use super::member::{Endpoint, Ports};
use super::observed::Seen;

/// What the endpoints of one slice have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Group {
    pub(super) family: Family,
    pub(super) ports: Ports,
}

/// What was seen of a slice while it was being written.
#[derive(Debug)]
pub(super) enum Later {
    Seen(Seen),
    Gone(Uid),
}

/// A slice.
#[derive(Debug)]
pub(super) struct Slice {
    /// Nothing, until it has been created.
    pub(super) uid: Option<Uid>,
    pub(super) version: u64,
    pub(super) group: Group,
    pub(super) held: BTreeMap<Uid, Endpoint>,
    pub(super) labels: Labels,
    pub(super) owners: Value,
    pub(super) annotations: Labels,
    /// It is not what the API has.
    pub(super) dirty: bool,
    /// It is to be deleted.
    pub(super) doomed: bool,
    /// It is being written.
    pub(super) writing: bool,
    pub(super) later: Option<Later>,
}

/// The slices of one service.
#[derive(Debug, Default)]
pub(super) struct Slices {
    pub(super) all: BTreeMap<Arc<str>, Slice>,
    /// Who stands where.
    placed: BTreeMap<(Uid, Family), Arc<str>>,
}

/// Makes names for slices.
pub(super) type Namer<'a> = &'a mut dyn FnMut() -> Arc<str>;

impl Slices {
    /// The API has this slice, which we did not write so. Returns the pods to look at again.
    pub(super) fn observe(&mut self, name: &Arc<str>, seen: Seen) -> Vec<Uid> {
        let mut touched = self.lose(name);
        // One that is none of ours in form is taken away; somebody has made it in our name.
        let doomed = seen.group.is_none();
        let group = seen.group.unwrap_or_else(|| Group {
            family: Family::V4,
            ports: Vec::new().into(),
        });
        let mut slice = Slice {
            uid: Some(seen.uid),
            version: seen.version,
            group,
            held: BTreeMap::new(),
            labels: seen.labels,
            owners: seen.owners,
            annotations: seen.annotations,
            dirty: !seen.exact,
            doomed,
            writing: false,
            later: None,
        };
        for endpoint in seen.held {
            touched.push(endpoint.uid.clone());
            let key = (endpoint.uid.clone(), slice.group.family);
            let foreign = Family::of(endpoint.address) != slice.group.family;
            if foreign || doomed || self.placed.contains_key(&key) {
                slice.dirty = true;
            } else {
                self.placed.insert(key, name.clone());
                slice.held.insert(endpoint.uid.clone(), endpoint);
            }
        }
        self.all.insert(name.clone(), slice);
        touched
    }

    /// A slice is no more. Returns the pods that stood in it.
    pub(super) fn lose(&mut self, name: &str) -> Vec<Uid> {
        let Some(slice) = self.all.remove(name) else {
            return Vec::new();
        };
        let family = slice.group.family;
        let held: Vec<Uid> = slice.held.into_keys().collect();
        for uid in &held {
            self.placed.remove(&(uid.clone(), family));
        }
        held
    }

    /// Everybody who stands somewhere.
    pub(super) fn everybody(&self) -> impl Iterator<Item = &Uid> {
        self.placed.keys().map(|(uid, _)| uid)
    }

    /// Says what a pod should be, and where. Does it need a place?
    pub(super) fn assign(
        &mut self,
        uid: &Uid,
        family: Family,
        want: Option<(&Group, &Endpoint)>,
    ) -> bool {
        let key = (uid.clone(), family);
        let Some(name) = self.placed.get(&key) else {
            return want.is_some();
        };
        let slice = self.all.get_mut(name).expect("who is placed stands there");
        if let Some((group, endpoint)) = want
            && slice.group == *group
            && !slice.doomed
        {
            if slice.held.get(uid) != Some(endpoint) {
                slice.held.insert(uid.clone(), endpoint.clone());
                slice.dirty = true;
            }
            return false;
        }
        slice.held.remove(uid);
        slice.dirty = true;
        self.placed.remove(&key);
        want.is_some()
    }

    /// Finds a place for those who have none: in slices that are written anyway; else, whole slices for as
    /// many as fill them; the rest in one slice that has room for all of them, or in a new one.
    pub(super) fn place(
        &mut self,
        group: &Group,
        mut homeless: Vec<Endpoint>,
        max: usize,
        namer: Namer<'_>,
    ) {
        let of_group = |(_, slice): &(&Arc<str>, &Slice)| slice.group == *group && !slice.doomed;
        let rooms = self.all.iter().filter(of_group);
        let rooms = rooms.map(|(name, slice)| {
            let room = max.saturating_sub(slice.held.len());
            (room, slice.dirty, name.clone())
        });
        let mut rooms: Vec<(usize, bool, Arc<str>)> = rooms.filter(|r| r.0 > 0).collect();
        rooms.sort_unstable();
        for (room, _, name) in rooms.iter().filter(|room| room.1) {
            let some = homeless.split_off(homeless.len().saturating_sub(*room));
            self.fill(name, some);
        }
        while homeless.len() >= max {
            let some = homeless.split_off(homeless.len() - max);
            self.open(group, some, namer);
        }
        if homeless.is_empty() {
            return;
        }
        let mut clean = rooms.iter().filter(|room| !room.1);
        match clean.find(|room| room.0 >= homeless.len()) {
            Some((_, _, name)) => self.fill(name, homeless),
            None => self.open(group, homeless, namer),
        }
    }

    fn fill(&mut self, name: &Arc<str>, endpoints: Vec<Endpoint>) {
        let slice = self.all.get_mut(name).expect("slices with room are there");
        for endpoint in endpoints {
            let key = (endpoint.uid.clone(), slice.group.family);
            self.placed.insert(key, name.clone());
            slice.held.insert(endpoint.uid.clone(), endpoint);
            slice.dirty = true;
        }
    }

    fn open(&mut self, group: &Group, endpoints: Vec<Endpoint>, namer: Namer<'_>) {
        let name = namer();
        let slice = Slice {
            uid: None,
            version: 0,
            group: group.clone(),
            held: BTreeMap::new(),
            labels: Labels::new(),
            owners: Value::Null,
            annotations: Labels::new(),
            dirty: true,
            doomed: false,
            writing: false,
            later: None,
        };
        self.all.insert(name.clone(), slice);
        self.fill(&name, endpoints);
    }

    /// Empty slices go, but a service has at least one of each family, be it empty.
    pub(super) fn tidy(&mut self, families: &[Family], namer: Namer<'_>) {
        for family in [Family::V4, Family::V6] {
            let of_family = |slice: &&mut Slice| slice.group.family == family && !slice.doomed;
            let peopled = self.all.values_mut().filter(of_family);
            let mut needed = families.contains(&family)
                && peopled.into_iter().all(|slice| slice.held.is_empty());
            for slice in self.all.values_mut().filter(of_family) {
                if !slice.held.is_empty() {
                    continue;
                }
                if needed && slice.group.ports.is_empty() {
                    needed = false;
                } else {
                    slice.doomed = true;
                }
            }
            if needed {
                let ports = Vec::new().into();
                self.open(&Group { family, ports }, Vec::new(), namer);
            }
        }
    }

    /// All go.
    pub(super) fn doom(&mut self) {
        for slice in self.all.values_mut() {
            slice.doomed = true;
        }
    }
}
