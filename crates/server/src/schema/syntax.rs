//! Syntax errors of JSON in the words of Go's scanner. Called only after decoding has failed, so it
//! need not be fast.

use std::fmt;

use super::go;

/// The first syntax error. `None` if the text is well-formed and was refused for another reason.
pub(super) fn first_error(bytes: &[u8]) -> Option<SyntaxError> {
    Scanner { bytes, at: 0 }.document().err()
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct SyntaxError {
    /// `None` if the text ends too early.
    byte: Option<u8>,
    context: String,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.byte {
            None => f.write_str("unexpected end of JSON input"),
            Some(byte) => {
                let shown = go::quote_char(char::from(byte));
                write!(f, "invalid character {shown} {}", self.context)
            }
        }
    }
}

type Scanned = Result<(), SyntaxError>;

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Container {
    Object,
    Array,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn error(&self, context: &str) -> Scanned {
        Err(SyntaxError {
            byte: self.peek(),
            context: context.to_owned(),
        })
    }

    fn skip_blanks(&mut self) -> Option<u8> {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
        self.peek()
    }

    /// Uses an explicit stack, so that deep nesting cannot overflow the thread's.
    fn document(&mut self) -> Scanned {
        let mut stack = Vec::new();
        loop {
            // One value, or the opening of one.
            match self.skip_blanks() {
                Some(b'{') => {
                    self.at += 1;
                    if self.skip_blanks() != Some(b'}') {
                        self.key()?;
                        stack.push(Container::Object);
                        continue;
                    }
                    self.at += 1;
                }
                Some(b'[') => {
                    self.at += 1;
                    if self.skip_blanks() != Some(b']') {
                        stack.push(Container::Array);
                        continue;
                    }
                    self.at += 1;
                }
                _ => self.scalar()?,
            }
            if self.close(&mut stack)? {
                return Ok(());
            }
        }
    }

    /// After a value: pops the containers that end here. Returns whether the document ends, too.
    fn close(&mut self, stack: &mut Vec<Container>) -> Result<bool, SyntaxError> {
        loop {
            let next = self.skip_blanks();
            match (stack.last(), next) {
                (None, None) => return Ok(true),
                (None, Some(_)) => self.error("after top-level value")?,
                (Some(Container::Object), Some(b'}')) | (Some(Container::Array), Some(b']')) => {
                    self.at += 1;
                    stack.pop();
                }
                (Some(container), Some(b',')) => {
                    self.at += 1;
                    if *container == Container::Object {
                        self.skip_blanks();
                        self.key()?;
                    }
                    return Ok(false);
                }
                (Some(Container::Object), _) => self.error("after object key:value pair")?,
                (Some(Container::Array), _) => self.error("after array element")?,
            }
        }
    }

    fn key(&mut self) -> Scanned {
        if self.peek() != Some(b'"') {
            return self.error("looking for beginning of object key string");
        }
        self.string()?;
        if self.skip_blanks() != Some(b':') {
            return self.error("after object key");
        }
        self.at += 1;
        Ok(())
    }

    fn scalar(&mut self) -> Scanned {
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.literal("true"),
            Some(b'f') => self.literal("false"),
            Some(b'n') => self.literal("null"),
            _ => self.error("looking for beginning of value"),
        }
    }

    fn literal(&mut self, word: &str) -> Scanned {
        for expected in word.bytes() {
            if self.peek() != Some(expected) {
                let expected = char::from(expected);
                return self.error(&format!("in literal {word} (expecting '{expected}')"));
            }
            self.at += 1;
        }
        Ok(())
    }

    fn string(&mut self) -> Scanned {
        self.at += 1;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    self.at += 1;
                    self.escape()?;
                }
                None | Some(..0x20) => return self.error("in string literal"),
                Some(_) => self.at += 1,
            }
        }
    }

    fn escape(&mut self) -> Scanned {
        match self.peek() {
            Some(b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"') => self.at += 1,
            Some(b'u') => {
                self.at += 1;
                for _ in 0..4 {
                    if !self.peek().is_some_and(|b| b.is_ascii_hexdigit()) {
                        return self.error("in \\u hexadecimal character escape");
                    }
                    self.at += 1;
                }
            }
            _ => return self.error("in string escape code"),
        }
        Ok(())
    }

    fn number(&mut self) -> Scanned {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            _ => self.digits("in numeric literal")?,
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits("after decimal point in numeric literal")?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits("in exponent of numeric literal")?;
        }
        Ok(())
    }

    fn digits(&mut self, context: &str) -> Scanned {
        if !self.peek().is_some_and(|b| b.is_ascii_digit()) {
            return self.error(context);
        }
        while self.peek().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_worded_as_go_words_them() {
        for (text, expected) in [
            ("", "unexpected end of JSON input"),
            ("  ", "unexpected end of JSON input"),
            ("{\"a\": 1", "unexpected end of JSON input"),
            ("\"abc", "unexpected end of JSON input"),
            ("tru", "unexpected end of JSON input"),
            (
                "kind: Pod",
                "invalid character 'k' looking for beginning of value",
            ),
            (
                "{'a': 1}",
                r"invalid character '\'' looking for beginning of object key string",
            ),
            (
                "{\"a\": 1,}",
                "invalid character '}' looking for beginning of object key string",
            ),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            (
                "{\"a\": 1 \"b\": 2}",
                "invalid character '\"' after object key:value pair",
            ),
            ("[1 2]", "invalid character '2' after array element"),
            (
                "[1,]",
                "invalid character ']' looking for beginning of value",
            ),
            ("{} x", "invalid character 'x' after top-level value"),
            (
                "trud",
                "invalid character 'd' in literal true (expecting 'e')",
            ),
            ("\"a\nb\"", r"invalid character '\n' in string literal"),
            (r#""\x""#, "invalid character 'x' in string escape code"),
            (
                r#""\u00g0""#,
                r"invalid character 'g' in \u hexadecimal character escape",
            ),
            ("-x", "invalid character 'x' in numeric literal"),
            (
                "1.x",
                "invalid character 'x' after decimal point in numeric literal",
            ),
            (
                "1ex",
                "invalid character 'x' in exponent of numeric literal",
            ),
            ("01", "invalid character '1' after top-level value"),
        ] {
            let error = first_error(text.as_bytes()).map(|error| error.to_string());
            assert_eq!(error.as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn well_formed_texts_are_not_explained() {
        for text in [
            "{}",
            " [ ] ",
            "[{\"a\": [1, -0.5e+3, true]}, \"\\u00e9\\n\"]",
            "null",
        ] {
            assert_eq!(first_error(text.as_bytes()), None, "{text}");
        }
    }
}
