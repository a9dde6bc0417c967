//! Durations in the format of kubectl.

use std::time::Duration;

/// `45s`, `5m30s`, `2h`, `3d`, as `duration.HumanDuration` of apimachinery.
pub fn human_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    let with = |whole: u64, unit: &str, rest: u64, part: &str| match rest {
        0 => format!("{whole}{unit}"),
        rest => format!("{whole}{unit}{rest}{part}"),
    };
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 => with(minutes, "m", seconds % 60, "s"),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => with(hours, "h", minutes % 60, "m"),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => with(days, "d", hours % 24, "h"),
        _ => format!("{days}d"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_kubectls() {
        let cases = [
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (330, "5m30s"),
            (900, "15m"),
            (11_000, "3h3m"),
            (90_000, "25h"),
            (200_000, "2d7h"),
            (1_000_000, "11d"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(human_duration(Duration::from_secs(seconds)), expected);
        }
    }
}
