//! Which old revisions to delete (rule 4.7).

use super::Revision;

/// The revisions to delete, lowest number first: as many as exceed the limit, skipping those whose hash a pod still
/// carries. `old` is in ascending order, without the current one.
pub fn prune<'a>(
    old: &[&'a Revision],
    limit: usize,
    in_use: impl Fn(&str) -> bool,
) -> Vec<&'a Revision> {
    let excess = old.len().saturating_sub(limit);
    let unused = old.iter().filter(|revision| !in_use(revision.hash()));
    unused.take(excess).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::revision;
    use super::*;

    fn check(limit: usize, in_use: &[&str], expected: &[&str]) {
        let old = [1, 2, 3, 4].map(|number| revision(&format!("r{number}"), number, "x"));
        let old: Vec<&Revision> = old.iter().collect();
        let gone = prune(&old, limit, |hash| in_use.contains(&hash));
        let names: Vec<&str> = gone.iter().map(|r| &*r.name).collect();
        assert_eq!(names, expected, "limit {limit}, in use {in_use:?}");
    }

    #[test]
    fn s4_7_the_oldest_beyond_the_limit_are_deleted() {
        check(10, &[], &[]);
        check(4, &[], &[]);
        check(3, &[], &["r1"]);
        check(0, &[], &["r1", "r2", "r3", "r4"]);
    }

    #[test]
    fn s4_7_a_revision_in_use_stays_and_the_next_is_deleted_instead() {
        check(3, &["hash-r1"], &["r2"]);
        check(2, &["hash-r1", "hash-r3"], &["r2", "r4"]);
    }

    #[test]
    fn s4_7_revisions_in_use_may_exceed_the_limit() {
        check(1, &["hash-r1", "hash-r2", "hash-r3"], &["r4"]);
        check(0, &["hash-r1", "hash-r2", "hash-r3", "hash-r4"], &[]);
    }
}
