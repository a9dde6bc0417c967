//! Sets of fields relative to an object.
//!
//! Most managers own everything below some field of an object: its creator the spec, the kubelet the status.
//! A [`CompactSet`] says so in a word instead of listing the fields, which are the object's own. It stays the
//! same while such a manager adds and removes fields there, so that most writes need not look at it closely.

use crate::managed_fields::field_set::{FieldSet, Node};
use crate::managed_fields::path_element::PathElement;

/// A set of fields relative to all fields of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::managed_fields) struct CompactSet {
    /// Whether what is not in `nodes` is a member, with everything below it.
    pub(super) others: bool,
    /// Sorted by element.
    pub(super) nodes: Vec<CompactNode>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CompactNode {
    pub(super) element: PathElement,
    pub(super) membership: Membership,
    pub(super) below: CompactSet,
}

/// Whether an element itself is a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Membership {
    No = 0,
    Yes = 1,
    /// If it is a field of the object.
    IfPresent = 2,
}

impl Membership {
    fn of(is_member: bool) -> Self {
        if is_member { Self::Yes } else { Self::No }
    }
}

impl CompactSet {
    pub(super) const ALL: Self = Self {
        others: true,
        nodes: Vec::new(),
    };

    /// All fields but these and what is below them, whatever the object has.
    pub(in crate::managed_fields) fn all_but(fields: &FieldSet) -> Self {
        let mut set = Self::ALL;
        set.exclude(fields);
        set
    }

    /// The shorter of two forms: the members by name, or everything with exceptions.
    pub(in crate::managed_fields) fn of(set: &FieldSet, full: &FieldSet) -> Self {
        let is_complete = |node: &Node| set.node(&node.element) == Some(node);
        let complete = full.nodes().iter().filter(|node| is_complete(node)).count();
        Self::with(set, full, complete > full.nodes().len() - complete)
    }

    /// The members by name. `full` has the fields of the object that are around them, and may lack others.
    pub(in crate::managed_fields) fn by_name(set: &FieldSet, full: &FieldSet) -> Self {
        Self::with(set, full, false)
    }

    fn with(set: &FieldSet, full: &FieldSet, others: bool) -> Self {
        let is_complete = |node: &Node| set.node(&node.element) == Some(node);
        let mut nodes = Vec::new();
        // What the object has,
        for node in full.nodes() {
            match set.node(&node.element) {
                Some(_) if is_complete(node) && others => {}
                Some(_) if is_complete(node) => nodes.push(CompactNode::complete(node)),
                Some(owned) => nodes.push(CompactNode::partial(owned, node)),
                None if others => nodes.push(CompactNode::none(node.element.clone())),
                None => {}
            }
        }
        // and what it does not have.
        for owned in set.nodes() {
            if full.node(&owned.element).is_none() {
                nodes.push(CompactNode {
                    element: owned.element.clone(),
                    membership: Membership::of(owned.is_member),
                    below: Self::of(&owned.below, &FieldSet::default()),
                });
            }
        }
        nodes.sort_by(|a, b| a.element.cmp(&b.element));
        Self { others, nodes }
    }

    /// The set for an object with these fields.
    pub(in crate::managed_fields) fn expand(&self, full: &FieldSet) -> FieldSet {
        let mut set = FieldSet::default();
        let none = FieldSet::default();
        if self.others {
            for node in full.nodes() {
                if self.find(&node.element).is_err() {
                    set.add(node.element.clone(), node.is_member, node.below.clone());
                }
            }
        }
        for node in &self.nodes {
            let there = full.node(&node.element);
            let is_member = match node.membership {
                Membership::No => false,
                Membership::Yes => true,
                Membership::IfPresent => there.is_some_and(|there| there.is_member),
            };
            let below = there.map_or(&none, |there| &there.below);
            set.add(node.element.clone(), is_member, node.below.expand(below));
        }
        set
    }

    /// Takes out fields that the object did not have so far: somebody else adds them.
    pub(in crate::managed_fields) fn exclude(&mut self, added: &FieldSet) {
        for field in added.nodes() {
            match self.find(&field.element) {
                Ok(at) => {
                    let node = &mut self.nodes[at];
                    if field.is_member && node.membership == Membership::IfPresent {
                        node.membership = Membership::No;
                    }
                    node.below.exclude(&field.below);
                }
                Err(at) if self.others => {
                    let mut node = CompactNode::none(field.element.clone());
                    if !field.is_member {
                        node.membership = Membership::IfPresent;
                        node.below = Self::all_but(&field.below);
                    }
                    self.nodes.insert(at, node);
                }
                Err(_) => {}
            }
        }
    }

    fn find(&self, element: &PathElement) -> Result<usize, usize> {
        self.nodes
            .binary_search_by(|node| node.element.cmp(element))
    }

    fn node(&self, element: &PathElement) -> Option<&CompactNode> {
        self.find(element).ok().map(|at| &self.nodes[at])
    }

    /// Whether some of these fields, which the object has, are members.
    pub(in crate::managed_fields) fn touches(&self, fields: &FieldSet) -> bool {
        fields
            .nodes()
            .iter()
            .any(|field| match self.node(&field.element) {
                Some(node) => {
                    (node.membership != Membership::No && field.is_member)
                        || node.below.touches(&field.below)
                }
                None => self.others,
            })
    }

    /// Whether some of these fields are members although the object does not have them.
    pub(in crate::managed_fields) fn names(&self, fields: &FieldSet) -> bool {
        fields.nodes().iter().any(|field| {
            self.node(&field.element).is_some_and(|node| {
                (node.membership == Membership::Yes && field.is_member)
                    || node.below.names(&field.below)
            })
        })
    }

    /// Whether these fields are members whenever the object has them.
    pub(in crate::managed_fields) fn contains_freely(&self, fields: &FieldSet) -> bool {
        fields
            .nodes()
            .iter()
            .all(|field| match self.node(&field.element) {
                Some(node) => {
                    (node.membership == Membership::IfPresent || !field.is_member)
                        && node.below.contains_freely(&field.below)
                }
                None => self.others,
            })
    }

    /// Whether all of these fields, which the object has, are members.
    pub(in crate::managed_fields) fn contains(&self, fields: &FieldSet) -> bool {
        fields
            .nodes()
            .iter()
            .all(|field| match self.node(&field.element) {
                Some(node) => {
                    (node.membership != Membership::No || !field.is_member)
                        && node.below.contains(&field.below)
                }
                None => self.others,
            })
    }
}

impl CompactNode {
    /// Neither the element nor anything below it.
    fn none(element: PathElement) -> Self {
        Self {
            element,
            membership: Membership::No,
            below: CompactSet::default(),
        }
    }

    /// All of a field of the object.
    fn complete(node: &Node) -> Self {
        let element = node.element.clone();
        if node.below.is_empty() {
            return Self {
                membership: Membership::of(node.is_member),
                ..Self::none(element)
            };
        }
        Self {
            element,
            membership: Membership::IfPresent,
            below: CompactSet::ALL,
        }
    }

    /// Some of a field of the object.
    fn partial(owned: &Node, node: &Node) -> Self {
        let below = CompactSet::of(&owned.below, &node.below);
        let is_bare = below.nodes.is_empty() && !below.others;
        let membership = if owned.is_member == node.is_member && !is_bare {
            Membership::IfPresent
        } else {
            Membership::of(owned.is_member)
        };
        Self {
            element: node.element.clone(),
            membership,
            below,
        }
    }
}
