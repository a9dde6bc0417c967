//! The answers about several DaemonSets: problems first, and a line for each DaemonSet that has none.

use kennel_core::why::Answer;
use kennel_inspect::colour::Colours;
use kennel_inspect::text::{detail, summary};
use serde::Serialize;

use super::Explanation;
use super::options::WhyArgs;
use super::subject::Scope;

/// The version of the format, in which items may get more fields.
const SCHEMA: &str = "kennel-why-list/1";

#[derive(Serialize)]
struct AnswerList<'a> {
    schema: &'static str,
    /// Of all of them.
    ok: bool,
    items: Vec<&'a Answer>,
}

pub(super) fn render(
    args: &WhyArgs,
    scope: &Scope,
    all: &[Explanation],
    colours: Colours,
) -> anyhow::Result<String> {
    let list = AnswerList {
        schema: SCHEMA,
        ok: all.iter().all(|one| one.answer.ok),
        items: all.iter().map(|one| &one.answer).collect(),
    };
    args.output
        .render(&list, || text(args, scope, all, colours))
}

fn text(args: &WhyArgs, scope: &Scope, all: &[Explanation], colours: Colours) -> String {
    if all.is_empty() {
        return match scope {
            Scope::Namespace(namespace) => {
                format!("No DaemonSets in namespace {namespace}; -A looks in all namespaces.\n")
            }
            Scope::AllNamespaces => "No DaemonSets in any namespace.\n".to_owned(),
        };
    }
    if args.all {
        let parts: Vec<String> = all.iter().map(|one| one.text(args, colours)).collect();
        return parts.join("\n");
    }
    let (good, bad): (Vec<&Explanation>, Vec<_>) = all.iter().partition(|one| one.answer.ok);
    let mut parts: Vec<String> = bad.iter().map(|one| one.problems(colours)).collect();
    let brief: String = good.iter().map(|one| one.brief(colours)).collect();
    if !brief.is_empty() {
        parts.push(brief);
    }
    parts.join("\n")
}

impl Explanation {
    fn problems(&self, colours: Colours) -> String {
        let (snapshot, answer) = (&self.snapshot, &self.answer);
        if snapshot.only.is_some() {
            return detail::problem(snapshot, answer, self.pod.as_deref(), colours);
        }
        summary::problems(snapshot, answer, colours)
    }

    fn brief(&self, colours: Colours) -> String {
        if self.snapshot.only.is_some() {
            return detail::brief(&self.answer, colours);
        }
        summary::brief(&self.answer, colours)
    }
}
