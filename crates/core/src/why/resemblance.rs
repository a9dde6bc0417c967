//! Whether a name may be a misspelling of another one.
//!
//! Names that differ in numbers or in single letters, such as `zone-a` and `zone-b`, are different names, and so are
//! words with different initials, such as `large` and `xlarge`.

/// The candidate that resembles `wanted` most, if any does.
pub fn closest<'a>(wanted: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let rated = candidates.into_iter().filter_map(|found| {
        let distance = distance(wanted, found)?;
        Some((distance, found))
    });
    rated.min().map(|(_, found)| found)
}

/// The number of mistakes that would make one of the other; `None` for names that do not resemble each other.
pub(super) fn distance(wanted: &str, found: &str) -> Option<usize> {
    let (a, b) = (wanted.to_ascii_lowercase(), found.to_ascii_lowercase());
    if letters_and_digits(&a) == letters_and_digits(&b) {
        return Some(usize::from(wanted != found));
    }
    let (x, y) = (words(&a), words(&b));
    if x.len() != y.len() {
        return word_distance(&x.concat(), &y.concat());
    }
    let pairs = x.iter().zip(&y).filter(|(x, y)| x != y);
    let distances = pairs.map(|(x, y)| word_distance(x, y));
    let sum = distances.sum::<Option<usize>>()?;
    (sum > 0).then_some(sum)
}

/// As [`distance`], for label keys: a prefix may be missing, and one mistake in a name of two letters behind the same
/// prefix is enough.
pub(super) fn key_distance(wanted: &str, found: &str) -> Option<usize> {
    let (wanted_prefix, wanted_name) = split_key(wanted);
    let (found_prefix, found_name) = split_key(found);
    let names = distance(wanted_name, found_name).or_else(|| {
        let same_prefix = !wanted_prefix.is_empty() && wanted_prefix == found_prefix;
        let short = wanted_name.len().min(found_name.len()) == 2;
        let letters = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphabetic());
        let short = short && letters(wanted_name) && letters(found_name);
        let one = strsim::osa_distance(wanted_name, found_name) == 1;
        let added = wanted_name.len() != found_name.len();
        let similar = added || same_initials(wanted_name, found_name);
        let resembles = same_prefix && short && one && similar;
        resembles.then_some(1)
    })?;
    let prefixes = match (wanted_prefix, found_prefix) {
        (a, b) if a == b => 0,
        ("", _) | (_, "") if names == 0 => 1,
        (a, b) => distance(a, b)?,
    };
    Some(names + prefixes)
}

fn split_key(key: &str) -> (&str, &str) {
    key.split_once('/').unwrap_or(("", key))
}

fn letters_and_digits(text: &str) -> String {
    text.chars().filter(char::is_ascii_alphanumeric).collect()
}

/// The words of a name, without digits.
fn words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    let words = words.map(|word| word.replace(|c: char| c.is_ascii_digit(), ""));
    words.collect()
}

fn word_distance(a: &str, b: &str) -> Option<usize> {
    let allowed = match a.len().min(b.len()) {
        0..3 => return None,
        3..6 => 1,
        6..10 => 2,
        _ => 3,
    };
    let distance = strsim::osa_distance(a, b);
    (distance <= allowed && same_initials(a, b)).then_some(distance)
}

/// Whether the first letters are the same, or the first two are swapped.
fn same_initials(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    a.first() == b.first() || (a.first() == b.get(1) && a.get(1) == b.first())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(wanted: &str, found: &str, expected: bool) {
        assert_eq!(
            distance(wanted, found).is_some(),
            expected,
            "{wanted} {found}"
        );
        assert_eq!(
            distance(found, wanted).is_some(),
            expected,
            "{found} {wanted}"
        );
    }

    #[test]
    fn misspellings_resemble_what_was_meant() {
        check("dsik", "disk", true);
        check("isdk", "sidk", true);
        check("Disk", "disk", true);
        check("sdd", "ssd", true);
        check("contorl-plane", "control-plane", true);
        check("controlplane", "control-plane", true);
        check("control_plane", "control-plane", true);
        check("dedciated", "dedicated", true);
        check("gpu-worker", "gpu-wroker", true);
        check("disk", "disks", true);
    }

    #[test]
    fn other_names_do_not() {
        check("ssd", "hdd", false);
        check("gpu", "cpu", false);
        check("zone-a", "zone-b", false);
        check("a", "b", false);
        check("eu-west-1a", "eu-west-1b", false);
        check("us-east-1", "us-west-1", false);
        check("node-1", "node-2", false);
        check("v1", "v2", false);
        check("a100", "h100", false);
        check("amd64", "arm64", false);
        check("m5.large", "m5.xlarge", false);
        check("true", "false", false);
        check("master", "control-plane", false);
    }

    #[test]
    fn keys_resemble_those_with_a_prefix() {
        let check = |wanted: &str, found: &str, expected| {
            assert_eq!(key_distance(wanted, found), expected, "{wanted} {found}");
        };
        check("zone", "topology.kubernetes.io/zone", Some(1));
        check("example.com/dsik", "example.com/disk", Some(1));
        check("exmaple.com/disk", "example.com/disk", Some(1));
        check("example.com/disk", "kubernetes.io/disk", None);
        check("dsik", "example.com/disk", None);
        check("kubernetes.io/oss", "kubernetes.io/os", Some(1));
        check("kubernetes.io/so", "kubernetes.io/os", Some(1));
        check("kubernetes.io/sos", "kubernetes.io/os", Some(1));
        check("example.com/ab", "example.com/cb", None);
        check("example.com/a", "example.com/b", None);
        check("example.com/v1", "example.com/v2", None);
        check("oss", "os", None);
        let master = "node-role.kubernetes.io/master";
        check(master, "node-role.kubernetes.io/control-plane", None);
    }

    #[test]
    fn the_closest_is_chosen() {
        let found = closest("wrker", ["warder", "worker", "walker", "sim-1"]);
        assert_eq!(found, Some("worker"));
        assert_eq!(closest("agent", ["web", "db"]), None);
    }
}
