//! A count that is a number or a percentage: `3` or `"25%"`.

use std::fmt;

use serde_json::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntOrPercent {
    Int(i64),
    Percent(i64),
}

impl IntOrPercent {
    /// `None` unless the value is an integer or a percent string.
    pub fn parse(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => number.as_i64().map(Self::Int),
            Value::String(text) => {
                let digits = text.strip_suffix('%')?;
                let all_digits = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
                all_digits.then(|| digits.parse().ok().map(Self::Percent))?
            }
            _ => None,
        }
    }

    /// The count out of `total`, with percentages rounded up.
    pub fn of_rounded_up(self, total: i64) -> i64 {
        match self {
            Self::Int(count) => count,
            Self::Percent(percent) => percent.saturating_mul(total).saturating_add(99) / 100,
        }
    }
}

impl fmt::Display for IntOrPercent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(count) => write!(f, "{count}"),
            Self::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(value: &Value, total: i64, expected: Option<i64>) {
        let found = IntOrPercent::parse(value).map(|v| v.of_rounded_up(total));
        assert_eq!(found, expected, "{value} of {total}");
    }

    #[test]
    fn s5_1_2_percentages_are_rounded_up() {
        check(&json!(3), 10, Some(3));
        check(&json!("25%"), 10, Some(3));
        check(&json!("20%"), 10, Some(2));
        check(&json!("1%"), 1, Some(1));
        check(&json!("0%"), 10, Some(0));
        check(&json!("100%"), 7, Some(7));
    }

    #[test]
    fn s1_3_6_other_strings_are_no_percentage() {
        check(&json!("5"), 10, None);
        check(&json!("%"), 10, None);
        check(&json!("-5%"), 10, None);
        check(&json!("+5%"), 10, None);
        check(&json!(null), 10, None);
        check(&json!(1.5), 10, None);
    }
}
