//! JSON as Go's encoder writes it: compact, keys sorted, `<`, `>`, `&`, U+2028 and U+2029 escaped.
//!
//! kubectl compares revisions byte by byte with what Go writes, and keys of managed fields contain such JSON.

use std::io::{self, Write};

use serde::Serialize as _;
use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};

/// Numbers below the first and from the second on are written with an exponent.
const EXPONENTS: (f64, f64) = (1e-6, 1e21);

/// Serialises a value. Keys are sorted because `serde_json::Map` is.
pub fn to_string(value: &Value) -> String {
    let mut out = Vec::new();
    value
        .serialize(&mut Serializer::with_formatter(&mut out, Go))
        .expect("JSON values have string keys, and writing to a Vec does not fail");
    String::from_utf8(out).expect("serde_json writes UTF-8")
}

struct Go;

impl Formatter for Go {
    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        let size = value.abs();
        if size != 0.0 && (size < EXPONENTS.0 || size >= EXPONENTS.1) {
            let signed = format!("{value:e}").replace('e', "e+").replace("+-", "-");
            return writer.write_all(signed.as_bytes());
        }
        write!(writer, "{value}")
    }

    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let escaped = |c: char| matches!(c, '<' | '>' | '&' | '\u{2028}' | '\u{2029}');
        let mut rest = fragment;
        while let Some(at) = rest.find(escaped) {
            let (unescaped, tail) = rest.split_at(at);
            let mut characters = tail.chars();
            let code = characters.next().map_or(0, u32::from);
            write!(writer, "{unescaped}\\u{code:04x}")?;
            rest = characters.as_str();
        }
        writer.write_all(rest.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(value: &Value, expected: &str) {
        assert_eq!(to_string(value), expected);
    }

    #[test]
    fn s4_5_keys_are_sorted_bytewise_and_nothing_is_spaced() {
        check(
            &json!({"b": [1, {"Z": null, "a": true}], "$patch": "replace", "_": {}}),
            r#"{"$patch":"replace","_":{},"b":[1,{"Z":null,"a":true}]}"#,
        );
    }

    #[test]
    fn s4_5_strings_are_escaped_as_go_escapes_them() {
        check(
            &json!("<a> && \u{2028}\u{2029} é \u{7f}"),
            "\"\\u003ca\\u003e \\u0026\\u0026 \\u2028\\u2029 é \u{7f}\"",
        );
        check(
            &json!("\"\\/\n\r\t\u{8}\u{c}\u{1}"),
            r#""\"\\/\n\r\t\b\f\u0001""#,
        );
        check(&json!({"a<b": 1}), r#"{"a\u003cb":1}"#);
    }

    #[test]
    fn s4_5_integers_stay_integers_and_fractions_are_spelled_as_go_spells_them() {
        check(
            &json!([0, -7, i64::MAX, u64::MAX]),
            "[0,-7,9223372036854775807,18446744073709551615]",
        );
        check(
            &json!([1.0, 0.5, 1e21, -1.5e-7, 1e20, 0.0]),
            "[1,0.5,1e+21,-1.5e-7,100000000000000000000,0]",
        );
    }
}
