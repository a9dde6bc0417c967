//! Image references, as far as the default pull policy depends on them.

/// Whether an image has the tag `latest`, or neither tag nor digest. False if the reference does not parse.
pub(super) fn is_latest(image: &str) -> bool {
    let (image, digest) = match image.split_once('@') {
        Some((image, _)) => (image, true),
        None => (image, false),
    };
    let (name, tag) = split(image);
    is_name(name) && tag.map_or(!digest, |tag| tag == "latest")
}

/// Name and tag; a colon before a slash belongs to the registry's port.
fn split(image: &str) -> (&str, Option<&str>) {
    match image.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
        _ => (image, None),
    }
}

/// Whether this is a valid image name: only the registry host may have upper-case letters.
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
    fn untagged_and_latest_images_are_recognised() {
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
