//! Sets of field paths.

use super::path_element::PathElement;
use super::schema::{Fields, Schema, Shape};

/// A set of field paths, as a tree.
///
/// A path is a member on its own: neither its parents nor its children are members because it is one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    /// Sorted by element. Each is a member or has members below.
    nodes: Vec<Node>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) element: PathElement,
    pub(super) is_member: bool,
    pub(super) below: FieldSet,
}

impl Node {
    /// Whether it is a member or has members below.
    fn is_any(&self) -> bool {
        self.is_member || !self.below.is_empty()
    }
}

impl FieldSet {
    /// A set of paths that consist of field names, such as `["metadata", "name"]`.
    pub fn of_names(paths: &[&[&str]]) -> Self {
        let mut set = Self::default();
        for path in paths {
            let path: Vec<PathElement> = path.iter().map(|name| PathElement::field(name)).collect();
            set.insert(&path);
        }
        set
    }

    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// How many paths are members.
    pub fn len(&self) -> usize {
        let each = |node: &Node| usize::from(node.is_member) + node.below.len();
        self.nodes.iter().map(each).sum()
    }

    pub(super) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub(super) fn node(&self, element: &PathElement) -> Option<&Node> {
        self.find(element).ok().map(|at| &self.nodes[at])
    }

    /// Adds a path. The whole object, the empty path, is nobody's.
    pub fn insert(&mut self, path: &[PathElement]) {
        let Some((first, rest)) = path.split_first() else {
            return;
        };
        let node = self.node_mut(first);
        if rest.is_empty() {
            node.is_member = true;
        } else {
            node.below.insert(rest);
        }
    }

    fn node_mut(&mut self, element: &PathElement) -> &mut Node {
        let at = match self.find(element) {
            Ok(at) => at,
            Err(at) => {
                let node = Node {
                    element: element.clone(),
                    is_member: false,
                    below: Self::default(),
                };
                self.nodes.insert(at, node);
                at
            }
        };
        &mut self.nodes[at]
    }

    /// Adds an element with what is below it; merges it with what is there. Nothing happens if it is no member
    /// and has nothing below.
    pub(super) fn add(&mut self, element: PathElement, is_member: bool, below: Self) {
        if !is_member && below.is_empty() {
            return;
        }
        let node = Node {
            element,
            is_member,
            below,
        };
        // Mostly added in order.
        if self
            .nodes
            .last()
            .is_none_or(|last| last.element < node.element)
        {
            self.nodes.push(node);
            return;
        }
        match self.find(&node.element) {
            Err(at) => self.nodes.insert(at, node),
            Ok(at) => {
                let there = &mut self.nodes[at];
                there.is_member |= node.is_member;
                there.below = std::mem::take(&mut there.below).union(&node.below);
            }
        }
    }

    fn find(&self, element: &PathElement) -> Result<usize, usize> {
        self.nodes
            .binary_search_by(|node| node.element.cmp(element))
    }

    /// Whether this path is a member.
    pub fn has(&self, path: &[PathElement]) -> bool {
        match path {
            [] => false,
            [last] => self.has_element(last),
            [first, rest @ ..] => self.below(first).is_some_and(|below| below.has(rest)),
        }
    }

    pub(super) fn has_element(&self, element: &PathElement) -> bool {
        self.find(element).is_ok_and(|at| self.nodes[at].is_member)
    }

    /// Whether the field of this name is a member.
    pub(super) fn has_field(&self, name: &str) -> bool {
        self.field(name).is_some_and(|node| node.is_member)
    }

    /// Whether the field of this name or something below it is a member.
    pub(super) fn names_field(&self, name: &str) -> bool {
        self.field(name).is_some()
    }

    fn field(&self, name: &str) -> Option<&Node> {
        let is_named =
            |node: &&Node| matches!(&node.element, PathElement::Field(field) if **field == *name);
        self.nodes.iter().find(is_named)
    }

    /// What is below an element, if anything is.
    pub(super) fn below(&self, element: &PathElement) -> Option<&Self> {
        let at = self.find(element).ok()?;
        Some(&self.nodes[at].below).filter(|below| !below.is_empty())
    }

    /// The paths that are members of either.
    #[must_use]
    pub fn union(self, other: &Self) -> Self {
        if self.is_empty() {
            return other.clone();
        }
        self.zip(other, |pair| match pair {
            Pair::Left(node) => Some(node),
            Pair::Right(node) => Some(node.clone()),
            Pair::Both(a, b) => Some(Node {
                is_member: a.is_member || b.is_member,
                below: a.below.union(&b.below),
                element: a.element,
            }),
        })
    }

