//! URLs of probes and hooks, and redirects. A redirect to another host is not followed.

use std::fmt::Write as _;

use super::dial::join;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Url {
    /// `https` rather than `http`.
    pub secure: bool,
    /// A name or an address.
    pub host: String,
    pub port: u16,
    /// With the query.
    pub path: String,
}

impl Url {
    /// `path` comes from the spec and may be anything.
    pub(super) fn new(secure: bool, host: String, port: u16, path: &str) -> Self {
        let path = path.split('#').next().unwrap_or_default();
        Self {
            secure,
            host,
            port,
            path: escape(path),
        }
    }

    pub(super) fn text(&self) -> String {
        let scheme = if self.secure { "https" } else { "http" };
        format!("{scheme}://{}{}", self.authority(), self.path)
    }

    pub(super) fn authority(&self) -> String {
        join(&self.host, self.port)
    }

    /// The URL that a `Location` header leads to; none if that is another host or no URL.
    pub(super) fn redirect(&self, location: &str) -> Option<Self> {
        let location = location.split('#').next().unwrap_or_default();
        let (secure, rest) = if let Some(rest) = location.strip_prefix("https://") {
            (true, rest)
        } else if let Some(rest) = location.strip_prefix("http://") {
            (false, rest)
        } else if let Some(rest) = location.strip_prefix("//") {
            (self.secure, rest)
        } else {
            return Some(Self {
                path: self.resolve(location),
                ..self.clone()
            });
        };
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let authority: http::uri::Authority = authority.parse().ok()?;
        let host = authority.host().trim_matches(['[', ']']);
        (host == self.host).then(|| Self {
            secure,
            host: host.to_owned(),
            port: authority
                .port_u16()
                .unwrap_or(if secure { 443 } else { 80 }),
            path: escape(path),
        })
    }

    /// Resolves a path relative to this URL.
    fn resolve(&self, location: &str) -> String {
        let path = self.path.split('?').next().unwrap_or_default();
        if location.starts_with('/') {
            escape(location)
        } else if location.starts_with('?') {
            escape(&format!("{path}{location}"))
        } else {
            let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
            escape(&format!("{directory}/{location}"))
        }
    }
}

/// Escapes characters that a request must not contain, and adds the leading slash.
fn escape(path: &str) -> String {
    let mut escaped = String::with_capacity(path.len() + 1);
    if !path.starts_with('/') {
        escaped.push('/');
    }
    for byte in path.bytes() {
        if byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _written = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(path: &str) -> Url {
        Url::new(false, "10.0.0.7".to_owned(), 8080, path)
    }

    #[test]
    fn a_path_may_be_anything() {
        let check = |path, expected: &str| {
            let url = url(path).text();
            assert_eq!(url, format!("http://10.0.0.7:8080{expected}"));
        };
        check("/healthz", "/healthz");
        check("", "/");
        check("healthz?full=1#x", "/healthz?full=1");
        check("/a b/{c}", "/a%20b/%7Bc%7D");
    }

    #[test]
    fn redirects_stay_on_the_host_of_the_request() {
        let check = |location, expected: Option<&str>| {
            let redirected = url("/a/b?c").redirect(location);
            let redirected = redirected.map(|url| url.text());
            assert_eq!(redirected.as_deref(), expected, "{location}");
        };
        check("/x", Some("http://10.0.0.7:8080/x"));
        check("x", Some("http://10.0.0.7:8080/a/x"));
        check("?x", Some("http://10.0.0.7:8080/a/b?x"));
        check("https://10.0.0.7/x", Some("https://10.0.0.7:443/x"));
        check("//10.0.0.7:9/x", Some("http://10.0.0.7:9/x"));
        check("http://10.0.0.8:8080/x", None);
        check("http://example.com/", None);
    }
}
