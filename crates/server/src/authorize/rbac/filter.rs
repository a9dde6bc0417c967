//! A Bloom filter over the rules of a role, which excludes most roles without reading their rules: a user
//! may have a thousand bindings. It may return false positives, never false negatives.

use super::super::Attributes;
use super::rule::{ALL, Rule};

/// Bits for verbs, names, non-resource URLs and resources. 16 bytes, so that the filters of a thousand
/// roles fit into the L1 cache. A resource has three bits, since a false positive costs as much as a
/// hundred filters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RuleFilter(u128);

const VERBS: u128 = 0xffff;
const NAMES: u128 = 0x7fff << 16;
const PATHS: u128 = 1 << 31;
const RESOURCES: u128 = !0 << 32;

impl RuleFilter {
    pub(super) fn of_rules(rules: &[Rule]) -> Self {
        let mut bits = 0;
        for rule in rules {
            bits |= any(VERBS, &rule.verbs);
            bits |= match rule.names.as_slice() {
                [] => NAMES,
                names => names
                    .iter()
                    .fold(0, |bits, name| bits | bit(NAMES, &[name])),
            };
            if !rule.urls.is_empty() {
                bits |= PATHS;
            }
            for group in &rule.groups {
                let resources = rule.resources.iter();
                bits |= resources.fold(0, |bits, named| bits | rule_resource(group, named));
            }
        }
        Self(bits)
    }

    pub(super) fn of_request(asked: &Attributes<'_>) -> Self {
        Self(match asked {
            Attributes::Path { verb, .. } => bit(VERBS, &[verb.as_str()]) | NAMES | PATHS,
            Attributes::Resource(asked) => {
                bit(VERBS, &[asked.verb.as_str()])
                    | bit(NAMES, &[asked.name])
                    | resource(asked.group, asked.resource, asked.subresource)
            }
        })
    }

    /// Whether the rules of this filter may allow the request of the other one.
    pub(super) fn may_allow(self, asked: Self) -> bool {
        let both = self.0 & asked.0;
        let what = RESOURCES | PATHS;
        // The most selective test comes first, for the branch predictor.
        both & what == asked.0 & what && both & VERBS != 0 && both & NAMES != 0
    }
}

/// The bits of some words; `*` sets all bits of the field.
fn any(field: u128, words: &[String]) -> u128 {
    words.iter().fold(0, |bits, word| {
        bits | if word == ALL {
            field
        } else {
            bit(field, &[word])
        }
    })
}

/// The bits of a rule's resource, such as `pods/log` or `*`.
fn rule_resource(group: &str, named: &str) -> u128 {
    match named.split_once('/') {
        _ if group == ALL || named == ALL => RESOURCES,
        Some((ALL, _)) => RESOURCES,
        Some((name, subresource)) => resource(group, name, subresource),
        None => resource(group, named, ""),
    }
}

fn resource(group: &str, resource: &str, subresource: &str) -> u128 {
    let hash = hash(&[group, resource, subresource]);
    let third = |at: u32| one_of(RESOURCES, hash >> (21 * at));
    third(0) | third(1) | third(2)
}

fn bit(field: u128, words: &[&str]) -> u128 {
    one_of(field, hash(words))
}

fn one_of(field: u128, number: u64) -> u128 {
    1 << (u64::from(field.trailing_zeros()) + number % u64::from(field.count_ones()))
}

/// FNV-1a.
fn hash(words: &[&str]) -> u64 {
    let bytes = words.iter().flat_map(|word| word.bytes().chain([b'/']));
    bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::ResourceAttributes;
    use super::super::rule::tests::rule;
    use kennel_types::Verb;

    use super::*;

    #[test]
    fn a_filter_never_excludes_what_a_rule_allows() {
        let rules = [
            "* * *",
            "get core *",
            "get * pods",
            "get core */log",
            "get core pods/log",
            "list core pods,nodes",
            "get,list apps,core pods a,b",
            "get core secrets/",
            "* core pods",
            "get core pods",
        ];
        let words: [&[&str]; 5] = [
            &["get", "list", "escalate"],
            &["", "apps"],
            &["pods", "nodes", "secrets"],
            &["", "log", "status"],
            &["", "a", "c"],
        ];
        let mut excluded = 0;
        for text in rules {
            let rule = rule(text);
            let filter = RuleFilter::of_rules(std::slice::from_ref(&rule));
            let sizes = words.map(<[&str]>::len);
            for number in 0..sizes.iter().product() {
                let mut rest = number;
                let [verb, group, resource, subresource, name] = words.map(|words| {
                    let word = words[rest % words.len()];
                    rest /= words.len();
                    word
                });
                let asked = Attributes::Resource(ResourceAttributes {
                    verb: Verb::from(verb),
                    group,
                    resource,
                    subresource,
                    name,
                    ..ResourceAttributes::default()
                });
                let perhaps = filter.may_allow(RuleFilter::of_request(&asked));
                assert!(perhaps || !rule.allows(&asked), "{text} {asked:?}");
                excluded += usize::from(!perhaps);
            }
        }
        assert!(excluded > 500, "{excluded}");
    }

    #[test]
    fn urls_and_resources_do_not_mix() {
        let path = Attributes::Path {
            verb: Verb::Get,
            path: "/",
        };
        let may_allow = |text: &str| {
            RuleFilter::of_rules(&[rule(text)]).may_allow(RuleFilter::of_request(&path))
        };
        assert!(!may_allow("* * *"));
        assert!(may_allow("get *"));
        assert!(may_allow("* /"));
    }
}
