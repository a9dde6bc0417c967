//! Formats durations as kubectl does: `5d3h`.

use kennel_types::Timestamp;

pub(super) const UNKNOWN: &str = "<unknown>";

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// Formats seconds with at most two units; longer durations are coarser.
pub fn human_duration(seconds: i64) -> String {
    match seconds {
        // Allows for one second of clock skew.
        ..=-2 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => two_units(seconds, MINUTE, "m", 1, "s"),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => two_units(seconds, HOUR, "h", MINUTE, "m"),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => two_units(seconds, DAY, "d", HOUR, "h"),
        691_200..63_072_000 => format!("{}d", seconds / DAY),
        63_072_000..252_288_000 => two_units(seconds, YEAR, "y", DAY, "d"),
        _ => format!("{}y", seconds / YEAR),
    }
}

fn two_units(seconds: i64, large: i64, large_name: &str, small: i64, small_name: &str) -> String {
    let rest = seconds % large / small;
    if rest == 0 {
        return format!("{}{large_name}", seconds / large);
    }
    format!("{}{large_name}{rest}{small_name}", seconds / large)
}

/// The time since `then`, or `<unknown>`.
pub(super) fn since(then: Option<Timestamp>, now: Timestamp) -> String {
    let Some(then) = then else {
        return UNKNOWN.to_owned();
    };
    human_duration(now.millis_since(then) / 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_use_upstreams_steps() {
        let table = [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (121, "2m1s"),
            (599, "9m59s"),
            (600, "10m"),
            (179 * MINUTE, "179m"),
            (3 * HOUR, "3h"),
            (3 * HOUR + 59, "3h"),
            (7 * HOUR + 59 * MINUTE, "7h59m"),
            (8 * HOUR, "8h"),
            (47 * HOUR, "47h"),
            (2 * DAY, "2d"),
            (7 * DAY + 23 * HOUR, "7d23h"),
            (8 * DAY, "8d"),
            (2 * YEAR - 1, "729d"),
            (2 * YEAR, "2y"),
            (2 * YEAR + DAY, "2y1d"),
            (8 * YEAR, "8y"),
            (9 * YEAR + 3 * DAY, "9y"),
        ];
        for (seconds, printed) in table {
            assert_eq!(human_duration(seconds), printed, "{seconds} seconds");
        }
    }

    #[test]
    fn an_unset_time_is_unknown() {
        assert_eq!(since(None, Timestamp::EPOCH), "<unknown>");
    }
}
