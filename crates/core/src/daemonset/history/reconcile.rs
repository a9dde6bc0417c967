//! Which revision is current, and what to write to make it so (rules 4.2 to 4.4 and 4.8).

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::HASH_LABEL;
use super::super::event::Object;
use super::Revision;

/// One write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Give a revision the hash label that it lacks (rule 4.2).
    Label { revision: Object, hash: Arc<str> },
    /// Create the current revision, with this number.
    Create { revision: i64 },
    /// Renumber an existing revision, because its template is the current one again.
    Renumber { revision: Object, number: i64 },
    /// Relabel the pods of a duplicate with the hash of the kept revision, then delete the duplicate.
    Merge {
        duplicate: Object,
        from: Arc<str>,
        to: Arc<str>,
    },
}

/// The result of [`reconcile`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reconciled<'a> {
    /// `None` if it has to be created.
    pub current: Option<&'a Revision>,
    /// All revisions with other data, in ascending order.
    pub old: Vec<&'a Revision>,
    pub steps: Vec<Step>,
}

/// Compares the claimed revisions with the data of the current template.
///
/// When upstream merges duplicates it relabels *all* pods of the DaemonSet, so that pods of older templates look updated
/// and the rollout stops (a quirk of rule 4.8). Here only the pods of the duplicates are relabelled.
pub fn reconcile<'a>(data: &str, claimed: &'a [Revision]) -> Reconciled<'a> {
    let sorted = sorted_unique(claimed);
    let mut steps: Vec<Step> = sorted.iter().filter_map(|r| label(r)).collect();
    let (mut same, old): (Vec<_>, Vec<_>) = sorted.into_iter().partition(|r| &*r.data == data);
    let next = old.iter().map(|r| r.revision).fold(0, i64::max) + 1;
    let current = same.pop();
    match current {
        None => steps.push(Step::Create { revision: next }),
        Some(kept) => {
            steps.extend(same.into_iter().map(|duplicate| merge(duplicate, kept)));
            if kept.revision < next {
                steps.push(Step::Renumber {
                    revision: kept.object(),
                    number: next,
                });
            }
        }
    }
    Reconciled {
        current,
        old,
        steps,
    }
}

/// The revisions in ascending order; of two with the same name and number, which a lagging watch can show, the one created
/// last comes last. Of a revision that occurs twice, before and after it was renumbered, the one with the higher number is
/// newer and kept.
fn sorted_unique(claimed: &[Revision]) -> Vec<&Revision> {
    let mut sorted: Vec<&Revision> = claimed.iter().collect();
    sorted.sort_by_key(|revision| (revision.revision, &revision.name));
    sorted.reverse();
    let mut known = BTreeSet::new();
    sorted.retain(|revision| known.insert(&revision.uid));
    sorted.reverse();
    sorted
}

fn label(revision: &Revision) -> Option<Step> {
    (!revision.labels.contains_key(HASH_LABEL)).then(|| Step::Label {
        revision: revision.object(),
        hash: revision.name.clone(),
    })
}

fn merge(duplicate: &Revision, kept: &Revision) -> Step {
    Step::Merge {
        duplicate: duplicate.object(),
        from: duplicate.hash().into(),
        to: kept.hash().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::revision;
    use super::*;

    /// The current one's name, the old ones' names, and the steps in short.
    fn check(claimed: &[Revision], current: Option<&str>, old: &[&str], steps: &[&str]) {
        let result = reconcile("now", claimed);
        assert_eq!(result.current.map(|r| &*r.name), current);
        let names: Vec<&str> = result.old.iter().map(|r| &*r.name).collect();
        assert_eq!(names, old);
        let shown: Vec<String> = result.steps.iter().map(show).collect();
        assert_eq!(shown, steps);
    }

    fn show(step: &Step) -> String {
        match step {
            Step::Label { revision, hash } => format!("label {} {hash}", revision.name),
            Step::Create { revision } => format!("create {revision}"),
            Step::Renumber { revision, number } => format!("renumber {} {number}", revision.name),
            Step::Merge {
                duplicate,
                from,
                to,
            } => format!("merge {} {from} {to}", duplicate.name),
        }
    }

    #[test]
    fn s4_4_the_first_revision_is_number_one() {
        check(&[], None, &[], &["create 1"]);
    }

    #[test]
    fn s4_4_a_new_template_gets_the_next_number() {
        let history = [revision("b", 7, "y"), revision("a", 2, "x")];
        check(&history, None, &["a", "b"], &["create 8"]);
    }

    #[test]
    fn s4_4_the_newest_stays_as_it_is() {
        let history = [revision("a", 1, "x"), revision("b", 2, "now")];
        check(&history, Some("b"), &["a"], &[]);
        check(&[revision("b", 9, "now")], Some("b"), &[], &[]);
    }

    #[test]
    fn s4_4_going_back_renumbers_instead_of_creating() {
        let history = [revision("a", 1, "now"), revision("b", 2, "x")];
        check(&history, Some("a"), &["b"], &["renumber a 3"]);
        let tied = [revision("a", 2, "now"), revision("b", 2, "x")];
        check(&tied, Some("a"), &["b"], &["renumber a 3"]);
    }

    #[test]
    fn s4_4_numbers_below_zero_count_as_none() {
        check(&[revision("a", -5, "x")], None, &["a"], &["create 1"]);
    }

    #[test]
    fn s4_2_a_revision_without_hash_gets_its_own_name() {
        let mut bare = revision("a", 1, "now");
        bare.labels.clear();
        assert_eq!(bare.hash(), "a");
        check(&[bare], Some("a"), &[], &["label a a"]);
    }

    #[test]
    fn s4_8_a_revision_is_no_duplicate_of_itself() {
        let twice = [revision("a", 1, "now"), revision("a", 1, "now")];
        check(&twice, Some("a"), &[], &[]);
        let renumbered = [
            revision("a", 3, "now"),
            revision("b", 2, "x"),
            revision("a", 1, "now"),
        ];
        check(&renumbered, Some("a"), &["b"], &[]);
    }

    #[test]
    fn s4_8_of_equal_revisions_the_highest_is_kept_and_pods_follow() {
        let history = [
            revision("a", 3, "now"),
            revision("b", 1, "now"),
            revision("c", 2, "x"),
        ];
        let merged = ["merge b hash-b hash-a"];
        check(&history, Some("a"), &["c"], &merged);
        let old_and_equal = [
            revision("a", 1, "now"),
            revision("b", 1, "now"),
            revision("c", 2, "x"),
        ];
        let merged = ["merge a hash-a hash-b", "renumber b 3"];
        check(&old_and_equal, Some("b"), &["c"], &merged);
    }
}