    /// The paths that are members of both.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let both = self.nodes.iter().filter_map(|a| {
            let b = other.node(&a.element)?;
            let node = Node {
                element: a.element.clone(),
                is_member: a.is_member && b.is_member,
                below: a.below.intersection(&b.below),
            };
            node.is_any().then_some(node)
        });
        Self {
            nodes: both.collect(),
        }
    }

    /// The paths that are not members of `other`.
    #[must_use]
    pub fn difference(self, other: &Self) -> Self {
        self.zip(other, |pair| match pair {
            Pair::Left(node) => Some(node),
            Pair::Right(_) => None,
            Pair::Both(a, b) => Some(Node {
                is_member: a.is_member && !b.is_member,
                below: a.below.difference(&b.below),
                element: a.element,
            }),
        })
    }

    /// The paths that are not members of `other` and not below one.
    #[must_use]
    pub fn recursive_difference(self, other: &Self) -> Self {
        self.zip(other, |pair| match pair {
            Pair::Left(node) => Some(node),
            Pair::Right(_) => None,
            Pair::Both(_, b) if b.is_member => None,
            Pair::Both(a, b) => Some(Node {
                is_member: a.is_member,
                below: a.below.recursive_difference(&b.below),
                element: a.element,
            }),
        })
    }

    /// Whether all members are members of `other`.
    pub fn is_subset_of(&self, other: &Self) -> bool {
        self.nodes.iter().all(|a| {
            other
                .node(&a.element)
                .is_some_and(|b| (b.is_member || !a.is_member) && a.below.is_subset_of(&b.below))
        })
    }

    /// Calls `combine` for every element of either set, in order.
    fn zip(self, other: &Self, mut combine: impl FnMut(Pair<'_>) -> Option<Node>) -> Self {
        if other.is_empty() {
            return self;
        }
        let mut nodes = Vec::with_capacity(self.nodes.len());
        let mut push = |node: Option<Node>| nodes.extend(node.filter(Node::is_any));
        let mut others = other.nodes.iter().peekable();
        for node in self.nodes {
            while let Some(other) = others.next_if(|other| other.element < node.element) {
                push(combine(Pair::Right(other)));
            }
            let same = others.next_if(|other| other.element == node.element);
            push(combine(match same {
                Some(other) => Pair::Both(node, other),
                None => Pair::Left(node),
            }));
        }
        for other in others {
            push(combine(Pair::Right(other)));
        }
        Self { nodes }
    }

    /// Makes the declared fields that lead to members members too: pruning compares sets in which one side
    /// may name a field and the other only what is below it.
    #[must_use]
    pub fn with_named_parents<S: Schema>(&self, schema: Option<S>) -> Self {
        let nodes = self.nodes.iter().map(|node| {
            let (is_declared, child) = descend(schema, &node.element);
            Node {
                element: node.element.clone(),
                is_member: node.is_member || is_declared,
                below: node.below.with_named_parents(child),
            }
        });
        Self {
            nodes: nodes.collect(),
        }
    }

    /// The members in order: those of a level before those below it.
    pub fn paths(&self) -> Vec<Vec<PathElement>> {
        let mut paths = Vec::new();
        self.collect_paths(&mut Vec::new(), &mut paths);
        paths
    }

    fn collect_paths(&self, prefix: &mut Vec<PathElement>, paths: &mut Vec<Vec<PathElement>>) {
        for node in self.nodes.iter().filter(|node| node.is_member) {
            paths.push([prefix.as_slice(), std::slice::from_ref(&node.element)].concat());
        }
        for node in &self.nodes {
            prefix.push(node.element.clone());
            node.below.collect_paths(prefix, paths);
            prefix.pop();
        }
    }
}

/// An element of two sets.
enum Pair<'a> {
    Left(Node),
    Right(&'a Node),
    Both(Node, &'a Node),
}

/// Whether the element is a declared field of the schema, and the schema below it.
fn descend<S: Schema>(schema: Option<S>, element: &PathElement) -> (bool, Option<S>) {
    let Some(schema) = schema else {
        return (false, None);
    };
    match (element, schema.shape()) {
        (PathElement::Field(name), Shape::Map(fields)) => match fields {
            Fields::Declared => {
                let member = schema.member(name);
                (member.is_some(), member)
            }
            Fields::Free => (false, schema.item()),
        },
        (PathElement::Key(_), Shape::List(_)) => (false, schema.item()),
        _ => (false, None),
    }
}
