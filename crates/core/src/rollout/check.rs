//! What is asked at the end of a stage (R7), as the annotation `check` has it.

use std::str::FromStr;

/// What is asked at the end of a stage.
#[derive(Clone, Debug, PartialEq)]
pub enum Check {
    /// The instant query must yield one number that compares so.
    Prometheus {
        expression: String,
        comparison: Comparison,
        number: f64,
    },
    /// The address that the state is posted to.
    Webhook { url: String },
}

/// Why a check cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    #[error("the first word is neither prometheus nor webhook")]
    Kind,
    #[error("the last word is not a number")]
    Number,
    #[error("the last word but one is not a comparison")]
    Comparison,
    #[error("the expression is missing")]
    Expression,
    #[error("the URL begins with neither http:// nor https://")]
    Scheme,
    #[error("the URL has no host that could be one")]
    Host,
    #[error("the port of the URL is not a number from 1 to 65535")]
    Port,
    #[error("the URL has a user name or password")]
    UserInfo,
    #[error("the URL has a fragment (#), which no server gets")]
    Fragment,
    #[error("the URL has characters that must be percent-encoded")]
    Characters,
}

impl FromStr for Check {
    type Err = CheckError;

    fn from_str(text: &str) -> Result<Self, CheckError> {
        let (kind, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        match kind {
            "webhook" => webhook(rest.trim()),
            "prometheus" => prometheus(rest.trim()),
            _ => Err(CheckError::Kind),
        }
    }
}

fn prometheus(text: &str) -> Result<Check, CheckError> {
    let last_word = |text: &str| {
        let split = text.rsplit_once(char::is_whitespace);
        let (rest, word) = split.unwrap_or(("", text));
        (rest.trim_end().to_owned(), word.to_owned())
    };
    let (rest, number) = last_word(text);
    let number: f64 = number.parse().map_err(|_| CheckError::Number)?;
    if !number.is_finite() {
        return Err(CheckError::Number);
    }
    let (expression, comparison) = last_word(&rest);
    let comparison = Comparison::parse(&comparison).ok_or(CheckError::Comparison)?;
    if expression.is_empty() {
        return Err(CheckError::Expression);
    }
    Ok(Check::Prometheus {
        expression,
        comparison,
        number,
    })
}

fn webhook(url: &str) -> Result<Check, CheckError> {
    let plain = |c: char| c.is_ascii_graphic() && !"\"<>\\^`{|}".contains(c);
    let after_scheme = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"))
        .ok_or(CheckError::Scheme)?;
    if !url.chars().all(plain) {
        return Err(CheckError::Characters);
    }
    if url.contains('#') {
        return Err(CheckError::Fragment);
    }
    let end = after_scheme.find(['/', '?']);
    let authority = &after_scheme[..end.unwrap_or(after_scheme.len())];
    if authority.contains('@') {
        return Err(CheckError::UserInfo);
    }
    // The colons of an IPv6 address are within brackets.
    let after_address = authority.rfind(']').map_or(0, |at| at + 1);
    let (host, port) = match authority[after_address..].find(':') {
        None => (authority, None),
        Some(at) => {
            let (host, port) = authority.split_at(after_address + at);
            (host, Some(&port[1..]))
        }
    };
    if !is_host(host) {
        return Err(CheckError::Host);
    }
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
    if port.is_some_and(|port| !is_port(port)) {
        return Err(CheckError::Port);
    }
    Ok(Check::Webhook {
        url: url.to_owned(),
    })
}

/// A name or an address, as URLs have them.
fn is_host(host: &str) -> bool {
    let inner = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let allowed = match inner {
        Some(_) => |c: char| c.is_ascii_hexdigit() || c == ':' || c == '.',
        None => |c: char| c.is_ascii_alphanumeric() || "-._".contains(c),
    };
    let text = inner.unwrap_or(host);
    !text.is_empty() && text.chars().all(allowed)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
}

impl Comparison {
    const ALL: [(&'static str, Self); 6] = [
        ("<", Self::Less),
        ("<=", Self::LessOrEqual),
        (">", Self::Greater),
        (">=", Self::GreaterOrEqual),
        ("==", Self::Equal),
        ("!=", Self::NotEqual),
    ];

    fn parse(text: &str) -> Option<Self> {
        let found = Self::ALL.into_iter().find(|(symbol, _)| *symbol == text);
        found.map(|(_, comparison)| comparison)
    }

    pub fn symbol(self) -> &'static str {
        let mut all = Self::ALL.into_iter();
        let found = all.find(|(_, comparison)| *comparison == self);
        found.map_or("", |(symbol, _)| symbol)
    }

