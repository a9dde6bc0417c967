//! Values as Go writes them: quoted strings (`%q`), any value (`%v`, `%#v`), type names, and [`json`].

pub mod json;

use std::fmt::Write as _;

use serde_json::Value;

/// A string as Go's `%q` shows it.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        push_quoted(&mut out, c, '"');
    }
    out.push('"');
    out
}

/// A character as Go's `%q` shows it, in single quotes.
pub fn quote_char(c: char) -> String {
    let mut out = String::from('\'');
    push_quoted(&mut out, c, '\'');
    out.push('\'');
    out
}

fn push_quoted(out: &mut String, c: char, around: char) {
    match c {
        '\u{7}' => out.push_str("\\a"),
        '\u{8}' => out.push_str("\\b"),
        '\u{c}' => out.push_str("\\f"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\u{b}' => out.push_str("\\v"),
        '\\' => out.push_str("\\\\"),
        c if c == around => out.extend(['\\', c]),
        c if c.is_ascii_control() => push_hex(out, "\\x", u32::from(c), 2),
        c if c.is_control() => push_hex(out, "\\u", u32::from(c), 4),
        c => out.push(c),
    }
}

fn push_hex(out: &mut String, prefix: &str, code: u32, width: usize) {
    write!(out, "{prefix}{code:0width$x}").expect("writing to a String does not fail");
}

/// A tree as Go's `%v` shows it: `map[image:x ports:[1 2]]`.
pub fn show(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(show).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(members) => {
            let members = members
                .iter()
                .map(|(key, value)| format!("{key}:{}", show(value)));
            format!("map[{}]", members.collect::<Vec<_>>().join(" "))
        }
        other => other.to_string(),
    }
}

/// Any value as `%#v` shows it. `key` is the type of the keys of maps: `string`, or `interface {}`.
pub fn literal(value: &Value, key: &str) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::String(text) => quote(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| literal(item, key)).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(members) => {
            let members = members.iter();
            let members =
                members.map(|(name, value)| format!("{}:{}", quote(name), literal(value, key)));
            let members = members.collect::<Vec<_>>().join(", ");
            format!("map[{key}]interface {{}}{{{members}}}")
        }
        other => other.to_string(),
    }
}

/// The Go type of a value in an `interface{}` tree.
pub fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// Go's decoder names a JSON value of the wrong type so.
pub fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn strings_are_quoted_as_go_quotes_them() {
        assert_eq!(quote("a\"b\\c\n\u{1}é"), r#""a\"b\\c\n\x01é""#);
        assert_eq!(quote("\u{85}"), r#""\u0085""#);
        assert_eq!(quote_char('\''), r"'\''");
        assert_eq!(quote_char('"'), "'\"'");
    }

    #[test]
    fn trees_are_shown_as_go_shows_them() {
        let tree = json!({"b": [1, "x", null], "a": {"c": true}});
        assert_eq!(show(&tree), "map[a:map[c:true] b:[1 x <nil>]]");
    }
}
