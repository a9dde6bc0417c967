//! Label selectors and field selectors: parse, print, and match.
//!
//! [`Selector`] is a label selector, from a query string or from a `LabelSelector` object. [`FieldSelector`] only has
//! equality; callers know which fields a resource supports.

mod field;
mod lexer;
mod object;
mod parse;
pub mod rules;

use std::fmt;

pub use field::{FieldSelector, FieldTerm};

/// Upstream's message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SelectorError(pub String);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operator {
    /// `key in (a,b)`
    In,
    /// `key notin (a,b)`: also true without the key.
    NotIn,
    /// `key=a`
    Equals,
    /// `key==a`: the same, but printed as it was written.
    DoubleEquals,
    /// `key!=a`: also true without the key.
    NotEquals,
    /// `key`
    Exists,
    /// `!key`
    DoesNotExist,
    /// `key>5`, for integers.
    GreaterThan,
    /// `key<5`, for integers.
    LessThan,
}

/// One condition on one label.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Requirement {
    key: String,
    operator: Operator,
    /// Sorted, without duplicates.
    values: Vec<String>,
}

impl Requirement {
    /// Validates the requirement.
    pub fn new(
        key: &str,
        operator: Operator,
        values: impl IntoIterator<Item = String>,
    ) -> Result<Self, SelectorError> {
        let mut values: Vec<String> = values.into_iter().collect();
        values.sort();
        values.dedup();
        rules::check_requirement(key, operator, &values)?;
        Ok(Self {
            key: key.to_owned(),
            operator,
            values,
        })
    }

    pub fn key(&self) -> &str {
        &self.key
    }

    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// Sorted.
    pub fn values(&self) -> &[String] {
        &self.values
    }

    /// Whether a label with this value, or its absence, satisfies the requirement.
    pub fn accepts(&self, label: Option<&str>) -> bool {
        let listed = |value: &str| self.values.iter().any(|v| v == value);
        match self.operator {
            Operator::In | Operator::Equals | Operator::DoubleEquals => label.is_some_and(listed),
            Operator::NotIn | Operator::NotEquals => !label.is_some_and(listed),
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
            Operator::GreaterThan => self.compare(label, |label, bound| label > bound),
            Operator::LessThan => self.compare(label, |label, bound| label < bound),
        }
    }

    fn compare(&self, label: Option<&str>, holds: fn(i64, i64) -> bool) -> bool {
        let label = label.and_then(|value| value.parse().ok());
        let bound = self.values.first().and_then(|value| value.parse().ok());
        label
            .zip(bound)
            .is_some_and(|(label, bound)| holds(label, bound))
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, values, .. } = self;
        let joined = values.join(",");
        match self.operator {
            Operator::In => write!(f, "{key} in ({joined})"),
            Operator::NotIn => write!(f, "{key} notin ({joined})"),
            Operator::Equals => write!(f, "{key}={joined}"),
            Operator::DoubleEquals => write!(f, "{key}=={joined}"),
            Operator::NotEquals => write!(f, "{key}!={joined}"),
            Operator::Exists => f.write_str(key),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::GreaterThan => write!(f, "{key}>{joined}"),
            Operator::LessThan => write!(f, "{key}<{joined}"),
        }
    }
}

/// Matches if all requirements hold, unless it never matches.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Selector {
    never: bool,
    requirements: Vec<Requirement>,
}

impl Selector {
    pub fn everything() -> Self {
        Self {
            never: false,
            requirements: Vec::new(),
        }
    }

    /// The meaning of an absent `LabelSelector`.
    pub fn nothing() -> Self {
        Self {
            never: true,
            requirements: Vec::new(),
        }
    }

    /// Sorts the requirements by key.
    pub fn of(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Self {
            never: false,
            requirements,
        }
    }

    /// From a query string: `app=web,tier in (a,b),!legacy`. Empty selects everything.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        parse::parse(text).map(Self::of)
    }

    /// From a `LabelSelector` object: an empty one selects everything, `null` nothing.
    pub fn from_object(object: &serde_json::Value) -> Result<Self, SelectorError> {
        object::from_object(object)
    }

    pub fn is_everything(&self) -> bool {
        !self.never && self.requirements.is_empty()
    }

    /// The requirements, by key.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// `label` looks a label up by key.
    pub fn matches<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        !self.never
            && self
                .requirements
                .iter()
                .all(|requirement| requirement.accepts(label(requirement.key())))
    }

    /// The only value that this label may have, if there is one. Used to find candidates by an index.
    pub fn exact(&self, key: &str) -> Option<&str> {
        self.requirements.iter().find_map(|r| match r.operator {
            Operator::Equals | Operator::DoubleEquals | Operator::In
                if r.key == key && r.values.len() == 1 =>
            {
                Some(r.values[0].as_str())
            }
            _ => None,
        })
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            write!(f, "{requirement}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(selector: &str, labels: &[(&str, &str)], expected: bool) {
        let parsed = Selector::parse(selector).unwrap();
        let found = parsed.matches(|key| labels.iter().find(|(k, _)| *k == key).map(|(_, v)| *v));
        assert_eq!(found, expected, "{selector} on {labels:?}");
    }

    #[test]
    fn matching_follows_each_operator() {
        let web: &[(&str, &str)] = &[("app", "web"), ("n", "7")];
        check("", web, true);
        check("app=web", web, true);
        check("app==db", web, false);
        check("app!=db", web, true);
        check("other!=db", web, true);
        check("app in (db,web)", web, true);
        check("app notin (db,web)", web, false);
        check("other notin (db)", web, true);
        check("app,!other", web, true);
        check("!app", web, false);
        check("n>6,n<8", web, true);
        check("n>7", web, false);
        check("app>1", web, false);
        check("other=", web, false);
        check("app=web,n=8", web, false);
    }

    #[test]
    fn exact_is_known_only_where_one_value_can_match() {
        let selector = Selector::parse("a=1,b in (2),c in (3,4),d!=5").unwrap();
        assert_eq!(selector.exact("a"), Some("1"));
        assert_eq!(selector.exact("b"), Some("2"));
        assert_eq!(selector.exact("c"), None);
        assert_eq!(selector.exact("d"), None);
    }
}
