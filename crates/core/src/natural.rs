//! The natural order of names: numbers within them compare by value, so that node-2 comes before node-10.

use std::cmp::Ordering;

pub fn compare(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a, b);
    while !left.is_empty() && !right.is_empty() {
        let (x, y) = (run(&mut left), run(&mut right));
        let order = if starts_with_digit(x) && starts_with_digit(y) {
            // Without leading zeros, the longer number is the larger one.
            let (x, y) = (x.trim_start_matches('0'), y.trim_start_matches('0'));
            x.len().cmp(&y.len()).then_with(|| x.cmp(y))
        } else {
            x.cmp(y)
        };
        if order.is_ne() {
            return order;
        }
    }
    left.len().cmp(&right.len()).then_with(|| a.cmp(b))
}

/// Takes the digits, or what is before the next digit.
fn run<'a>(text: &mut &'a str) -> &'a str {
    let digits = starts_with_digit(text);
    let end = text.find(|c: char| c.is_ascii_digit() != digits);
    let (run, rest) = text.split_at(end.unwrap_or(text.len()));
    *text = rest;
    run
}

fn starts_with_digit(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_compare_by_value() {
        let sorted = [
            "",
            "10.0.0.2",
            "10.0.0.10",
            "node",
            "node-01",
            "node-1",
            "node-2",
            "node-2a",
            "node-10",
            "node-99999999999999999999998",
            "node-99999999999999999999999",
            "node-a",
            "node-ä",
        ];
        for (i, a) in sorted.iter().enumerate() {
            for (j, b) in sorted.iter().enumerate() {
                assert_eq!(compare(a, b), i.cmp(&j), "{a} {b}");
            }
        }
    }
}
