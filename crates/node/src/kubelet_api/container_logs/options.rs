//! The query parameters of a log request: `PodLogOptions`.

use std::str::FromStr;

use kennel_types::Timestamp;

use crate::kubelet_api::response::HttpError;
use crate::kubelet_api::route::Query;

/// See the [module](self).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::kubelet_api) struct Options {
    pub(in crate::kubelet_api) follow: bool,
    /// The log of the previous run.
    pub(in crate::kubelet_api) previous: bool,
    pub(super) timestamps: bool,
    pub(super) since: Option<Timestamp>,
    /// Number of lines.
    pub(super) tail: Option<u64>,
    /// Bytes.
    pub(super) limit: Option<u64>,
    /// `stdout` or `stderr` only.
    pub(super) stream: Option<&'static str>,
}

impl Options {
    pub(in crate::kubelet_api) fn parse(query: &Query, now: Timestamp) -> Result<Self, HttpError> {
        let ago: Option<i64> = parse(query, "sinceSeconds")?;
        let at: Option<Timestamp> = parse(query, "sinceTime")?;
        if ago.is_some() && at.is_some() {
            return Err(HttpError::bad_request(
                "at most one of sinceTime or sinceSeconds may be specified",
            ));
        }
        let ago = ago.map(|seconds| {
            let seconds = seconds.max(0);
            now.saturating_add_millis(seconds.saturating_mul(-1000))
        });
        Ok(Self {
            follow: query.is_set(&["follow"]),
            previous: query.is_set(&["previous"]),
            timestamps: query.is_set(&["timestamps"]),
            since: at.or(ago),
            // A negative number means all lines.
            tail: parse::<i64>(query, "tailLines")?.and_then(|lines| u64::try_from(lines).ok()),
            limit: parse(query, "limitBytes")?,
            stream: stream(query)?,
        })
    }
}

fn stream(query: &Query) -> Result<Option<&'static str>, HttpError> {
    match query.get("stream") {
        None | Some("All") => Ok(None),
        Some("Stdout") => Ok(Some("stdout")),
        Some("Stderr") => Ok(Some("stderr")),
        Some(other) => Err(HttpError::bad_request(format!("invalid stream {other:?}"))),
    }
}

fn parse<T: FromStr>(query: &Query, key: &str) -> Result<Option<T>, HttpError> {
    let parsed = query.get(key).map(str::parse).transpose();
    parsed.map_err(|_| {
        let value = query.get(key).unwrap_or_default();
        HttpError::bad_request(format!("invalid {key} {value:?}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_parsed() {
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
