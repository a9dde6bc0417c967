//! The served paths and their operations, from discovery.

use kennel_types::Verb;
use serde_json::{Value, json};

use crate::discovery::entry::{Entry, entries};
use crate::registry::{Connect, Handler, Scope, Subresource};

/// A kind with its group and version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GroupVersionKind {
    pub(super) group: &'static str,
    pub(super) version: &'static str,
    pub(super) kind: &'static str,
}

impl GroupVersionKind {
    /// As in `x-kubernetes-group-version-kind`.
    pub(super) fn to_json(self) -> Value {
        json!({"group": self.group, "version": self.version, "kind": self.kind})
    }
}

/// What an operation does, in upstream's words (`x-kubernetes-action`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    List,
    Get,
    Post,
    Put,
    Patch,
    Delete,
    DeleteCollection,
    /// A container's log, as text.
    Log,
    /// A request that the server forwards to the kubelet API.
    Connect(Connect, &'static str),
}

impl Action {
    /// The verb that discovery lists it under. Connections have none of their own.
    fn verb(self) -> Option<Verb<'static>> {
        match self {
            Self::List => Some(Verb::List),
            Self::Get | Self::Log => Some(Verb::Get),
            Self::Post => Some(Verb::Create),
            Self::Put => Some(Verb::Update),
            Self::Patch => Some(Verb::Patch),
            Self::Delete => Some(Verb::Delete),
            Self::DeleteCollection => Some(Verb::DeleteCollection),
            Self::Connect(..) => None,
        }
    }

    /// The HTTP method, the action, and the word that operation ids begin with.
    fn words(self) -> [&'static str; 3] {
        match self {
            Self::List => ["get", "list", "list"],
            Self::Get | Self::Log => ["get", "get", "read"],
            Self::Post => ["post", "post", "create"],
            Self::Put => ["put", "put", "replace"],
            Self::Patch => ["patch", "patch", "patch"],
            Self::Delete => ["delete", "delete", "delete"],
            Self::DeleteCollection => ["delete", "deletecollection", "delete"],
            Self::Connect(_, method) => [method, "connect", "connect"],
        }
    }

    /// The HTTP method in lower case.
    pub(super) fn method(self) -> &'static str {
        self.words()[0]
    }

    /// The value of `x-kubernetes-action`.
    pub(super) fn name(self) -> &'static str {
        self.words()[1]
    }
}

/// One operation on a path.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) action: Action,
    pub(super) kind: GroupVersionKind,
    pub(super) id: String,
    /// The group-version by which generated clients group operations: `apps_v1`.
    pub(super) tag: String,
    /// In upstream's words: `replace status of the specified Pod`.
    pub(super) description: String,
}

/// A path with its operations.
#[derive(Debug)]
pub(super) struct Path {
    pub(super) path: String,
    pub(super) operations: Vec<Operation>,
}

impl Path {
    /// The parameters in the path.
    pub(super) fn parameters(&self) -> impl Iterator<Item = &'static str> {
        let named = ["name", "namespace", "path"].into_iter();
        named.filter(|name| self.path.contains(&format!("{{{name}}}")))
    }
}

/// The root of a group-version: `api/v1` or `apis/apps/v1`.
pub(super) fn root(group: &str, version: &str) -> String {
    if group.is_empty() {
        return format!("api/{version}");
    }
    format!("apis/{group}/{version}")
}

/// The paths of a group-version.
pub(super) fn paths(group: &'static str, version: &'static str) -> Vec<Path> {
    let entries = entries(group, version);
    let paths = entries.iter().flat_map(|entry| {
        let resource = ResourcePaths {
            group,
            version,
            entry,
        };
        resource.paths()
    });
    paths.filter(|path| !path.operations.is_empty()).collect()
}

/// The kinds that the operations of a group-version are about, each once.
pub(super) fn kinds(paths: &[Path]) -> Vec<GroupVersionKind> {
    let mut kinds = Vec::new();
    for operation in paths.iter().flat_map(|path| &path.operations) {
        if !kinds.contains(&operation.kind) {
            kinds.push(operation.kind);
        }
    }
    kinds
}

