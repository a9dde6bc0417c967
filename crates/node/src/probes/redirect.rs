//! Where a request goes, and where an answer sends it on to. Requests never leave the host that was asked.

use std::fmt::Write as _;

use super::dial::join;

/// Where a request goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    /// Through TLS?
    pub secure: bool,
    /// A name or an address.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Path and query.
    pub path: String,
}

impl Address {
    /// For an action of a spec, whose path may be anything.
    pub(super) fn new(secure: bool, host: String, port: u16, path: &str) -> Self {
        let path = path.split('#').next().unwrap_or_default();
        Self {
            secure,
            host,
            port,
            path: escape(path),
        }
    }

    /// As a URL.
    pub(super) fn url(&self) -> String {
        let scheme = if self.secure { "https" } else { "http" };
        format!("{scheme}://{}{}", self.authority(), self.path)
    }

    /// Host and port.
    pub(super) fn authority(&self) -> String {
        join(&self.host, self.port)
    }

    /// Where `Location` sends a request on to; nothing if that is another host or no place at all.
    pub(super) fn follow(&self, location: &str) -> Option<Self> {
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

    /// A path that is relative to this one.
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

/// What may not stand in a request is escaped; the path begins with a slash.
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

    fn address(path: &str) -> Address {
        Address::new(false, "10.0.0.7".to_owned(), 8080, path)
    }

    #[test]
    fn a_path_may_be_anything() {
        let check = |path, expected: &str| {
            let url = address(path).url();
            assert_eq!(url, format!("http://10.0.0.7:8080{expected}"));
        };
        check("/healthz", "/healthz");
        check("", "/");
        check("healthz?full=1#x", "/healthz?full=1");
        check("/a b/{c}", "/a%20b/%7Bc%7D");
    }

    #[test]
    fn requests_stay_with_the_host_that_was_asked() {
        let check = |location, expected: Option<&str>| {
            let followed = address("/a/b?c").follow(location);
            let url = followed.map(|address| address.url());
            assert_eq!(url.as_deref(), expected, "{location}");
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
