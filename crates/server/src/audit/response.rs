//! Reads the object's name and uid, or the reason of a failure, from a response. It stops reading as
//! early as it can.

use std::fmt;

use http::Method;
use serde::Deserialize;
use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};

use crate::response::Body;

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Subject {
    pub(super) name: String,
    pub(super) uid: String,
    /// `Status.reason` of a failure.
    #[serde(skip)]
    pub(super) reason: String,
}

#[derive(Deserialize)]
struct Status {
    #[serde(default)]
    reason: String,
    #[serde(default)]
    details: Subject,
}

/// Reads successful responses only of creates: the paths of other requests have the name.
pub(super) fn subject(method: &Method, code: u16, body: &Body) -> Subject {
    let Body::Whole(Some(bytes)) = body else {
        return Subject::default();
    };
    if code >= 400 {
        let status = serde_json::from_slice(bytes).map(|status: Status| Subject {
            reason: status.reason,
            ..status.details
        });
        return status.unwrap_or_default();
    }
    let mut found = None;
    if *method == Method::POST {
        let mut reader = serde_json::Deserializer::from_slice(bytes);
        // Always an error, since the rest of the object stays unread.
        let _unread = reader.deserialize_map(UpToMetadata(&mut found));
    }
    found.unwrap_or_default()
}

/// Stops after the metadata, which is near the beginning.
struct UpToMetadata<'a>(&'a mut Option<Subject>);

impl<'de> Visitor<'de> for UpToMetadata<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<&str>()? {
            if key == "metadata" {
                *self.0 = Some(map.next_value()?);
                break;
            }
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn check(method: &Method, code: u16, body: &'static str, expected: [&str; 3]) {
        let found = subject(
            method,
            code,
            &Body::from(Bytes::from_static(body.as_bytes())),
        );
        assert_eq!(
            [&*found.name, &*found.uid, &*found.reason],
            expected,
            "{body}"
        );
    }

    #[test]
    fn responses_have_the_object_or_the_reason() {
        let made = r#"{"apiVersion":"v1","kind":"Secret","metadata":{"labels":{"name":"no"},
            "name":"a","uid":"u"},"data":{"metadata":"#;
        check(&Method::POST, 201, made, ["a", "u", ""]);
        check(&Method::PUT, 200, made, ["", "", ""]);
        let taken = r#"{"kind":"Status","message":"m","reason":"AlreadyExists",
            "details":{"name":"a","kind":"secrets"},"code":409}"#;
        check(&Method::POST, 409, taken, ["a", "", "AlreadyExists"]);
        check(&Method::PUT, 500, "{}", ["", "", ""]);
        check(&Method::POST, 201, "oops", ["", "", ""]);
        check(&Method::POST, 201, r#"{"metadata":{}}"#, ["", "", ""]);
    }
}