struct ResourcePaths<'a> {
    group: &'static str,
    version: &'static str,
    entry: &'a Entry,
}

impl ResourcePaths<'_> {
    fn paths(&self) -> Vec<Path> {
        use Action::{Delete, DeleteCollection, Get, List, Log, Patch, Post, Put};
        let (root, plural) = (root(self.group, self.version), self.entry.plural);
        let everywhere = format!("/{root}/{plural}");
        let collection = match self.entry.scope {
            Scope::Namespaced => format!("/{root}/namespaces/{{namespace}}/{plural}"),
            Scope::Cluster => everywhere.clone(),
        };
        let one = format!("{collection}/{{name}}");
        let (kind, verbs) = (self.kind(), self.entry.verbs);
        let mut paths = vec![
            self.path(collection, &[List, Post, DeleteCollection], kind, verbs, ""),
            self.path(one.clone(), &[Get, Put, Patch, Delete], kind, verbs, ""),
        ];
        for sub in &self.entry.subresources {
            let path = format!("{one}/{}", sub.name);
            let kind = self.kind_of(sub);
            let actions: &[Action] = match sub.handler {
                Handler::Connect(Connect::Log) => &[Log],
                Handler::Connect(connect) => {
                    paths.extend(self.leading_out(path, kind, sub, connect));
                    continue;
                }
                _ => &[Get, Post, Put, Patch],
            };
            paths.push(self.path(path, actions, kind, sub.verbs, sub.name));
        }
        if self.entry.scope == Scope::Namespaced && verbs.contains(&Verb::List) {
            paths.push(Path {
                path: everywhere,
                operations: vec![Operation {
                    action: List,
                    kind,
                    id: format!("list{}{}ForAllNamespaces", self.prefix(), kind.kind),
                    tag: self.tag(),
                    description: self.description(List, ""),
                }],
            });
        }
        paths
    }

    fn path(
        &self,
        path: String,
        actions: &[Action],
        kind: GroupVersionKind,
        verbs: &[Verb<'_>],
        sub: &str,
    ) -> Path {
        let served = actions
            .iter()
            .filter(|a| a.verb().is_some_and(|verb| verbs.contains(&verb)));
        let operations = served
            .map(|action| Operation {
                action: *action,
                kind,
                id: self.id(*action, sub),
                tag: self.tag(),
                description: self.description(*action, sub),
            })
            .collect();
        Path { path, operations }
    }

    /// The paths of a subresource that is forwarded to the kubelet API; a proxy has further paths.
    fn leading_out(
        &self,
        path: String,
        kind: GroupVersionKind,
        sub: &Subresource,
        connect: Connect,
    ) -> Vec<Path> {
        let methods = [
            (Verb::Delete, "delete"),
            (Verb::Get, "get"),
            (Verb::Patch, "patch"),
            (Verb::Create, "post"),
            (Verb::Update, "put"),
        ];
        let served = methods.iter().filter(|(verb, _)| sub.verbs.contains(verb));
        let operations = |with: &str| {
            let each = served.clone().map(|(_, method)| Operation {
                action: Action::Connect(connect, method),
                kind,
                id: format!(
                    "{}{with}",
                    self.id(Action::Connect(connect, method), sub.name)
                ),
                tag: self.tag(),
                description: self.description(Action::Connect(connect, method), sub.name),
            });
            each.collect()
        };
        let mut paths = Vec::new();
        if sub.name == "proxy" {
            paths.push(Path {
                path: format!("{path}/{{path}}"),
                operations: operations("WithPath"),
            });
        }
        let operations = operations("");
        paths.push(Path { path, operations });
        paths
    }

    fn kind(&self) -> GroupVersionKind {
        GroupVersionKind {
            group: self.group,
            version: self.version,
            kind: self.entry.kind,
        }
    }

    fn kind_of(&self, sub: &Subresource) -> GroupVersionKind {
        GroupVersionKind {
            group: sub.group.unwrap_or(self.group),
            version: sub.version.unwrap_or(self.version),
            kind: sub.kind,
        }
    }

    /// Upstream's way to name operations: `replaceAppsV1NamespacedDaemonSetStatus`.
    fn id(&self, action: Action, sub: &str) -> String {
        let scope = match self.entry.scope {
            Scope::Namespaced => "Namespaced",
            Scope::Cluster => "",
        };
        let (prefix, kind) = (self.prefix(), self.entry.kind);
        let method = match action {
            Action::Connect(_, method) => capitalised(method),
            Action::DeleteCollection => "Collection".to_owned(),
            _ => String::new(),
        };
        format!(
            "{}{prefix}{method}{scope}{kind}{}",
            action.words()[2],
            capitalised(sub)
        )
    }

    fn description(&self, action: Action, sub: &str) -> String {
        let kind = self.entry.kind;
        let of = if sub.is_empty() {
            String::new()
        } else {
            format!("{sub} of ")
        };
        let article = match kind.chars().next() {
            _ if kind.ends_with('s') && !kind.ends_with("ss") => "",
            Some('A' | 'E' | 'I' | 'O' | 'U') => "an ",
            _ => "a ",
        };
        match action {
            Action::List => format!("list or watch objects of kind {kind}"),
            Action::Get | Action::Log => format!("read {of}the specified {kind}"),
            Action::Post => format!("create {of}{article}{kind}"),
            Action::Put => format!("replace {of}the specified {kind}"),
            Action::Patch => format!("partially update {of}the specified {kind}"),
            Action::Delete => format!("delete {article}{kind}"),
            Action::DeleteCollection => format!("delete collection of {kind}"),
            Action::Connect(_, method) => {
                let method = method.to_uppercase();
                format!("connect {method} requests to {of}{kind}")
            }
        }
    }

    fn prefix(&self) -> String {
        let group = self.group_words().into_iter().map(capitalised);
        let group: String = group.collect();
        format!("{group}{}", capitalised(self.version))
    }

    fn tag(&self) -> String {
        let words = self.group_words();
        let (first, rest) = words.split_first().unwrap_or((&"", &[]));
        let rest: String = rest.iter().copied().map(capitalised).collect();
        format!("{first}{rest}_{}", self.version)
    }

    /// The group as names have it: `rbac` and `authorization`.
    fn group_words(&self) -> Vec<&'static str> {
        match self.group.trim_end_matches(".k8s.io") {
            "" => vec!["core"],
            group => group.split('.').collect(),
        }
    }
}

