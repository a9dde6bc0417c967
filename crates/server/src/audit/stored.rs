//! What an answer says about the object that a request was about: its name and uid, or the reason of a
//! refusal. Reads no further than it must, and takes nothing else.

use std::fmt;

use http::Method;
use serde::Deserialize;
use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};

use crate::response::Body;

/// What is known of an object from the answer.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Subject {
    /// Its name.
    pub(super) name: String,
    /// Its uid.
    pub(super) uid: String,
    /// Why it was not touched, in one word.
    #[serde(skip)]
    pub(super) reason: String,
}

/// A failure.
#[derive(Deserialize)]
struct Status {
    #[serde(default)]
    reason: String,
    #[serde(default)]
    details: Subject,
}

/// What an answer says. Only a create's path lacks the name that its answer knows.
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
        // An error, too, since the rest of the object is left unread.
        let _unread = reader.deserialize_map(UpToMetadata(&mut found));
    }
    found.unwrap_or_default()
}

/// Reads an object up to its metadata and no further: it stands near the front, and the rest is long.
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
    fn answers_name_what_was_made_and_why_nothing_was() {
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
