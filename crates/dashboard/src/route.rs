//! From a path below `/api` to what it asks for.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use crate::failure::Failure;

/// A DaemonSet that a path names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SetName {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// See the table in [`protocol`](crate::protocol).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Session,
    Overview,
    Stream(SetName),
    Why(SetName, String),
    Logs(SetName, String),
    History(SetName),
    Diff(SetName),
    Preview(SetName),
    Act(SetName),
    Node(String),
}

impl Route {
    pub(crate) fn parse(path: &str) -> Result<Self, Failure> {
        let unknown = || Failure::not_found(format!("there is no {path}"));
        let rest = path.strip_prefix("/api/").ok_or_else(unknown)?;
        let parts = rest.split('/').map(decoded).collect::<Option<Vec<_>>>();
        let parts = parts.ok_or_else(unknown)?;
        let parts: Vec<&str> = parts.iter().map(AsRef::as_ref).collect();
        Ok(match parts[..] {
            ["session"] => Self::Session,
            ["overview"] => Self::Overview,
            ["nodes", node] => Self::Node(node.to_owned()),
            ["daemonsets", namespace, name, ref rest @ ..] => {
                let set = SetName {
                    namespace: namespace.to_owned(),
                    name: name.to_owned(),
                };
                match *rest {
                    ["stream"] => Self::Stream(set),
                    ["history"] => Self::History(set),
                    ["diff"] => Self::Diff(set),
                    ["rollout"] => Self::Act(set),
                    ["rollout", "preview"] => Self::Preview(set),
                    ["nodes", node, "why"] => Self::Why(set, node.to_owned()),
                    ["nodes", node, "logs"] => Self::Logs(set, node.to_owned()),
                    _ => return Err(unknown()),
                }
            }
            _ => return Err(unknown()),
        })
    }

    pub(crate) fn is_change(&self) -> bool {
        matches!(self, Self::Act(_))
    }
}

/// A part of a path, which becomes a part of a path of the API server: what no name can be is refused.
fn decoded(part: &str) -> Option<Cow<'_, str>> {
    let part = percent_decode_str(part).decode_utf8().ok()?;
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
    let is_name = !part.is_empty() && part.len() <= 253 && part.chars().all(allowed);
    (is_name && part != "." && part != "..").then_some(part)
}

/// The parameters of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(query: Option<&str>) -> Self {
        let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
        Self(pairs.into_owned().collect())
    }

    /// The first value; an empty one counts as none.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        let found = self.0.iter().find(|(name, _)| name == key);
        found
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }

    pub(crate) fn is_set(&self, key: &str) -> bool {
        matches!(self.get(key), Some("1" | "true"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_daemonsets_and_nodes() {
        let set = || SetName {
            namespace: "default".to_owned(),
            name: "agent".to_owned(),
        };
        let check = |path: &str, expected: Option<Route>| {
            assert_eq!(Route::parse(path).ok(), expected, "{path}");
        };
        check("/api/session", Some(Route::Session));
        check(
            "/api/daemonsets/default/agent/stream",
            Some(Route::Stream(set())),
        );
        let why = Route::Why(set(), "node-1.example".to_owned());
        check(
            "/api/daemonsets/default/agent/nodes/node%2D1.example/why",
            Some(why),
        );
        check(
            "/api/daemonsets/default/agent/rollout",
            Some(Route::Act(set())),
        );
        check("/api/daemonsets/default/agent", None);
        check("/api/daemonsets/default//stream", None);
        check("/api/nodes/..", None);
        check("/api/nodes/a%2Fb", None);
        check("/api/nodes/%3Cscript%3E", None);
        check("/api", None);
        check("/apis/apps/v1/daemonsets", None);
    }

    #[test]
    fn parameters_are_decoded() {
        let query = Query::parse(Some("group=topology.kubernetes.io%2Fzone&follow=1&empty="));
        assert_eq!(query.get("group"), Some("topology.kubernetes.io/zone"));
        assert!(query.is_set("follow") && !query.is_set("previous"));
        assert_eq!(query.get("empty"), None);
    }
}
