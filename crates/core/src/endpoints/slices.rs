//! Assigns the endpoints of one service to as few slices as possible, and changes as few of them as possible.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::facts::{Family, Labels, Uid};
use super::member::{Endpoint, Ports};
use super::parse::ParsedSlice;
use super::write::Deferred;

/// What all endpoints of a slice share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Group {
    pub(super) family: Family,
    pub(super) ports: Ports,
}

#[derive(Debug)]
pub(super) struct Slice {
    /// `None` before it is created.
    pub(super) uid: Option<Uid>,
    pub(super) version: u64,
    pub(super) group: Group,
    pub(super) endpoints: BTreeMap<Uid, Endpoint>,
    pub(super) labels: Labels,
    pub(super) owners: Value,
    pub(super) annotations: Labels,
    /// It differs from the stored slice.
    pub(super) dirty: bool,
    pub(super) to_delete: bool,
    pub(super) write_in_flight: bool,
    pub(super) deferred: Option<Deferred<ParsedSlice>>,
}

#[derive(Debug, Default)]
pub(super) struct Slices {
    pub(super) all: BTreeMap<Arc<str>, Slice>,
    /// The slice of each endpoint.
    placed: BTreeMap<(Uid, Family), Arc<str>>,
}

/// Generates names for slices.
pub(super) type Namer<'a> = &'a mut dyn FnMut() -> Arc<str>;

impl Slices {
    /// Takes over a stored slice that differs from ours. Returns the pods to update.
    pub(super) fn observe(&mut self, name: &Arc<str>, seen: ParsedSlice) -> Vec<Uid> {
        let mut touched = self.remove(name);
        // A slice with our label that is not in our form is deleted.
        let to_delete = seen.group.is_none();
        let group = seen.group.unwrap_or_else(|| Group {
            family: Family::V4,
            ports: Vec::new().into(),
        });
        let mut slice = Slice {
            uid: Some(seen.uid),
            version: seen.version,
            group,
            endpoints: BTreeMap::new(),
            labels: seen.labels,
            owners: seen.owners,
            annotations: seen.annotations,
            dirty: !seen.exact,
            to_delete,
            write_in_flight: false,
            deferred: None,
        };
        for endpoint in seen.endpoints {
            touched.push(endpoint.uid.clone());
            let key = (endpoint.uid.clone(), slice.group.family);
            let foreign = Family::of(endpoint.address) != slice.group.family;
            if foreign || to_delete || self.placed.contains_key(&key) {
                slice.dirty = true;
            } else {
                self.placed.insert(key, name.clone());
                slice.endpoints.insert(endpoint.uid.clone(), endpoint);
            }
        }
        self.all.insert(name.clone(), slice);
        touched
    }

    /// Removes a slice. Returns its pods.
    pub(super) fn remove(&mut self, name: &str) -> Vec<Uid> {
        let Some(slice) = self.all.remove(name) else {
            return Vec::new();
        };
        let family = slice.group.family;
        let endpoints: Vec<Uid> = slice.endpoints.into_keys().collect();
        for uid in &endpoints {
            self.placed.remove(&(uid.clone(), family));
        }
        endpoints
    }

    pub(super) fn members(&self) -> impl Iterator<Item = &Uid> {
        self.placed.keys().map(|(uid, _)| uid)
    }

    /// Updates the endpoint of a pod in its slice, or removes it. True if it needs a slice.
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
        let slice = self
            .all
            .get_mut(name)
            .expect("an endpoint in `placed` is in that slice");
        if let Some((group, endpoint)) = want
            && slice.group == *group
            && !slice.to_delete
        {
            if slice.endpoints.get(uid) != Some(endpoint) {
                slice.endpoints.insert(uid.clone(), endpoint.clone());
                slice.dirty = true;
            }
            return false;
        }
        slice.endpoints.remove(uid);
        slice.dirty = true;
        self.placed.remove(&key);
        want.is_some()
    }

    /// Assigns endpoints to slices: first to slices that are written anyway, then to new slices as far as they become full,
    /// and the remainder to one slice with enough space or to a new one.
    pub(super) fn place(
        &mut self,
        group: &Group,
        mut unplaced: Vec<Endpoint>,
        max: usize,
        namer: Namer<'_>,
    ) {
        let of_group = |(_, slice): &(&Arc<str>, &Slice)| slice.group == *group && !slice.to_delete;
        let rooms = self.all.iter().filter(of_group);
        let rooms = rooms.map(|(name, slice)| {
            let room = max.saturating_sub(slice.endpoints.len());
            (room, slice.dirty, name.clone())
        });
        let mut rooms: Vec<(usize, bool, Arc<str>)> = rooms.filter(|r| r.0 > 0).collect();
        rooms.sort_unstable();
        for (room, _, name) in rooms.iter().filter(|room| room.1) {
            let some = unplaced.split_off(unplaced.len().saturating_sub(*room));
            self.fill(name, some);
        }
        while unplaced.len() >= max {
            let some = unplaced.split_off(unplaced.len() - max);
            self.add_slice(group, some, namer);
        }
        if unplaced.is_empty() {
            return;
        }
        let mut clean = rooms.iter().filter(|room| !room.1);
        match clean.find(|room| room.0 >= unplaced.len()) {
            Some((_, _, name)) => self.fill(name, unplaced),
            None => self.add_slice(group, unplaced, namer),
        }
    }

    fn fill(&mut self, name: &Arc<str>, endpoints: Vec<Endpoint>) {
        let slice = self.all.get_mut(name).expect("the slice exists");
        for endpoint in endpoints {
            let key = (endpoint.uid.clone(), slice.group.family);
            self.placed.insert(key, name.clone());
            slice.endpoints.insert(endpoint.uid.clone(), endpoint);
            slice.dirty = true;
        }
    }

    fn add_slice(&mut self, group: &Group, endpoints: Vec<Endpoint>, namer: Namer<'_>) {
        let name = namer();
        let slice = Slice {
            uid: None,
            version: 0,
            group: group.clone(),
            endpoints: BTreeMap::new(),
            labels: Labels::new(),
            owners: Value::Null,
            annotations: Labels::new(),
            dirty: true,
            to_delete: false,
            write_in_flight: false,
            deferred: None,
        };
        self.all.insert(name.clone(), slice);
        self.fill(&name, endpoints);
    }

    /// Deletes empty slices, but keeps at least one of each family.
    pub(super) fn remove_empty(&mut self, families: &[Family], namer: Namer<'_>) {
        for family in [Family::V4, Family::V6] {
            let of_family = |slice: &&mut Slice| slice.group.family == family && !slice.to_delete;
            let peopled = self.all.values_mut().filter(of_family);
            let mut needed = families.contains(&family)
                && peopled.into_iter().all(|slice| slice.endpoints.is_empty());
            for slice in self.all.values_mut().filter(of_family) {
                if !slice.endpoints.is_empty() {
                    continue;
                }
                if needed && slice.group.ports.is_empty() {
                    needed = false;
                } else {
                    slice.to_delete = true;
                }
            }
            if needed {
                let ports = Vec::new().into();
                self.add_slice(&Group { family, ports }, Vec::new(), namer);
            }
        }
    }

    pub(super) fn delete_all_slices(&mut self) {
        for slice in self.all.values_mut() {
            slice.to_delete = true;
        }
    }
}
