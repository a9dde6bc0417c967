//! The stages of a policy: `nodes(pool=canary) 15m, 10% 30m, 50% manual, 100% 10m`.

use std::fmt;
use std::time::Duration;

use crate::duration;
use crate::int_or_percent::IntOrPercent;
use crate::selector::Selector;

/// How many nodes a stage reaches, earlier stages included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Size {
    /// A number, or a percentage of the rollout's nodes, rounded up.
    Count(IntOrPercent),
    /// The nodes with these labels.
    Nodes(Selector),
}

impl Size {
    /// The number of nodes out of `total`; `None` for a selector.
    pub fn of(&self, total: i64) -> Option<i64> {
        match self {
            Self::Count(size) => Some(size.of_rounded_up(total).min(total)),
            Self::Nodes(_) => None,
        }
    }
}

/// One stage (R3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    pub size: Size,
    /// How long the stage stays complete before the next begins.
    pub bake: Duration,
    /// The next stage waits for a person.
    pub manual: bool,
}

impl Stage {
    /// The stage that reaches every node, without bake or gate.
    pub const ALL: Self = Self {
        size: Size::Count(IntOrPercent::Percent(100)),
        bake: Duration::ZERO,
        manual: false,
    };
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(size) => write!(f, "{size}"),
            Self::Nodes(selector) => write!(f, "nodes({selector})"),
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.size)?;
        if !self.bake.is_zero() {
            write!(f, " {}", duration::Go(self.bake))?;
        }
        if self.manual {
            f.write_str(" manual")?;
        }
        Ok(())
    }
}

/// Parses the value of `stages` and appends a missing final `100%` (R3.8).
pub(super) fn parse(text: &str) -> Option<Vec<Stage>> {
    let stages: Option<Vec<Stage>> = split(text).into_iter().map(parse_stage).collect();
    let mut stages = stages?;
    let reaches_all = stages
        .last()
        .is_some_and(|last| last.size == Stage::ALL.size);
    if !reaches_all {
        stages.push(Stage::ALL);
    }
    Some(stages)
}

/// Splits at commas outside of parentheses.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_usize);
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                parts.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn parse_stage(text: &str) -> Option<Stage> {
    let text = text.trim();
    let (size, rest) = if let Some(selector) = text.strip_prefix("nodes(") {
        let end = closing_parenthesis(selector)?;
        let selector_text = selector[..end].trim();
        let selector = Selector::parse(selector_text).ok()?;
        let empty = selector_text.is_empty() || selector.is_everything();
        let rest = &text["nodes(".len() + end + 1..];
        (!empty).then_some((Size::Nodes(selector), rest))?
    } else {
        let (size, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        (Size::Count(parse_size(size)?), rest)
    };
    let mut stage = Stage {
        size,
        bake: Duration::ZERO,
        manual: false,
    };
    let mut words = rest.split_whitespace().peekable();
    if !rest.is_empty() && !rest.starts_with(char::is_whitespace) && text.starts_with("nodes(") {
        return None;
    }
    if let Some(bake) = words.peek().and_then(|word| duration::parse(word)) {
        stage.bake = bake;
        words.next();
    }
    if words.peek() == Some(&"manual") {
        stage.manual = true;
        words.next();
    }
    words.next().is_none().then_some(stage)
}

/// The parenthesis that closes one before the text.
fn closing_parenthesis(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' if depth == 0 => return Some(index),
            b')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// At least one node, at most all.
fn parse_size(text: &str) -> Option<IntOrPercent> {
    let size = parse_count(text)?;
    match size {
        IntOrPercent::Int(1..) | IntOrPercent::Percent(1..=100) => Some(size),
        IntOrPercent::Int(_) | IntOrPercent::Percent(_) => None,
    }
}

/// A count or a percentage that is not negative.
pub(super) fn parse_count(text: &str) -> Option<IntOrPercent> {
    let (digits, percent) = match text.strip_suffix('%') {
        Some(digits) => (digits, true),
        None => (text, false),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: i64 = digits.parse().ok()?;
    match percent {
        true if number > 100 => None,
        true => Some(IntOrPercent::Percent(number)),
        false => Some(IntOrPercent::Int(number)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let stages = parse(text).unwrap_or_else(|| panic!("{text} is allowed"));
        let printed: Vec<String> = stages.iter().map(Stage::to_string).collect();
        assert_eq!(printed, expected, "{text}");
    }

    #[test]
    fn r1_stages_are_size_bake_and_gate() {
        check(
            "nodes(pool=canary) 15m, 10% 30m, 50% manual, 100% 10m",
            &[
                "nodes(pool=canary) 15m",
                "10% 30m",
                "50% manual",
                "100% 10m",
            ],
        );
        check("3", &["3", "100%"]);
        check(" 1 ,2 1h30m manual ", &["1", "2 1h30m manual", "100%"]);
        check("100%", &["100%"]);
        check("100% manual", &["100% manual"]);
    }

    #[test]
    fn r1_selectors_may_hold_commas_and_parentheses() {
        check(
            "nodes(pool in (a, b),!edge) manual, 100%",
            &["nodes(!edge,pool in (a,b)) manual", "100%"],
        );
    }

    #[test]
    fn r3_8_a_missing_final_stage_is_appended() {
        check("10%", &["10%", "100%"]);
        check("10%, nodes(a=b)", &["10%", "nodes(a=b)", "100%"]);
    }

    #[test]
    fn r1_2_unreadable_stages_are_refused() {
        for text in [
            "",
            " ",
            ",",
            "10%,",
            "0",
            "0%",
            "101%",
            "-1",
            "ten",
            "10 %",
            "1.5%",
            "10% soon",
            "10% manual 5m",
            "10% 5m 5m",
            "10% 5",
            "nodes()",
            "nodes(a=b",
            "nodes(a=b)15m",
            "nodes(a==)b) 1m",
            "nodes(a in b)",
            "99999999999999999999",
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn sizes_are_at_most_all_nodes() {
        let of = |text: &str, total| parse(text).unwrap()[0].size.of(total);
        assert_eq!(of("10%", 41), Some(5));
        assert_eq!(of("7", 3), Some(3));
        assert_eq!(of("1%", 0), Some(0));
        assert_eq!(of("nodes(a=b)", 9), None);
    }
}
