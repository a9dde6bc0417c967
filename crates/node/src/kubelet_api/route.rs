//! Routes of the kubelet API, and the access that each requires. Pure.

use http::Method;
use kennel_types::Verb;

/// See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// One check, or all if it is empty.
    Healthz(String),
    Pods,
    Metrics,
    /// Usage of the machine and its containers.
    Summary,
    /// The same as metrics.
    ResourceMetrics,
    /// The same in cAdvisor's names, and more of it.
    CadvisorMetrics,
    /// The settings of the agent.
    Configz,
    Logs(Container),
    Exec(Container),
    Attach(Container),
    PortForward {
        namespace: String,
        pod: String,
        /// Empty if the path has none.
        uid: String,
    },
}

/// A container, as a path names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Container {
    pub(super) namespace: String,
    pub(super) pod: String,
    /// Uid of the pod; empty if the path has none.
    pub(super) uid: String,
    pub(super) name: String,
}

/// The access to the Node object that a request requires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RequiredAccess {
    pub(super) verb: Verb<'static>,
    /// Access to one of these subresources suffices.
    pub(super) subresources: &'static [&'static str],
}

impl Route {
    pub(super) fn parse(path: &str) -> Option<Self> {
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        Some(match parts.as_slice() {
            ["healthz", check @ ..] if check.len() < 2 => Self::Healthz(check.concat()),
            ["pods"] => Self::Pods,
            ["metrics"] => Self::Metrics,
            ["metrics", "resource"] => Self::ResourceMetrics,
            ["metrics", "cadvisor"] => Self::CadvisorMetrics,
            ["stats", "summary"] => Self::Summary,
            ["configz"] => Self::Configz,
            ["containerLogs", rest @ ..] => Self::Logs(Container::parse(rest)?),
            ["exec", rest @ ..] => Self::Exec(Container::parse(rest)?),
            ["attach", rest @ ..] => Self::Attach(Container::parse(rest)?),
            ["portForward", namespace, pod, uid @ ..] if uid.len() < 2 => Self::PortForward {
                namespace: (*namespace).to_owned(),
                pod: (*pod).to_owned(),
                uid: uid.concat(),
            },
            _ => return None,
        })
    }

    /// `None` for what everybody may read.
    pub(super) fn required_access(&self, method: &Method) -> Option<RequiredAccess> {
        let subresources: &[&str] = match self {
            Self::Healthz(_) => return None,
            Self::Pods => &["pods", "proxy"],
            Self::Metrics | Self::ResourceMetrics | Self::CadvisorMetrics => &["metrics"],
            Self::Configz => &["configz", "proxy"],
            Self::Summary => &["stats"],
            _ => &["proxy"],
        };
        let verb = match self {
            // Executing is more than reading, also when WebSocket asks with a GET.
            Self::Exec(_) | Self::Attach(_) | Self::PortForward { .. } => Verb::Create,
            _ if method == Method::POST => Verb::Create,
            _ => Verb::Get,
        };
        Some(RequiredAccess { verb, subresources })
    }

    pub(super) fn accepts(&self, method: &Method) -> bool {
        let streams = matches!(
            self,
            Self::Exec(_) | Self::Attach(_) | Self::PortForward { .. }
        );
        method == Method::GET || (streams && method == Method::POST)
    }
}

impl Container {
    fn parse(parts: &[&str]) -> Option<Self> {
        let (namespace, pod, uid, name) = match parts {
            [namespace, pod, name] => (namespace, pod, &"", name),
            [namespace, pod, uid, name] => (namespace, pod, uid, name),
            _ => return None,
        };
        Some(Self {
            namespace: (*namespace).to_owned(),
            pod: (*pod).to_owned(),
            uid: (*uid).to_owned(),
            name: (*name).to_owned(),
        })
    }
}

