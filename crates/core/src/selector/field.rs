//! Field selectors: `spec.nodeName=a,status.phase!=Failed`. Only equality; an absent field equals the empty string.

use std::fmt;

use super::SelectorError;

/// One condition of a field selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldTerm {
    /// The field, as the resource names it.
    pub field: String,
    /// Unescaped.
    pub value: String,
    /// True for `!=`.
    pub negated: bool,
}

/// Matches if all terms hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    terms: Vec<FieldTerm>,
}

impl FieldSelector {
    /// An empty text selects everything.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let mut parts = split_terms(text);
        parts.sort_unstable();
        let mut terms = Vec::new();
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            let Some((field, operator, value)) = split_term(part) else {
                return Err(SelectorError(format!(
                    "invalid selector: '{text}'; can't understand '{part}'"
                )));
            };
            terms.push(FieldTerm {
                field: field.to_owned(),
                value: unescape(value)?,
                negated: operator == "!=",
            });
        }
        Ok(Self { terms })
    }

    /// The terms, in a stable order.
    pub fn terms(&self) -> &[FieldTerm] {
        &self.terms
    }

    pub fn is_everything(&self) -> bool {
        self.terms.is_empty()
    }

    /// `field` looks a field of the object up.
    pub fn matches<'a>(&self, field: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.terms
            .iter()
            .all(|term| (field(&term.field).unwrap_or_default() == term.value) != term.negated)
    }

    /// The only value that this field may have, if there is one. Used to find candidates by an index.
    pub fn required(&self, field: &str) -> Option<&str> {
        self.terms
            .iter()
            .find(|term| !term.negated && term.field == field)
            .map(|term| term.value.as_str())
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, term) in self.terms.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let operator = if term.negated { "!=" } else { "=" };
            write!(f, "{comma}{}{operator}{}", term.field, escape(&term.value))?;
        }
        Ok(())
    }
}

/// Splits at commas that are not escaped.
fn split_terms(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (index, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                parts.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// Splits at the first operator.
fn split_term(term: &str) -> Option<(&str, &str, &str)> {
    term.char_indices().find_map(|(index, _)| {
        let rest = &term[index..];
        ["!=", "==", "="].into_iter().find_map(|operator| {
            let value = rest.strip_prefix(operator)?;
            Some((&term[..index], operator, value))
        })
    })
}

fn unescape(value: &str) -> Result<String, SelectorError> {
    let bad = |sequence: &str| {
        Err(SelectorError(format!(
            "invalid field selector: invalid escape sequence: {sequence}"
        )))
    };
    let mut plain = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => plain.push(c),
                Some(c) => return bad(&format!("\\{c}")),
                None => return bad("\\"),
            },
            // Upstream prints the number of the character here.
            ',' | '=' => {
                return Err(SelectorError(format!(
                    "invalid field selector: unescaped character in value: {}",
                    u32::from(c)
                )));
            }
            c => plain.push(c),
        }
    }
    Ok(plain)
}

fn escape(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for c in value.chars() {
        if matches!(c, '\\' | ',' | '=') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, printed: &str) {
        let selector = FieldSelector::parse(text).unwrap();
        assert_eq!(selector.to_string(), printed, "{text}");
        assert_eq!(FieldSelector::parse(printed).unwrap(), selector, "{text}");
    }

    #[test]
    fn valid_selectors_print_in_canonical_form() {
        check("", "");
        check("b=2,a==1", "a=1,b=2");
        check("spec.nodeName!=", "spec.nodeName!=");
        check("a=,", "a=");
        check(r"a=x\,y\=z\\", r"a=x\,y\=z\\");
    }

    fn check_error(text: &str, message: &str) {
        let error = FieldSelector::parse(text).unwrap_err().to_string();
        assert_eq!(error, message, "{text}");
    }

    #[test]
    fn invalid_selectors_are_rejected_with_upstreams_messages() {
        check_error("a", "invalid selector: 'a'; can't understand 'a'");
        check_error("a=1,b", "invalid selector: 'a=1,b'; can't understand 'b'");
        check_error(
            r"a=\x",
            r"invalid field selector: invalid escape sequence: \x",
        );
        check_error(
            r"a=\",
            r"invalid field selector: invalid escape sequence: \",
        );
        check_error(
            "a=b=c",
            "invalid field selector: unescaped character in value: 61",
        );
    }

    #[test]
    fn absent_fields_are_empty() {
        let matches = |text: &str| {
            let selector = FieldSelector::parse(text).unwrap();
            selector.matches(|field| (field == "spec.nodeName").then_some("n1"))
        };
        assert!(matches("spec.nodeName=n1"));
        assert!(!matches("spec.nodeName!=n1"));
        assert!(matches("spec.nodeName!="));
        assert!(matches("status.phase="));
        assert!(!matches("spec.nodeName=n1,status.phase=Running"));
    }

    #[test]
    fn required_is_the_value_an_index_can_use() {
        let selector = FieldSelector::parse(r"spec.nodeName=n\,1,x!=y").unwrap();
        assert_eq!(selector.required("spec.nodeName"), Some("n,1"));
        assert_eq!(selector.required("x"), None);
    }
}
