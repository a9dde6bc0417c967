//! What of a log is wanted, as `PodLogOptions` says it.

use std::str::FromStr;

use jiff::{SignedDuration, Timestamp};

use crate::kubelet_api::answer::Refusal;
use crate::kubelet_api::route::Query;

/// See the [module](self).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::kubelet_api) struct Options {
    /// Also what comes from now on.
    pub(in crate::kubelet_api) follow: bool,
    /// The run before.
    pub(in crate::kubelet_api) previous: bool,
    /// With the time before each line.
    pub(super) timestamps: bool,
    /// Nothing that is older.
    pub(super) since: Option<Timestamp>,
    /// So many of the last lines.
    pub(super) tail: Option<u64>,
    /// Nothing after so many bytes.
    pub(super) limit: Option<u64>,
    /// Only what was written there.
    pub(super) stream: Option<&'static str>,
}

impl Options {
    /// Reads them.
    pub(in crate::kubelet_api) fn parse(query: &Query, now: Timestamp) -> Result<Self, Refusal> {
        let ago: Option<i64> = number(query, "sinceSeconds")?;
        let at: Option<Timestamp> = number(query, "sinceTime")?;
        if ago.is_some() && at.is_some() {
            return Err(Refusal::bad(
                "at most one of sinceTime or sinceSeconds may be specified",
            ));
        }
        let ago = ago.map(|seconds| {
            let back = SignedDuration::from_secs(seconds.max(0));
            now.checked_sub(back).unwrap_or(Timestamp::MIN)
        });
        Ok(Self {
            follow: query.is_set(&["follow"]),
            previous: query.is_set(&["previous"]),
            timestamps: query.is_set(&["timestamps"]),
            since: at.or(ago),
            // Less than none means all.
            tail: number::<i64>(query, "tailLines")?.and_then(|lines| u64::try_from(lines).ok()),
            limit: number(query, "limitBytes")?,
            stream: stream(query)?,
        })
    }
}

fn stream(query: &Query) -> Result<Option<&'static str>, Refusal> {
    match query.get("stream") {
        None | Some("All") => Ok(None),
        Some("Stdout") => Ok(Some("stdout")),
        Some("Stderr") => Ok(Some("stderr")),
        Some(other) => Err(Refusal::bad(format!("invalid stream {other:?}"))),
    }
}

fn number<T: FromStr>(query: &Query, key: &str) -> Result<Option<T>, Refusal> {
    let parsed = query.get(key).map(str::parse).transpose();
    parsed.map_err(|_| {
        let value = query.get(key).unwrap_or_default();
        Refusal::bad(format!("invalid {key} {value:?}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read() {
        let now: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
        let parse = |query: &str| Options::parse(&Query::parse(query), now);
        let all = parse("follow=true&previous=1&timestamps=true&tailLines=5&limitBytes=7").unwrap();
        assert!(all.follow && all.previous && all.timestamps);
        assert_eq!((all.tail, all.limit), (Some(5), Some(7)));
        let since = |query: &str| parse(query).unwrap().since.unwrap().to_string();
        assert_eq!(since("sinceSeconds=65"), "2026-01-02T03:03:00Z");
        assert_eq!(
            since("sinceTime=2026-01-01T00%3A00%3A00Z"),
            "2026-01-01T00:00:00Z"
        );
        assert_eq!(parse("tailLines=-1").unwrap().tail, None);
        assert_eq!(parse("").unwrap(), Options::default());
        for query in [
            "tailLines=x",
            "sinceTime=yesterday",
            "limitBytes=-1",
            "stream=Both",
            "sinceSeconds=1&sinceTime=2026-01-01T00%3A00%3A00Z",
        ] {
            assert!(parse(query).is_err(), "{query}");
        }
    }
}
