//! What changed between two revisions: their templates as YAML, line by line.

use kennel_core::daemonset::history::Revision;
use kennel_inspect::history;
use kube::Client;

use crate::failure::Failure;
use crate::protocol::{Diff, DiffLine};
use crate::route::{Query, SetName};

/// Lines of a template that are compared; those behind are cut off.
const LINES_MAX: usize = 2000;
/// Unchanged lines that are shown around a change.
const CONTEXT: usize = 3;

/// Without `from`, the revision before `to`; without `to`, the newest.
pub(crate) async fn diff(client: &Client, set: &SetName, query: &Query) -> Result<Diff, Failure> {
    let revisions = history::read(client, &set.namespace, &set.name).await?;
    let owned = revisions.owned();
    let find = |hash: &str| {
        let found = owned.iter().position(|revision| revision.hash() == hash);
        found.ok_or_else(|| Failure::not_found(format!("there is no revision {hash}")))
    };
    let to = match query.get("to") {
        Some(hash) => find(hash)?,
        None => owned.len().checked_sub(1).ok_or_else(no_revision)?,
    };
    let from = match query.get("from") {
        Some(hash) => find(hash)?,
        None => to.checked_sub(1).ok_or_else(no_revision)?,
    };
    let (from, to) = (owned[from], owned[to]);
    let (old, new) = (lines(from)?, lines(to)?);
    let truncated = old.len() > LINES_MAX || new.len() > LINES_MAX;
    let cut = |lines: Vec<String>| lines.into_iter().take(LINES_MAX).collect::<Vec<_>>();
    Ok(Diff {
        from: from.hash().to_owned(),
        to: to.hash().to_owned(),
        lines: with_context(compare(&cut(old), &cut(new))),
        truncated,
    })
}

fn no_revision() -> Failure {
    Failure::not_found("there are no two revisions to compare")
}

fn lines(revision: &Revision) -> Result<Vec<String>, Failure> {
    let template = revision.template();
    let template = template.ok_or_else(|| Failure::upstream("a revision has no template"))?;
    let yaml = serde_saphyr::to_string(&template);
    let yaml = yaml.map_err(|error| Failure::upstream(error.to_string()))?;
    Ok(yaml.lines().map(str::to_owned).collect())
}

/// All lines of both, in the fewest changes.
fn compare(old: &[String], new: &[String]) -> Vec<DiffLine> {
    let same = |kind: char, text: &String| DiffLine {
        kind,
        text: text.clone(),
    };
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) = (&old[head..], &new[head..]);
    let tail = old_rest.iter().rev().zip(new_rest.iter().rev());
    let tail = tail.take_while(|(a, b)| a == b).count();
    let old_rest = &old_rest[..old_rest.len() - tail];
    let new_rest = &new_rest[..new_rest.len() - tail];
    let mut lines: Vec<DiffLine> = old[..head].iter().map(|text| same(' ', text)).collect();
    let common = common(old_rest, new_rest);
    let width = new_rest.len() + 1;
    let (mut i, mut j) = (0, 0);
    while i < old_rest.len() || j < new_rest.len() {
        let both = i < old_rest.len() && j < new_rest.len();
        if both && old_rest[i] == new_rest[j] {
            lines.push(same(' ', &old_rest[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new_rest.len()
            || (both && common[(i + 1) * width + j] >= common[i * width + j + 1])
        {
            lines.push(same('-', &old_rest[i]));
            i += 1;
        } else {
            lines.push(same('+', &new_rest[j]));
            j += 1;
        }
    }
    lines.extend(old[old.len() - tail..].iter().map(|text| same(' ', text)));
    lines
}

/// For each pair of positions, the length of the longest common subsequence of what follows. At most eight MB, for a moment.
fn common(old: &[String], new: &[String]) -> Vec<u16> {
    let width = new.len() + 1;
    let mut table = vec![0_u16; (old.len() + 1) * width];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            table[i * width + j] = if old[i] == new[j] {
                table[(i + 1) * width + j + 1] + 1
            } else {
                table[(i + 1) * width + j].max(table[i * width + j + 1])
            };
        }
    }
    table
}

/// Leaves out unchanged lines that are far from a change.
fn with_context(lines: Vec<DiffLine>) -> Vec<DiffLine> {
    let mut near = vec![false; lines.len()];
    for (index, _) in lines
        .iter()
        .enumerate()
        .filter(|(_, line)| line.kind != ' ')
    {
        let from = index.saturating_sub(CONTEXT);
        let to = (index + CONTEXT + 1).min(lines.len());
        near[from..to].fill(true);
    }
    let mut shown = Vec::new();
    let mut left_out = 0;
    let omitted = |count: usize| DiffLine {
        kind: '@',
        text: match count {
            1 => "1 line".to_owned(),
            count => format!("{count} lines"),
        },
    };
    for (line, near) in lines.into_iter().zip(near) {
        if !near {
            left_out += 1;
            continue;
        }
        if left_out > 0 {
            shown.push(omitted(left_out));
            left_out = 0;
        }
        shown.push(line);
    }
    if left_out > 0 && !shown.is_empty() {
        shown.push(omitted(left_out));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(old: &str, new: &str) -> String {
        let lines = |text: &str| text.chars().map(String::from).collect::<Vec<_>>();
        let lines = with_context(compare(&lines(old), &lines(new)));
        let lines = lines
            .iter()
            .map(|line| format!("{}{}", line.kind, line.text));
        lines.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn changes_have_three_lines_around_them() {
        assert_eq!(
            text("abcdefghij", "abcdeXghij"),
            "@2 lines  c  d  e -f +X  g  h  i @1 line"
        );
        assert_eq!(text("abc", "abc"), "");
        assert_eq!(text("", "ab"), "+a +b");
        assert_eq!(text("ab", ""), "-a -b");
        assert_eq!(text("abcd", "bcde"), "-a  b  c  d +e");
    }

    #[test]
    fn any_two_texts_compare_to_themselves() {
        kennel_test_support::with_seeds(0..50, |seed| {
            let mut rng = fastrand::Rng::with_seed(seed);
            let mut random = || -> Vec<String> {
                let length = rng.usize(0..30);
                (0..length).map(|_| rng.usize(0..5).to_string()).collect()
            };
            let (old, new) = (random(), random());
            let lines = compare(&old, &new);
            let of = |kinds: &[char]| -> Vec<String> {
                let lines = lines.iter().filter(|line| kinds.contains(&line.kind));
                lines.map(|line| line.text.clone()).collect()
            };
            assert_eq!(of(&[' ', '-']), old);
            assert_eq!(of(&[' ', '+']), new);
        });
    }
}
