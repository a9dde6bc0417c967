//! The tag of an image reference, as far as defaults depend on it.

/// Whether an image is followed as it changes: it has the tag `latest`, or neither tag nor digest.
/// A reference that does not parse is not followed.
pub(super) fn is_latest(image: &str) -> bool {
    let (image, digest) = match image.split_once('@') {
        Some((image, _)) => (image, true),
        None => (image, false),
    };
    let (name, tag) = split(image);
    is_name(name) && tag.map_or(!digest, |tag| tag == "latest")
}

/// The name and what follows the last colon, unless that colon belongs to a registry's port.
fn split(image: &str) -> (&str, Option<&str>) {
    match image.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
        _ => (image, None),
    }
}

/// Whether a name could be an image's: nothing but the host may have upper-case letters.
fn is_name(name: &str) -> bool {
    let path = match name.split_once('/') {
        Some((host, path)) if host.contains(['.', ':']) || host == "localhost" => path,
        _ => name,
    };
    !path.is_empty()
        && path.bytes().all(|byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-/".contains(&byte)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_untagged_and_latest_images_are_followed() {
        let check = |image: &str, expected: bool| assert_eq!(is_latest(image), expected, "{image}");
        check("nginx", true);
        check("nginx:latest", true);
        check("nginx:1.27", false);
        check("registry.example:5000/nginx", true);
        check("registry.example:5000/nginx:1", false);
        check("nginx@sha256:abc", false);
        check("nginx:latest@sha256:abc", true);
        check("Not An Image", false);
        check("", false);
    }
}
