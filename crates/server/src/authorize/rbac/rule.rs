//! A rule of a role.

use serde_json::{Map, Value, json};

use super::super::{Attributes, ResourceAttributes};
use crate::tree;

/// The wildcard.
pub(crate) const ALL: &str = "*";

/// Verbs on resources, or on non-resource URLs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Rule {
    pub(crate) verbs: Vec<String>,
    pub(crate) groups: Vec<String>,
    pub(crate) resources: Vec<String>,
    pub(crate) names: Vec<String>,
    pub(crate) urls: Vec<String>,
}

impl Rule {
    pub(crate) fn all_of(role: &Value) -> Vec<Self> {
        tree::list(role, "rules").iter().map(Self::of).collect()
    }

    fn of(rule: &Value) -> Self {
        let texts = |field| tree::texts(rule, field).map(str::to_owned).collect();
        Self {
            verbs: texts("verbs"),
            groups: texts("apiGroups"),
            resources: texts("resources"),
            names: texts("resourceNames"),
            urls: texts("nonResourceURLs"),
        }
    }

    pub(crate) fn to_value(&self) -> Value {
        let mut value = Map::new();
        for (field, texts) in [
            ("verbs", &self.verbs),
            ("apiGroups", &self.groups),
            ("resources", &self.resources),
            ("resourceNames", &self.names),
            ("nonResourceURLs", &self.urls),
        ] {
            if !texts.is_empty() {
                value.insert(field.to_owned(), json!(texts));
            }
        }
        Value::Object(value)
    }

    pub(crate) fn allows(&self, asked: &Attributes<'_>) -> bool {
        match asked {
            Attributes::Resource(asked) => {
                has(&self.verbs, asked.verb.as_str())
                    && has(&self.groups, asked.group)
                    && self.has_resource(asked)
                    && (self.names.is_empty() || self.names.iter().any(|n| n == asked.name))
            }
            Attributes::Path { verb, path } => {
                has(&self.verbs, verb.as_str()) && self.urls.iter().any(|url| covers_url(url, path))
            }
        }
    }

    fn has_resource(&self, asked: &ResourceAttributes<'_>) -> bool {
        self.resources.iter().any(|named| {
            named == ALL
                || match (named.split_once('/'), asked.subresource) {
                    (None, "") => named == asked.resource,
                    (Some((_, "")) | None, _) | (_, "") => false,
                    (Some((resource, subresource)), asked_subresource) => {
                        subresource == asked_subresource
                            && (resource == ALL || resource == asked.resource)
                    }
                }
        })
    }
}

/// Whether a list contains `wanted` or the wildcard.
fn has(list: &[String], wanted: &str) -> bool {
    list.iter().any(|entry| entry == wanted || entry == ALL)
}

/// Whether a rule's URL, which may end in `*`, matches a path.
pub(super) fn covers_url(url: &str, path: &str) -> bool {
    url == path || (url.ends_with('*') && path.starts_with(url.trim_end_matches('*')))
}

#[cfg(test)]
pub(super) mod tests {
    use kennel_types::Verb;

    use super::*;

    /// `verbs groups resources names`, or `verbs urls`; lists are joined by commas, `-` is empty.
    pub(in super::super) fn rule(text: &str) -> Rule {
        let lists: Vec<Vec<String>> = text
            .split(' ')
            .map(|list| list.split(',').map(|w| w.replace("core", "")).collect())
            .collect();
        match lists.as_slice() {
            [verbs, urls] => Rule {
                verbs: verbs.clone(),
                urls: urls.clone(),
                ..Rule::default()
            },
            [verbs, groups, resources, rest @ ..] => Rule {
                verbs: verbs.clone(),
                groups: groups.clone(),
                resources: resources.clone(),
                names: rest.first().cloned().unwrap_or_default(),
                urls: Vec::new(),
            },
            _ => panic!("{text}"),
        }
    }

    fn check(text: &str, asked: [&str; 5], expected: bool) {
        let [verb, group, resource, subresource, name] = asked;
        let resource = ResourceAttributes {
            verb: Verb::from(verb),
            group,
            resource,
            subresource,
            name,
            ..ResourceAttributes::default()
        };
        let allowed = rule(text).allows(&Attributes::Resource(resource));
        assert_eq!(allowed, expected, "{text} {asked:?}");
    }

    #[test]
    fn resources_match_as_upstream() {
        check("get core pods", ["get", "", "pods", "", ""], true);
        check("get core pods", ["list", "", "pods", "", ""], false);
        check("get core pods", ["get", "apps", "pods", "", ""], false);
        check("get core pods", ["get", "", "pods", "log", ""], false);
        check("get core pods/log", ["get", "", "pods", "log", ""], true);
        check("get core pods/log", ["get", "", "pods", "", ""], false);
        check("get core pods/*", ["get", "", "pods", "log", ""], false);
        check("get core */log", ["get", "", "pods", "log", ""], true);
        check("get core */log", ["get", "", "pods", "", ""], false);
        check("get core */", ["get", "", "pods", "", ""], false);
        check("get core *", ["get", "", "pods", "log", "x"], true);
        check("* * *", ["escalate", "apps", "pods", "log", "x"], true);
        check("get,list apps,core a,b", ["list", "", "b", "", ""], true);
        check("get core pods a,b", ["get", "", "pods", "", "b"], true);
        check("get core pods a,b", ["get", "", "pods", "", "c"], false);
        check("get core pods a", ["get", "", "pods", "", ""], false);
        check("get /api", ["get", "", "pods", "", ""], false);
    }

    #[test]
    fn urls_match_exactly_or_by_prefix() {
        let check = |text: &str, verb: &str, path: &str, expected| {
            let allowed = rule(text).allows(&Attributes::Path {
                verb: Verb::from(verb),
                path,
            });
            assert_eq!(allowed, expected, "{text} {verb} {path}");
        };
        check("get /api", "get", "/api", true);
        check("get /api", "get", "/api/v1", false);
        check("get /api/*", "get", "/api/v1", true);
        check("get /api/*", "get", "/api", false);
        check("get *", "get", "/metrics", true);
        check("get *", "head", "/metrics", false);
        check("* * *", "get", "/metrics", false);
    }

    #[test]
    fn rules_survive_a_round_trip_through_objects() {
        for text in ["get core pods a", "get,list /api,/apis/*"] {
            let role = json!({"rules": [rule(text).to_value()]});
            assert_eq!(Rule::all_of(&role), [rule(text)]);
        }
    }
}
