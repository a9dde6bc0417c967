//! Escalation check: a user may grant only permissions that their own rules cover.

use std::collections::BTreeSet;

use super::rule::{ALL, Rule, covers_url};

/// Bounds the work: a few lists in a small body multiply to billions of single permissions. Beyond the
/// bound a permission counts as missing.
const COMPARED_MAX: usize = 1_000_000;
/// The maximum number of missing permissions in an error.
const MISSING_MAX: usize = 1_000;

/// The single permissions of `wanted` that `held` does not cover, up to a limit. Empty if and only if all
/// are covered.
pub(crate) fn missing(held: &[&Rule], wanted: &[Rule]) -> Vec<Rule> {
    let mut compared = 0;
    let mut missing = Vec::new();
    for rule in wanted {
        // Usually one rule covers it as a whole.
        if held.iter().any(|held| covers(held, rule)) {
            continue;
        }
        for single in singles(rule) {
            compared += held.len().max(1);
            if missing.len() >= MISSING_MAX || compared > COMPARED_MAX {
                missing.push(rule.clone());
                return missing;
            }
            if !held.iter().any(|held| covers(held, &single)) {
                missing.push(single);
            }
        }
    }
    missing
}

/// Splits a rule into one verb on one resource (or resource name) or one URL each.
fn singles(rule: &Rule) -> impl Iterator<Item = Rule> {
    let one = |text: &String| vec![text.clone()];
    let on_resources = rule.groups.iter().flat_map(move |group| {
        rule.resources.iter().flat_map(move |resource| {
            rule.verbs.iter().flat_map(move |verb| {
                let names = rule.names.iter().map(Some);
                let nameless = rule.names.is_empty().then_some(None);
                names.chain(nameless).map(move |name| Rule {
                    verbs: one(verb),
                    groups: one(group),
                    resources: one(resource),
                    names: name.map(one).unwrap_or_default(),
                    urls: Vec::new(),
                })
            })
        })
    });
    let on_paths = rule.urls.iter().flat_map(move |url| {
        rule.verbs.iter().map(move |verb| Rule {
            verbs: one(verb),
            urls: one(url),
            ..Rule::default()
        })
    });
    on_resources.chain(on_paths)
}

fn covers(held: &Rule, wanted: &Rule) -> bool {
    let all = |held: &[String], wanted: &[String]| wanted.iter().all(|text| held.contains(text));
    let any = |held: &[String]| held.iter().any(|text| text == ALL);
    let names =
        held.names.is_empty() || (!wanted.names.is_empty() && all(&held.names, &wanted.names));
    let urls = |url: &String| held.urls.iter().any(|held| covers_url(held, url));
    (any(&held.verbs) || all(&held.verbs, &wanted.verbs))
        && (any(&held.groups) || all(&held.groups, &wanted.groups))
        && wanted
            .resources
            .iter()
            .all(|r| covers_resource(&held.resources, r))
        && wanted.urls.iter().all(urls)
        && names
}

fn covers_resource(held: &[String], resource: &str) -> bool {
    held.iter().any(|held| {
        let by_subresource = || {
            let subresource = resource.split_once('/').map(|(_, subresource)| subresource);
            subresource.is_some() && held.strip_prefix("*/") == subresource
        };
        held == ALL || held == resource || by_subresource()
    })
}

/// Missing permissions as errors list them: verbs on the same resource together, sorted.
pub(crate) fn described(missing: Vec<Rule>) -> String {
    let mut together: Vec<Rule> = Vec::new();
    for rule in missing {
        let same = |other: &&mut Rule| {
            rule.urls.is_empty()
                && other.groups == rule.groups
                && other.resources == rule.resources
                && other.names == rule.names
                && other.urls.is_empty()
        };
        match together.iter_mut().find(same) {
            Some(other) => other.verbs.extend(rule.verbs),
            None => together.push(rule),
        }
    }
    let lines: BTreeSet<String> = together.iter().map(describe).collect();
    lines.into_iter().collect::<Vec<_>>().join("\n")
}

