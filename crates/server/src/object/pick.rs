//! Parses a few values out of JSON bytes without building a tree.
//!
//! At start the server reads up to a hundred thousand objects, and needs the name, the labels and the
//! selectable fields of each.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// The values at `paths` (dotted), null for absent ones.
pub(super) fn pick(json: &[u8], paths: &[&str]) -> serde_json::Result<Vec<Value>> {
    let mut found = vec![Value::Null; paths.len()];
    let wanted: Vec<(usize, &str)> = paths.iter().copied().enumerate().collect();
    let mut reader = serde_json::Deserializer::from_slice(json);
    Level {
        wanted,
        found: &mut found,
    }
    .deserialize(&mut reader)?;
    reader.end()?;
    Ok(found)
}

/// One nested object on the paths to the values.
struct Level<'a> {
    /// The index of the result, and the rest of the path.
    wanted: Vec<(usize, &'a str)>,
    found: &'a mut Vec<Value>,
}

impl<'de> DeserializeSeed<'de> for Level<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Level<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            let mut below = Vec::new();
            let mut here = None;
            for &(index, path) in &self.wanted {
                match path.strip_prefix(&*key) {
                    Some("") => here = Some(index),
                    Some(rest) => below.extend(rest.strip_prefix('.').map(|rest| (index, rest))),
                    None => {}
                }
            }
            if let Some(index) = here {
                self.found[index] = map.next_value()?;
            } else if below.is_empty() {
                map.next_value::<IgnoredAny>()?;
            } else {
                map.next_value_seed(Level {
                    wanted: below,
                    found: &mut *self.found,
                })?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::pick;

    #[test]
    fn finds_values_at_every_depth_and_skips_the_rest() {
        let text = br#"{"a":{"b":1,"c":[{"b":2}],"d":{"e":"x"}},"f":"y","g":[1,{}]}"#;
        let found = pick(text, &["a.d.e", "f", "a.b", "g.h", "f.z"]).unwrap();
        assert_eq!(
            found,
            [json!("x"), json!("y"), json!(1), json!(null), json!(null)]
        );
    }

    #[test]
    fn half_an_object_is_an_error() {
        assert!(pick(br#"{"a":{"b":1}"#, &["a.b"]).is_err());
    }
}
