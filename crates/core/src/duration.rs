//! Durations as Kubernetes writes them in flags: `1h30m`, `2s`, `500ms`.

use std::time::Duration;

/// Parses hours, minutes, seconds and milliseconds, in any order. `None` if the text is anything else.
pub fn parse(mut text: &str) -> Option<Duration> {
    let mut sum = Duration::ZERO;
    if text.is_empty() {
        return None;
    }
    while !text.is_empty() {
        let digits = text.find(|c: char| !c.is_ascii_digit())?;
        let number: u32 = text[..digits].parse().ok()?;
        let units = text[digits..].find(|c: char| c.is_ascii_digit());
        let units = units.map_or(text.len(), |length| digits + length);
        let unit = match &text[digits..units] {
            "ms" => Duration::from_millis(1),
            "s" => Duration::from_secs(1),
            "m" => Duration::from_mins(1),
            "h" => Duration::from_hours(1),
            _ => return None,
        };
        sum = sum.checked_add(unit.checked_mul(number)?)?;
        text = &text[units..];
    }
    Some(sum)
}