    /// Whether `left` compares so with `right`. Nothing compares with a number that is none.
    pub fn holds(self, left: f64, right: f64) -> bool {
        match left.partial_cmp(&right) {
            None => false,
            Some(order) => match self {
                Self::Less => order.is_lt(),
                Self::LessOrEqual => order.is_le(),
                Self::Greater => order.is_gt(),
                Self::GreaterOrEqual => order.is_ge(),
                Self::Equal => order.is_eq(),
                Self::NotEqual => order.is_ne(),
            },
        }
    }
}

/// Fills `$name` in for each of these names. A `$` before anything else stays: regular expressions end with one.
pub fn fill_in(expression: &str, values: &[(&str, &str)]) -> String {
    let mut filled = String::with_capacity(expression.len());
    let mut rest = expression;
    while let Some(at) = rest.find('$') {
        let (before, from) = rest.split_at(at);
        filled.push_str(before);
        let word = from[1..].find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let end = word.map_or(from.len(), |length| 1 + length);
        let value = values.iter().find(|(name, _)| *name == &from[1..end]);
        filled.push_str(value.map_or(&from[..end], |(_, value)| value));
        rest = &from[end..];
    }
    filled.push_str(rest);
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r7_a_check_is_an_expression_with_a_comparison_or_an_address() {
        let query = "prometheus sum(rate(errors{ds=\"$daemonset\"}[5m])) / 2 <= 0.05";
        assert_eq!(
            query.parse(),
            Ok(Check::Prometheus {
                expression: "sum(rate(errors{ds=\"$daemonset\"}[5m])) / 2".into(),
                comparison: Comparison::LessOrEqual,
                number: 0.05,
            })
        );
        for url in [
            "http://gate:8080/x?y=z",
            "https://gate.example",
            "https://gate.example?revision=1",
            "http://[::1]:8080/",
            "http://[fd00::1]/a@b",
        ] {
            let found = format!("webhook  {url}").parse();
            assert_eq!(found, Ok(Check::Webhook { url: url.into() }));
        }
    }

    #[test]
    fn r7_a_check_that_cannot_be_read_says_what_is_wrong() {
        use CheckError as Error;
        for (text, error) in [
            ("", Error::Kind),
            ("shell rm", Error::Kind),
            ("prometheus", Error::Number),
            ("prometheus up", Error::Number),
            ("prometheus up > many", Error::Number),
            ("prometheus up > NaN", Error::Number),
            ("prometheus up > inf", Error::Number),
            ("prometheus up ~ 1", Error::Comparison),
            ("prometheus up>1 1", Error::Comparison),
            ("prometheus 1", Error::Comparison),
            ("prometheus > 1", Error::Expression),
            ("webhook", Error::Scheme),
            ("webhook ftp://x", Error::Scheme),
            ("webhook gate.example", Error::Scheme),
            ("webhook https://", Error::Host),
            ("webhook https:///ok", Error::Host),
            ("webhook https://:443/ok", Error::Host),
            ("webhook https://[]/ok", Error::Host),
            ("webhook https://[::1/ok", Error::Host),
            ("webhook https://a]b/ok", Error::Host),
            ("webhook https://*.example/ok", Error::Host),
            ("webhook https://gate:x/", Error::Port),
            ("webhook https://gate:0/", Error::Port),
            ("webhook https://gate:65536/", Error::Port),
            ("webhook https://gate:/", Error::Port),
            ("webhook https://me@gate/", Error::UserInfo),
            ("webhook https://allowed:80@evil/", Error::UserInfo),
            ("webhook https://gate/#part", Error::Fragment),
            ("webhook https://a b", Error::Characters),
            ("webhook https://gate/\u{e4}", Error::Characters),
            ("webhook https://gate\\evil/", Error::Characters),
        ] {
            assert_eq!(text.parse::<Check>(), Err(error), "{text}");
        }
    }

    #[test]
    fn comparisons_hold_as_written_and_never_for_nan() {
        for (symbol, expected) in [
            ("<", [true, false, false]),
            ("<=", [true, true, false]),
            (">", [false, false, true]),
            (">=", [false, true, true]),
            ("==", [false, true, false]),
            ("!=", [true, false, true]),
        ] {
            let comparison = Comparison::parse(symbol).unwrap();
            assert_eq!(comparison.symbol(), symbol);
            assert_eq!(
                [1.0, 2.0, 3.0].map(|left| comparison.holds(left, 2.0)),
                expected
            );
            assert!(!comparison.holds(f64::NAN, 2.0));
        }
    }

    #[test]
    fn r7_names_are_filled_in_and_other_dollars_stay() {
        let values = [("daemonset", "agent"), ("revision", "5d8b")];
        for (expression, expected) in [
            ("up", "up"),
            (r#"x{d="$daemonset"}"#, r#"x{d="agent"}"#),
            (
                r#"x{d=~"$daemonset-.*$",r="$revision"}"#,
                r#"x{d=~"agent-.*$",r="5d8b"}"#,
            ),
            (
                r#"x{d="$daemonsets$unknown$"}"#,
                r#"x{d="$daemonsets$unknown$"}"#,
            ),
            ("$daemonset$daemonset", "agentagent"),
            ("$", "$"),
        ] {
            assert_eq!(fill_in(expression, &values), expected);
        }
    }
}
