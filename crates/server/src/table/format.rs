//! Formats that several kinds share: labels, selectors, short lists, containers.

use serde_json::{Map, Value};

use crate::tree::{at, list, text, text_entries, texts};

pub(super) const NONE: &str = "<none>";

/// The rest of a list is only counted.
const LISTED_MAX: usize = 3;

/// `found`, or `<none>` if it is empty.
pub(super) fn or_none(found: String) -> String {
    if found.is_empty() {
        return NONE.to_owned();
    }
    found
}

/// A map as `k=v,k=v`, or `<none>`.
pub(super) fn labels(pairs: &Map<String, Value>) -> String {
    let pairs = pairs
        .iter()
        .map(|(k, v)| format!("{k}={}", v.as_str().unwrap_or_default()));
    or_none(pairs.collect::<Vec<_>>().join(","))
}

/// A label selector as its requirements, ordered by key, or `<none>`.
pub(super) fn selector(tree: &Value, path: &str) -> String {
    let selector = at(tree, path);
    let mut terms: Vec<(&str, String)> = text_entries(selector, "matchLabels")
        .map(|(key, value)| (key, format!("{key}={value}")))
        .collect();
    for expression in list(selector, "matchExpressions") {
        let key = text(expression, "key");
        let mut values: Vec<&str> = texts(expression, "values").collect();
        values.sort_unstable();
        let values = values.join(",");
        let term = match text(expression, "operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            _ => return "<error>".to_owned(),
        };
        terms.push((key, term));
    }
    terms.sort_by(|a, b| a.0.cmp(b.0));
    let terms: Vec<String> = terms.into_iter().map(|(_, term)| term).collect();
    or_none(terms.join(","))
}

/// The strings of a list, joined by commas.
pub(super) fn joined(tree: &Value, path: &str) -> String {
    texts(tree, path).collect::<Vec<_>>().join(",")
}

/// One member of each entry of a list, joined by commas.
pub(super) fn members(tree: &Value, path: &str, member: &str) -> String {
    let members = list(tree, path).iter().map(|entry| text(entry, member));
    members.collect::<Vec<_>>().join(",")
}

/// The first entries and how many more there are: `a,b,c + 2 more...`.
pub(super) fn first_few(entries: &[String]) -> String {
    if entries.len() <= LISTED_MAX {
        return entries.join(",");
    }
    let rest = entries.len() - LISTED_MAX;
    format!("{} + {rest} more...", entries[..LISTED_MAX].join(","))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selectors_print_as_requirements_by_key() {
        let check = |selector_tree: Value, printed: &str| {
            let tree = json!({"spec": {"selector": selector_tree}});
            assert_eq!(selector(&tree, "spec.selector"), printed);
        };
        check(json!({}), "<none>");
        check(json!({"matchLabels": {"b": "2", "a": "1"}}), "a=1,b=2");
        check(
            json!({"matchLabels": {"m": "1"}, "matchExpressions": [
                {"key": "z", "operator": "DoesNotExist"},
                {"key": "a", "operator": "In", "values": ["y", "x"]},
                {"key": "c", "operator": "NotIn", "values": ["q"]},
                {"key": "b", "operator": "Exists"},
            ]}),
            "a in (x,y),b,c notin (q),m=1,!z",
        );
        check(
            json!({"matchExpressions": [{"key": "a", "operator": "Like"}]}),
            "<error>",
        );
        assert_eq!(selector(&json!({}), "spec.selector"), "<none>");
    }

    #[test]
    fn lists_beyond_three_are_counted() {
        let entries: Vec<String> = "abcde".chars().map(String::from).collect();
        assert_eq!(first_few(&entries), "a,b,c + 2 more...");
        assert_eq!(first_few(&entries[..3]), "a,b,c");
        assert_eq!(first_few(&[]), "");
    }
}