fn capitalised(word: &str) -> String {
    let mut characters = word.chars();
    match characters.next() {
        Some(first) => first.to_uppercase().chain(characters).collect(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::registry::group_versions;

    fn listed(group: &'static str, path: &str) -> Vec<(&'static str, String)> {
        let paths = paths(group, "v1");
        let path = paths.iter().find(|p| p.path == path);
        let operations = path.into_iter().flat_map(|p| &p.operations);
        operations
            .map(|o| (o.action.name(), o.id.clone()))
            .collect()
    }

    fn check(group: &'static str, path: &str, expected: &[(&str, &str)]) {
        let listed = listed(group, path);
        let listed: Vec<(&str, &str)> = listed.iter().map(|(a, id)| (*a, id.as_str())).collect();
        assert_eq!(listed, expected, "{path}");
    }

    #[test]
    fn paths_offer_the_verbs_of_their_rows() {
        check(
            "apps",
            "/apis/apps/v1/daemonsets",
            &[("list", "listAppsV1DaemonSetForAllNamespaces")],
        );
        check(
            "apps",
            "/apis/apps/v1/namespaces/{namespace}/daemonsets",
            &[
                ("list", "listAppsV1NamespacedDaemonSet"),
                ("post", "createAppsV1NamespacedDaemonSet"),
                (
                    "deletecollection",
                    "deleteAppsV1CollectionNamespacedDaemonSet",
                ),
            ],
        );
        check(
            "apps",
            "/apis/apps/v1/namespaces/{namespace}/daemonsets/{name}/status",
            &[
                ("get", "readAppsV1NamespacedDaemonSetStatus"),
                ("put", "replaceAppsV1NamespacedDaemonSetStatus"),
                ("patch", "patchAppsV1NamespacedDaemonSetStatus"),
            ],
        );
        // Namespaces have no deletecollection, and bindings only create.
        check(
            "",
            "/api/v1/namespaces",
            &[
                ("list", "listCoreV1Namespace"),
                ("post", "createCoreV1Namespace"),
            ],
        );
        check(
            "",
            "/api/v1/namespaces/{namespace}/bindings",
            &[("post", "createCoreV1NamespacedBinding")],
        );
        check("", "/api/v1/bindings", &[]);
        check(
            "",
            "/api/v1/namespaces/{namespace}/pods/{name}/eviction",
            &[("post", "createCoreV1NamespacedPodEviction")],
        );
        check(
            "",
            "/api/v1/namespaces/{namespace}/pods/{name}/log",
            &[("get", "readCoreV1NamespacedPodLog")],
        );
        check(
            "",
            "/api/v1/namespaces/{namespace}/pods/{name}/exec",
            &[
                ("connect", "connectCoreV1GetNamespacedPodExec"),
                ("connect", "connectCoreV1PostNamespacedPodExec"),
            ],
        );
        let beyond = listed("", "/api/v1/nodes/{name}/proxy/{path}");
        assert_eq!(beyond.len(), 5);
        assert_eq!(beyond[1].1, "connectCoreV1GetNodeProxyWithPath");
    }

    #[test]
    fn a_part_of_a_pod_is_read_and_written() {
        check(
            "",
            "/api/v1/namespaces/{namespace}/pods/{name}/ephemeralcontainers",
            &[
                ("get", "readCoreV1NamespacedPodEphemeralcontainers"),
                ("put", "replaceCoreV1NamespacedPodEphemeralcontainers"),
                ("patch", "patchCoreV1NamespacedPodEphemeralcontainers"),
            ],
        );
    }

    #[test]
    fn operations_are_described_in_upstreams_words() {
        let check = |group, id: &str, expected: &str| {
            let all = paths(group, "v1");
            let mut all = all.iter().flat_map(|path| &path.operations);
            let found = all.find(|operation| operation.id == id).expect(id);
            assert_eq!(found.description, expected);
        };
        check("", "createCoreV1NamespacedEndpoints", "create Endpoints");
        check("", "deleteCoreV1NamespacedEvent", "delete an Event");
        let evict = "create eviction of a Pod";
        check("", "createCoreV1NamespacedPodEviction", evict);
        let exec = "connect GET requests to exec of Pod";
        check("", "connectCoreV1GetNamespacedPodExec", exec);
        let status = "partially update status of the specified DaemonSet";
        check("apps", "patchAppsV1NamespacedDaemonSetStatus", status);
        let class = "delete a PriorityClass";
        check(
            "scheduling.k8s.io",
            "deleteSchedulingV1PriorityClass",
            class,
        );
    }

    #[test]
    fn operations_are_tagged_by_the_group_version_of_their_path() {
        for (group, expected) in [
            ("", "core_v1"),
            ("apps", "apps_v1"),
            ("rbac.authorization.k8s.io", "rbacAuthorization_v1"),
        ] {
            let paths = paths(group, "v1");
            // An eviction, too, whose kind is another group's.
            let mut operations = paths.iter().flat_map(|path| &path.operations);
            assert!(
                operations.all(|operation| operation.tag == expected),
                "{group}"
            );
        }
    }

    #[test]
    fn operation_ids_are_unique() {
        let mut seen = BTreeSet::new();
        for (group, version) in group_versions() {
            for operation in paths(group, version).into_iter().flat_map(|p| p.operations) {
                assert!(seen.insert(operation.id.clone()), "{}", operation.id);
            }
        }
    }

    #[test]
    fn subresources_may_take_another_groups_kind() {
        let paths = paths("", "v1");
        let eviction = paths
            .iter()
            .find(|p| p.path.ends_with("/eviction"))
            .expect("eviction");
        assert_eq!(eviction.operations[0].kind.group, "policy");
        assert_eq!(
            eviction.parameters().collect::<Vec<_>>(),
            ["name", "namespace"]
        );
    }
}
