//! What a path asks for, and what one must be allowed to ask it. Pure.

use http::Method;

/// See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// Is the agent there?
    Healthz,
    /// The pods of the node.
    Pods,
    /// Numbers.
    Metrics,
    /// What containers use.
    Summary,
    /// A container's log.
    Logs(Container),
    /// A command in a container.
    Exec(Container),
    /// A container's own streams.
    Attach(Container),
    /// Ports of a pod.
    PortForward {
        namespace: String,
        pod: String,
        /// Which one of that name; empty for any.
        uid: String,
    },
}

/// A container, as a path names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Container {
    pub(super) namespace: String,
    pub(super) pod: String,
    /// Which pod of that name; empty for any.
    pub(super) uid: String,
    pub(super) name: String,
}

/// What one must be allowed to do to the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Need {
    pub(super) verb: &'static str,
    /// One of these subresources.
    pub(super) subresources: &'static [&'static str],
}

impl Route {
    /// Reads a path.
    pub(super) fn parse(path: &str) -> Option<Self> {
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        Some(match parts.as_slice() {
            ["healthz"] => Self::Healthz,
            ["pods"] => Self::Pods,
            ["metrics"] => Self::Metrics,
            ["stats", "summary"] => Self::Summary,
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

    /// What one must be allowed to; nothing for what everybody may know.
    pub(super) fn need(&self, method: &Method) -> Option<Need> {
        let subresources: &[&str] = match self {
            Self::Healthz => return None,
            Self::Pods => &["pods", "proxy"],
            Self::Metrics => &["metrics"],
            Self::Summary => &["stats"],
            _ => &["proxy"],
        };
        let verb = match self {
            // To run something is no reading, also where WebSocket wants a GET.
            Self::Exec(_) | Self::Attach(_) | Self::PortForward { .. } => "create",
            _ if method == Method::POST => "create",
            _ => "get",
        };
        Some(Need { verb, subresources })
    }

    /// The methods it is asked with.
    pub(super) fn takes(&self, method: &Method) -> bool {
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

/// The parameters of a request.
#[derive(Clone, Debug, Default)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads what follows the question mark.
    pub(super) fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(key), decode(value))
        });
        Self(pairs.collect())
    }

    /// The first of this name that says something.
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        let mut pairs = self.0.iter();
        let found = pairs.find(|(known, value)| known == key && !value.is_empty());
        found.map(|(_, value)| value.as_str())
    }

    /// All of this name.
    pub(super) fn all(&self, key: &'static str) -> impl Iterator<Item = &str> {
        let named = self.0.iter().filter(move |(known, _)| known == key);
        named.map(|(_, value)| value.as_str())
    }

    /// Is one of these set? The kubelet and the API have different names for the same.
    pub(super) fn is_set(&self, keys: &[&str]) -> bool {
        let mut values = keys.iter().filter_map(|key| self.get(key));
        values.any(|value| matches!(value, "1" | "true" | "True" | "TRUE" | "t" | "T"))
    }
}

/// Undoes the encoding of URLs. What is encoded wrongly stays as it is.
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, others @ ..] = rest {
        rest = others;
        let hex = others.get(..2).and_then(|hex| {
            let hex = std::str::from_utf8(hex).ok()?;
            u8::from_str_radix(hex, 16).ok()
        });
        bytes.push(match (first, hex) {
            (b'%', Some(byte)) => {
                rest = &others[2..];
                byte
            }
            (b'+', _) => b' ',
            (other, _) => *other,
        });
    }
    String::from_utf8_lossy(&bytes).into_owned()
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
        check("/healthz", Some(Route::Healthz));
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
            "/run/ns/p/c",
            "/portForward/ns",
        ] {
            check(path, None);
        }
    }

    #[test]
    fn to_run_something_is_never_only_reading() {
        let check = |path: &str, method: Method, verb: &str, subresources: &[&str]| {
            let need = Route::parse(path).unwrap().need(&method).unwrap();
            assert_eq!(
                (need.verb, need.subresources),
                (verb, subresources),
                "{path}"
            );
        };
        check("/exec/ns/p/c", Method::GET, "create", &["proxy"]);
        check("/portForward/ns/p", Method::GET, "create", &["proxy"]);
        check("/containerLogs/ns/p/c", Method::GET, "get", &["proxy"]);
        check("/metrics", Method::GET, "get", &["metrics"]);
        check("/pods", Method::GET, "get", &["pods", "proxy"]);
        assert_eq!(Route::Healthz.need(&Method::GET), None);
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