/// The query parameters of a request.
#[derive(Clone, Debug, Default)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    pub(super) fn parse(text: &str) -> Self {
        let pairs = form_urlencoded::parse(text.as_bytes());
        Self(pairs.into_owned().collect())
    }

    /// The first non-empty value of this name.
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        let mut pairs = self.0.iter();
        let found = pairs.find(|(known, value)| known == key && !value.is_empty());
        found.map(|(_, value)| value.as_str())
    }

    /// All values of this name.
    pub(super) fn all(&self, key: &'static str) -> impl Iterator<Item = &str> {
        let named = self.0.iter().filter(move |(known, _)| known == key);
        named.map(|(_, value)| value.as_str())
    }

    /// Whether this name is there, with or without a value.
    pub(super) fn has(&self, key: &str) -> bool {
        self.0.iter().any(|(known, _)| known == key)
    }

    /// Whether one of these names is true. The kubelet and the API have different names for the same parameter.
    pub(super) fn is_set(&self, keys: &[&str]) -> bool {
        let mut values = keys.iter().filter_map(|key| self.get(key));
        values.any(|value| matches!(value, "1" | "true" | "True" | "TRUE" | "t" | "T"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container(uid: &str) -> Container {
        Container {
            namespace: "ns".to_owned(),
            pod: "p".to_owned(),
            uid: uid.to_owned(),
            name: "c".to_owned(),
        }
    }

    #[test]
    fn paths_are_the_kubelets() {
        let check =
            |path: &str, route: Option<Route>| assert_eq!(Route::parse(path), route, "{path}");
        check("/healthz", Some(Route::Healthz(String::new())));
        check(
            "/healthz/syncloop",
            Some(Route::Healthz("syncloop".to_owned())),
        );
        check("/healthz/a/b", None);
        check("/pods/", Some(Route::Pods));
        check("/containerLogs/ns/p/c", Some(Route::Logs(container(""))));
        check("/exec/ns/p/u/c", Some(Route::Exec(container("u"))));
        check("/attach/ns/p/c", Some(Route::Attach(container(""))));
        let forward = Route::PortForward {
            namespace: "ns".to_owned(),
            pod: "p".to_owned(),
            uid: String::new(),
        };
        check("/portForward/ns/p", Some(forward));
        for path in [
            "/",
            "/exec/ns/p",
            "/exec/a/b/c/d/e",
            "/metrics/probes",
            "/run/ns/p/c",
            "/portForward/ns",
        ] {
            check(path, None);
        }
    }

    #[test]
    fn executing_requires_the_verb_create() {
        let check = |path: &str, method: Method, verb: Verb<'_>, subresources: &[&str]| {
            let required = Route::parse(path).unwrap();
            let required = required.required_access(&method).unwrap();
            assert_eq!(
                (required.verb, required.subresources),
                (verb, subresources),
                "{path}"
            );
        };
        check("/exec/ns/p/c", Method::GET, Verb::Create, &["proxy"]);
        check("/portForward/ns/p", Method::GET, Verb::Create, &["proxy"]);
        check("/containerLogs/ns/p/c", Method::GET, Verb::Get, &["proxy"]);
        for path in ["/metrics", "/metrics/resource", "/metrics/cadvisor"] {
            check(path, Method::GET, Verb::Get, &["metrics"]);
        }
        check("/stats/summary", Method::GET, Verb::Get, &["stats"]);
        check("/configz", Method::GET, Verb::Get, &["configz", "proxy"]);
        check("/pods", Method::GET, Verb::Get, &["pods", "proxy"]);
        assert_eq!(
            Route::Healthz(String::new()).required_access(&Method::GET),
            None
        );
    }

    #[test]
    fn parameters_are_decoded_once() {
        let query =
            Query::parse("command=sh&command=-c&command=echo+a%26b%2Bc&input=1&tty=0&x=%zz");
        let command: Vec<&str> = query.all("command").collect();
        assert_eq!(command, ["sh", "-c", "echo a&b+c"]);
        assert!(query.is_set(&["stdin", "input"]));
        assert!(!query.is_set(&["tty"]));
        assert_eq!(query.get("x"), Some("%zz"));
        assert_eq!(query.get("none"), None);
    }
}
