//! A sketch of what some rules speak of: one look at it rules most of them out.
//!
//! Whoever has a thousand bindings must not wait until the rules of a thousand roles were read. A sketch
//! may say "perhaps" where the answer is no, never the other way round.

use super::super::Attributes;
use super::rule::{ALL, Rule};

/// Which verbs, on what, under which names: a bit stands for many of them. Two words, so that the sketches of
/// a thousand roles fit into the fastest memory there is. A resource has three bits, since reading a rule in
/// vain costs as much as a hundred sketches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sketch(u128);

const VERBS: u128 = 0xffff;
const NAMES: u128 = 0x7fff << 16;
const PATHS: u128 = 1 << 31;
const RESOURCES: u128 = !0 << 32;

impl Sketch {
    /// The sketch of what these rules may allow.
    pub(super) fn of(rules: &[Rule]) -> Self {
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
                bits |= resources.fold(0, |bits, named| bits | thing(group, named));
            }
        }
        Self(bits)
    }

    /// The sketch of a request.
    pub(super) fn asked(asked: &Attributes<'_>) -> Self {
        Self(match asked {
            Attributes::Path { verb, .. } => bit(VERBS, &[verb.as_str()]) | NAMES | PATHS,
            Attributes::Resource(asked) => {
                bit(VERBS, &[asked.verb.as_str()])
                    | bit(NAMES, &[asked.name])
                    | resource(asked.group, asked.resource, asked.subresource)
            }
        })
    }

    /// Whether rules with this sketch may allow a request with that one.
    pub(super) fn meets(self, asked: Self) -> bool {
        let both = self.0 & asked.0;
        let what = RESOURCES | PATHS;
        // What tells most apart comes first: then the processor guesses right nearly always.
        both & what == asked.0 & what && both & VERBS != 0 && both & NAMES != 0
    }
}

/// The bits of some words, any of which may stand for all.
fn any(field: u128, words: &[String]) -> u128 {
    words.iter().fold(0, |bits, word| {
        bits | if word == ALL {
            field
        } else {
            bit(field, &[word])
        }
    })
}

/// A resource as rules name it, in a group.
fn thing(group: &str, named: &str) -> u128 {
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

/// The bit of some words in a field.
fn bit(field: u128, words: &[&str]) -> u128 {
    one_of(field, hash(words))
}

/// One bit of a field.
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
    fn a_sketch_never_rules_out_what_a_rule_allows() {
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
        let mut ruled_out = 0;
        for text in rules {
            let rule = rule(text);
            let sketch = Sketch::of(std::slice::from_ref(&rule));
            let sizes = words.map(<[&str]>::len);
            for number in 0..sizes.iter().product() {
                let mut rest = number;
                let [verb, group, resource, subresource, name] = words.map(|words| {
                    let word = words[rest % words.len()];
                    rest /= words.len();
                    word
                });
                let asked = Attributes::Resource(ResourceAttributes {
                    verb: Verb::parse(verb),
                    group,
                    resource,
                    subresource,
                    name,
                    ..ResourceAttributes::default()
                });
                let perhaps = sketch.meets(Sketch::asked(&asked));
                assert!(perhaps || !rule.allows(&asked), "{text} {asked:?}");
                ruled_out += usize::from(!perhaps);
            }
        }
        assert!(ruled_out > 500, "{ruled_out}");
    }

    #[test]
    fn paths_and_resources_are_apart() {
        let path = Attributes::Path {
            verb: Verb::Get,
            path: "/",
        };
        let meets = |text: &str| Sketch::of(&[rule(text)]).meets(Sketch::asked(&path));
        assert!(!meets("* * *"));
        assert!(meets("get *"));
        assert!(meets("* /"));
    }
}
