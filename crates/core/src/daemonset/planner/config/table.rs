//! The ConfigMaps of namespaces in which config is pinned: hashes of their contents, never the contents.

use std::collections::HashMap;
use std::sync::Arc;

use kennel_types::Monotonic;

use super::super::super::view::ConfigMapView;

/// See the [module](self).
#[derive(Debug, Default)]
pub(in super::super) struct ConfigTable {
    namespaces: HashMap<Arc<str>, Namespace>,
}

#[derive(Debug, Default)]
pub(super) struct Namespace {
    /// All its ConfigMaps are known.
    synced: bool,
    maps: HashMap<Arc<str>, Entry>,
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) view: ConfigMapView,
    /// When its content changed, if that was after the first list.
    pub(super) changed: Option<Monotonic>,
}

impl Namespace {
    pub(super) fn get(&self, name: &str) -> Option<&Entry> {
        self.maps.get(name)
    }

    /// The copy of this name, if it belongs to the revision with this uid.
    pub(super) fn copy(&self, name: &str, revision: &str) -> Option<&ConfigMapView> {
        let view = &self.maps.get(name)?.view;
        (view.owner.as_deref() == Some(revision)).then_some(view)
    }
}

impl ConfigTable {
    /// Enters a ConfigMap. True if its content or its owner is new.
    pub(super) fn put(&mut self, view: ConfigMapView, now: Monotonic) -> bool {
        let namespace = self.namespaces.entry(view.namespace.clone()).or_default();
        let known = namespace.maps.get(&view.name);
        if known
            .is_some_and(|known| (&known.view.hash, &known.view.owner) == (&view.hash, &view.owner))
        {
            return false;
        }
        let entry = Entry {
            changed: namespace.synced.then_some(now),
            view,
        };
        namespace.maps.insert(entry.view.name.clone(), entry);
        true
    }

    pub(super) fn remove(&mut self, namespace: &str, name: &str) {
        if let Some(namespace) = self.namespaces.get_mut(namespace) {
            namespace.maps.remove(name);
        }
    }

    pub(super) fn synced(&mut self, namespace: &Arc<str>) {
        self.namespaces.entry(namespace.clone()).or_default().synced = true;
    }

    pub(super) fn close(&mut self, namespace: &str) {
        self.namespaces.remove(namespace);
    }

    /// The ConfigMaps of a namespace, if all are known.
    pub(super) fn of(&self, namespace: &str) -> Option<&Namespace> {
        let namespace = self.namespaces.get(namespace);
        namespace.filter(|namespace| namespace.synced)
    }
}