/// One rule in Go's notation.
fn describe(rule: &Rule) -> String {
    let fields = [
        ("APIGroups", &rule.groups),
        ("Resources", &rule.resources),
        ("NonResourceURLs", &rule.urls),
        ("ResourceNames", &rule.names),
        ("Verbs", &rule.verbs),
    ];
    let given = fields.iter().filter(|(_, texts)| !texts.is_empty());
    let shown = given.map(|(field, texts)| format!("{field}:{}", quoted(texts)));
    format!("{{{}}}", shown.collect::<Vec<_>>().join(", "))
}

/// A list of strings as Go's `%q` shows it.
pub(crate) fn quoted(texts: &[String]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
    format!("[{}]", quoted.join(" "))
}

#[cfg(test)]
mod tests {
    use super::super::rule::tests::rule;
    use super::*;

    fn check(held: &[&str], wanted: &[&str], expected: &str) {
        let rules = |texts: &[&str]| texts.iter().map(|text| rule(text)).collect::<Vec<_>>();
        let (owned, asked) = (rules(held), rules(wanted));
        let owned: Vec<&Rule> = owned.iter().collect();
        let told = described(missing(&owned, &asked));
        assert_eq!(told, expected, "{held:?} {wanted:?}");
    }

    #[test]
    fn covered_rules_may_be_granted() {
        check(&["get core pods"], &["get core pods"], "");
        check(&["* * *"], &["get,list core,apps pods,pods/log a"], "");
        check(
            &["get core pods", "list core pods"],
            &["get,list core pods"],
            "",
        );
        check(
            &["get core pods", "get core nodes"],
            &["get core pods,nodes"],
            "",
        );
        check(&["get core */log"], &["get core pods/log"], "");
        check(&["get core pods"], &["get core pods a"], "");
        check(&["get core pods a,b"], &["get core pods b"], "");
        check(&["get /api/*"], &["get /api/v1,/api/*"], "");
        check(&["get *"], &["get /metrics"], "");
        check(&[], &[], "");
    }

    #[test]
    fn missing_permissions_are_listed() {
        check(
            &[],
            &["get,list core pods"],
            r#"{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}"#,
        );
        check(
            &["get core pods a"],
            &["get core pods"],
            r#"{APIGroups:[""], Resources:["pods"], Verbs:["get"]}"#,
        );
        check(
            &["get core pods a"],
            &["get core pods a,b"],
            r#"{APIGroups:[""], Resources:["pods"], ResourceNames:["b"], Verbs:["get"]}"#,
        );
        check(
            &["get,list core *"],
            &["* core *"],
            r#"{APIGroups:[""], Resources:["*"], Verbs:["*"]}"#,
        );
        check(
            &["get core pods"],
            &["get core pods/log"],
            r#"{APIGroups:[""], Resources:["pods/log"], Verbs:["get"]}"#,
        );
        check(
            &["get core pods"],
            &["get core */log,pods"],
            r#"{APIGroups:[""], Resources:["*/log"], Verbs:["get"]}"#,
        );
        check(
            &["* * *"],
            &["get /metrics"],
            r#"{NonResourceURLs:["/metrics"], Verbs:["get"]}"#,
        );
        check(
            &["get /api"],
            &["get /api/*"],
            r#"{NonResourceURLs:["/api/*"], Verbs:["get"]}"#,
        );
        check(
            &["get core b"],
            &["get core c,a,b"],
            "{APIGroups:[\"\"], Resources:[\"a\"], Verbs:[\"get\"]}\n\
             {APIGroups:[\"\"], Resources:[\"c\"], Verbs:[\"get\"]}",
        );
    }

    #[test]
    fn lists_that_multiply_to_billions_are_refused_in_time() {
        let many: Vec<String> = (0..2_000).map(|i| i.to_string()).collect();
        let vast = Rule {
            verbs: many.clone(),
            groups: many.clone(),
            resources: many.clone(),
            names: many,
            urls: Vec::new(),
        };
        let held = rule("0,1 * *");
        assert!(!missing(&[&held], std::slice::from_ref(&vast)).is_empty());
        let mut narrow = vast.clone();
        narrow.verbs = vec!["0".to_owned(), "1".to_owned()];
        assert!(missing(&[&held], &[narrow]).is_empty());
    }
}
