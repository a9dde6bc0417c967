//! Validates image names and adds the default tag, by the grammar of `distribution/reference`.

/// An invalid image name, in upstream's words.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("couldn't parse image name {image:?}: {error}")]
pub(super) struct InvalidImageName {
    image: String,
    error: ReferenceError,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum ReferenceError {
    #[error("invalid reference format")]
    Format,
    #[error("invalid reference format: repository name ({0}) must be lowercase")]
    Uppercase(String),
    #[error("invalid repository name ({0}), cannot specify 64-byte hexadecimal strings")]
    Hexadecimal(String),
}

/// Adds the tag `latest` to a name without tag and digest.
pub(super) fn with_tag(image: &str) -> Result<String, InvalidImageName> {
    parse(image).map_err(|error| InvalidImageName {
        image: image.to_owned(),
        error,
    })
}

fn parse(image: &str) -> Result<String, ReferenceError> {
    let (rest, digest) = match image.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (image, None),
    };
    // A colon before the last slash belongs to a port.
    let slash = rest.rfind('/').map_or(0, |at| at + 1);
    let (name, tag) = match rest[slash..].split_once(':') {
        Some((last, tag)) => (&rest[..slash + last.len()], Some(tag)),
        None => (rest, None),
    };
    let (domain, path) = split_domain(name);
    if path.chars().any(char::is_uppercase) && is_path(&path.to_lowercase()) {
        return Err(ReferenceError::Uppercase(path.to_owned()));
    }
    let valid = domain.is_none_or(is_domain)
        && is_path(path)
        && name.len() <= 255
        && tag.is_none_or(is_tag)
        && digest.is_none_or(is_digest);
    if !valid {
        return Err(ReferenceError::Format);
    }
    if domain.is_none() && path.len() == 64 && path.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(ReferenceError::Hexadecimal(image.to_owned()));
    }
    let untagged = tag.is_none() && digest.is_none();
    Ok(if untagged {
        format!("{image}:latest")
    } else {
        image.to_owned()
    })
}

/// The first part is a registry if it looks like a host.
fn split_domain(name: &str) -> (Option<&str>, &str) {
    let is_host = |first: &str| {
        first.contains(['.', ':']) || first == "localhost" || first.chars().any(char::is_uppercase)
    };
    match name.split_once('/') {
        Some((first, rest)) if is_host(first) => (Some(first), rest),
        _ => (None, name),
    }
}

fn is_domain(domain: &str) -> bool {
    let (host, port) = match domain
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'))
    {
        Some((address, port)) => {
            let valid = address.parse::<std::net::Ipv6Addr>().is_ok();
            return valid && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port));
        }
        None => domain
            .split_once(':')
            .map_or((domain, None), |(host, port)| (host, Some(port))),
    };
    let is_label = |label: &str| {
        let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        !label.is_empty()
            && label.bytes().all(inner)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    host.split('.').all(is_label) && port.is_none_or(is_port)
}

fn is_port(port: &str) -> bool {
    !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_path(path: &str) -> bool {
    path.split('/').all(is_component)
}

/// Letters and digits, joined by a dot, one or two underscores, or any number of dashes.
fn is_component(component: &str) -> bool {
    let alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let separators =
        component.split(|letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit());
    let is_separator = |separator: &str| {
        matches!(separator, "" | "." | "_" | "__") || separator.bytes().all(|byte| byte == b'-')
    };
    let ends = [component.bytes().next(), component.bytes().last()];
    ends.into_iter().all(|end| end.is_some_and(alphanumeric))
        && separators.into_iter().all(is_separator)
}

fn is_tag(tag: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let inner = |byte: u8| word(byte) || byte == b'.' || byte == b'-';
    (1..=128).contains(&tag.len()) && tag.bytes().all(inner) && tag.bytes().next().is_some_and(word)
}

fn is_digest(digest: &str) -> bool {
    let Some((algorithm, hash)) = digest.split_once(':') else {
        return false;
    };
    let hexadecimal = hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    let known = match algorithm {
        "sha256" => hash.len() == 64,
        "sha512" => hash.len() == 128,
        _ => false,
    };
    known && hexadecimal
}

#[cfg(test)]
mod tests {
    use super::with_tag;

    #[track_caller]
    fn check(image: &str, expected: Result<&str, &str>) {
        let found = with_tag(image).map_err(|error| error.to_string());
        let expected = match expected {
            Ok(name) => Ok(name.to_owned()),
            Err(why) => Err(format!("couldn't parse image name {image:?}: {why}")),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn the_default_tag_is_added() {
        check("busybox", Ok("busybox:latest"));
        check("busybox:1.36", Ok("busybox:1.36"));
        check("localhost:5000/a/b", Ok("localhost:5000/a/b:latest"));
        check("localhost:5000/a/b:v1", Ok("localhost:5000/a/b:v1"));
        check(
            "quay.io/prometheus/node-exporter:v1.8.2",
            Ok("quay.io/prometheus/node-exporter:v1.8.2"),
        );
        check("[::1]:5000/a", Ok("[::1]:5000/a:latest"));
        check("a/b__c--d.e", Ok("a/b__c--d.e:latest"));
        let digest = format!("a@sha256:{}", "0a".repeat(32));
        check(&digest, Ok(&digest));
    }

    #[test]
    fn invalid_names_are_refused_in_upstreams_words() {
        for image in [
            "",
            ":",
            "a:",
            "a b",
            "-a",
            "a/",
            "/a",
            "a..b",
            "a@b",
            "a:-1",
            "a@sha256:12",
            "http://a/b",
        ] {
            check(image, Err("invalid reference format"));
        }
        check(
            "Busybox",
            Err("invalid reference format: repository name (Busybox) must be lowercase"),
        );
        check(
            "docker.io/Foo:1",
            Err("invalid reference format: repository name (Foo) must be lowercase"),
        );
        let hex = "ab".repeat(32);
        let why =
            format!("invalid repository name ({hex}), cannot specify 64-byte hexadecimal strings");
        check(&hex, Err(&why));
    }
}
