//! The one place where controllers read the clock.

use std::time::Duration;

use jiff::Timestamp;

/// Now, in milliseconds since the epoch.
pub fn now_ms() -> i64 {
    Timestamp::now().as_millisecond()
}

/// Now, as the API writes times in whole seconds: `2026-01-02T03:04:05Z`.
pub fn now_rfc3339() -> String {
    let now = Timestamp::now();
    Timestamp::from_second(now.as_second())
        .unwrap_or(now)
        .to_string()
}

/// A time in seconds since the epoch, as the API writes it.
pub fn rfc3339(seconds: i64) -> String {
    Timestamp::from_second(seconds)
        .unwrap_or(Timestamp::MIN)
        .to_string()
}

/// Now, as the API writes times in microseconds: `2026-01-02T03:04:05.000006Z`.
pub fn now_micros() -> String {
    format!("{:.6}", Timestamp::now())
}

/// Now, in nanoseconds since the epoch.
pub fn now_nanos() -> i128 {
    Timestamp::now().as_nanosecond()
}

/// Sleeps until the given time in milliseconds since the epoch; for ever if there is none.
pub async fn sleep_until(at_ms: Option<i64>) {
    match at_ms {
        Some(at) => {
            let left = u64::try_from(at - now_ms()).unwrap_or(0);
            tokio::time::sleep(Duration::from_millis(left)).await;
        }
        None => std::future::pending().await,
    }
}
