//! A sketch of what some rules speak of: one look at it rules most of them out.
//!
//! Whoever has a thousand bindings must not wait until the rules of a thousand roles were read. A sketch
//! may say "perhaps" where the answer is no, never the other way round.

use super::super::{Attributes, ResourceAttributes};
use super::rule::{ALL, Rule};

/// A bit for paths, and one of the others for each resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sketch(u64);

const PATHS: u64 = 1 << 63;

impl Sketch {
    /// The sketch of what these rules may allow.
    pub(super) fn of(rules: &[Rule]) -> Self {
        let mut bits = 0;
        for rule in rules {
            if !rule.urls.is_empty() {
                bits |= PATHS;
            }
            for resource in &rule.resources {
                bits |= match resource.split_once('/') {
                    None if resource == ALL => !PATHS,
                    Some((ALL, _)) => !PATHS,
                    None => bit(resource, ""),
                    Some((resource, subresource)) => bit(resource, subresource),
                };
            }
        }
        Self(bits)
    }

    /// The sketch of a request.
    pub(super) fn asked(asked: &Attributes<'_>) -> Self {
        match asked {
            Attributes::Path { .. } => Self(PATHS),
            Attributes::Resource(ResourceAttributes {
                resource,
                subresource,
                ..
            }) => Self(bit(resource, subresource)),
        }
    }

    /// Whether rules with this sketch may allow a request with that one.
    pub(super) fn meets(self, asked: Self) -> bool {
        self.0 & asked.0 != 0
    }
}

/// One of the bits below [`PATHS`], by the FNV-1a hash of the name.
fn bit(resource: &str, subresource: &str) -> u64 {
    let bytes = resource.bytes().chain([b'/']).chain(subresource.bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    1 << (hash % 63)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sketch_never_rules_out_what_a_rule_allows() {
        let named = [
            "*",
            "*/log",
            "*/status",
            "pods",
            "pods/log",
            "pods/status",
            "nodes",
            "secrets/",
        ];
        for named in named {
            let rule = Rule {
                verbs: vec![ALL.to_owned()],
                groups: vec![ALL.to_owned()],
                resources: vec![named.to_owned()],
                ..Rule::default()
            };
            let sketch = Sketch::of(std::slice::from_ref(&rule));
            for resource in ["pods", "nodes", "secrets", "daemonsets"] {
                for subresource in ["", "log", "status"] {
                    let asked = Attributes::Resource(ResourceAttributes {
                        resource,
                        subresource,
                        ..ResourceAttributes::default()
                    });
                    let perhaps = sketch.meets(Sketch::asked(&asked));
                    assert!(
                        perhaps || !rule.allows(&asked),
                        "{named} {resource}/{subresource}"
                    );
                }
            }
        }
    }

    #[test]
    fn paths_and_resources_are_apart() {
        let everything = Rule {
            resources: vec![ALL.to_owned()],
            ..Rule::default()
        };
        let path = Attributes::Path {
            verb: "get",
            path: "/",
        };
        assert!(!Sketch::of(&[everything]).meets(Sketch::asked(&path)));
        let urls = Rule {
            urls: vec![ALL.to_owned()],
            ..Rule::default()
        };
        assert!(Sketch::of(&[urls]).meets(Sketch::asked(&path)));
    }
}
