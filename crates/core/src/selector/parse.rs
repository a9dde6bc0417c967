//! The grammar of label selectors in query strings, with upstream's messages.

use super::lexer::{Item, Token, scan};
use super::{Operator, Requirement, SelectorError, rules};

const BINARY_OPERATORS: &str = "in, notin, =, ==, !=, gt, lt";

/// The requirements of a query string, in the order written.
pub(super) fn parse(text: &str) -> Result<Vec<Requirement>, SelectorError> {
    Parser {
        items: scan(text),
        position: 0,
    }
    .requirements()
}

struct Parser {
    items: Vec<Item>,
    position: usize,
}

fn error<T>(found: &str, expected: &str) -> Result<T, SelectorError> {
    Err(SelectorError(format!(
        "found '{found}', expected: {expected}"
    )))
}

/// Where a key or value is expected, `in` and `notin` are ordinary words.
fn as_value(token: Token) -> Token {
    match token {
        Token::In | Token::NotIn => Token::Identifier,
        other => other,
    }
}

impl Parser {
    /// The next item; past the end, the end again.
    fn item(&self) -> &Item {
        let last = self.items.len() - 1;
        &self.items[self.position.min(last)]
    }

    fn peek(&self) -> Token {
        as_value(self.item().token)
    }

    fn take(&mut self) -> Item {
        let mut item = self.take_operator();
        item.token = as_value(item.token);
        item
    }

    fn take_operator(&mut self) -> Item {
        let item = self.item().clone();
        self.position += 1;
        item
    }

    fn requirements(&mut self) -> Result<Vec<Requirement>, SelectorError> {
        let mut found = Vec::new();
        loop {
            match self.peek() {
                Token::Identifier | Token::Not => {}
                Token::End => return Ok(found),
                _ => {
                    let literal = &self.item().literal;
                    return error(literal, "!, identifier, or 'end of string'");
                }
            }
            found.push(self.requirement().map_err(|SelectorError(why)| {
                SelectorError(format!("unable to parse requirement: {why}"))
            })?);
            let next = self.take();
            match next.token {
                Token::End => return Ok(found),
                Token::Comma if matches!(self.peek(), Token::Identifier | Token::Not) => {}
                Token::Comma => return error(&self.item().literal, "identifier after ','"),
                _ => return error(&next.literal, "',' or 'end of string'"),
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, SelectorError> {
        let mut item = self.take();
        let negated = item.token == Token::Not;
        if negated {
            item = self.take();
        }
        if item.token != Token::Identifier {
            return error(&item.literal, "identifier");
        }
        let key = item.literal;
        rules::check_key(&key, "<nil>")?;
        if negated {
            return Requirement::new(&key, Operator::DoesNotExist, []);
        }
        if matches!(self.peek(), Token::End | Token::Comma) {
            return Requirement::new(&key, Operator::Exists, []);
        }
        let operator = self.operator()?;
        let values = match operator {
            Operator::In | Operator::NotIn => self.values()?,
            _ => vec![self.exact_value()?],
        };
        Requirement::new(&key, operator, values)
    }

    fn operator(&mut self) -> Result<Operator, SelectorError> {
        let item = self.take_operator();
        Ok(match item.token {
            Token::In => Operator::In,
            Token::NotIn => Operator::NotIn,
            Token::Equals => Operator::Equals,
            Token::DoubleEquals => Operator::DoubleEquals,
            Token::NotEquals => Operator::NotEquals,
            Token::GreaterThan => Operator::GreaterThan,
            Token::LessThan => Operator::LessThan,
            _ => return error(&item.literal, BINARY_OPERATORS),
        })
    }

    fn exact_value(&mut self) -> Result<String, SelectorError> {
        if matches!(self.peek(), Token::End | Token::Comma) {
            return Ok(String::new());
        }
        let item = self.take();
        match item.token {
            Token::Identifier => Ok(item.literal),
            _ => error(&item.literal, "identifier"),
        }
    }

    /// `(a,b)`; a missing word between commas is the empty value.
    fn values(&mut self) -> Result<Vec<String>, SelectorError> {
        let open = self.take();
        if open.token != Token::OpenPar {
            return Err(SelectorError(format!(
                "found '{}' expected: '('",
                open.literal
            )));
        }
        match self.peek() {
            Token::Identifier | Token::Comma => {}
            Token::ClosedPar => {
                self.take();
                return Ok(Vec::new());
            }
            _ => return error(&self.item().literal, "',', ')' or identifier"),
        }
        self.value_list()
    }

    fn value_list(&mut self) -> Result<Vec<String>, SelectorError> {
        let mut values = Vec::new();
        let mut expect_word = true;
        loop {
            let item = self.take();
            match item.token {
                Token::Identifier if expect_word => {
                    values.push(item.literal);
                    expect_word = false;
                }
                Token::Comma if expect_word => values.push(String::new()),
                Token::Comma => expect_word = true,
                Token::ClosedPar => {
                    if expect_word {
                        values.push(String::new());
                    }
                    return Ok(values);
                }
                _ if expect_word => return error(&item.literal, "',', or identifier"),
                _ => return error(&item.literal, "',' or ')'"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::selector::Selector;

    fn check(text: &str, printed: &str) {
        let selector = Selector::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(selector.to_string(), printed, "{text}");
    }

    #[test]
    fn what_is_understood_prints_in_one_form() {
        check("", "");
        check("  ", "");
        check("x=a", "x=a");
        check(" b = 2 , a == 1 ", "a==1,b=2");
        check("x!=a", "x!=a");
        check("x=", "x=");
        check("x=,y", "x=,y");
        check("x in (b,a,b)", "x in (a,b)");
        check("x notin ( a )", "x notin (a)");
        check("x in (,a)", "x in (,a)");
        check("x in (a,)", "x in (,a)");
        check("x in (,)", "x in ()");
        check("!x,y", "!x,y");
        check("in in (in,notin)", "in in (in,notin)");
        check("n>1,m<2", "m<2,n>1");
        check("example.com/app=web", "example.com/app=web");
    }

    fn refused(text: &str, message: &str) {
        let why = Selector::parse(text).unwrap_err().to_string();
        assert_eq!(why, message, "{text}");
    }

    #[test]
    fn what_is_not_understood_is_refused_in_upstream_words() {
        refused(
            ",",
            "found ',', expected: !, identifier, or 'end of string'",
        );
        refused("x=a,", "found '', expected: identifier after ','");
        refused("x=a b", "found 'b', expected: ',' or 'end of string'");
        refused(
            "x y",
            "unable to parse requirement: found 'y', expected: in, notin, =, ==, !=, gt, lt",
        );
        refused(
            "x=(",
            "unable to parse requirement: found '(', expected: identifier",
        );
        refused(
            "!",
            "unable to parse requirement: found '', expected: identifier",
        );
        refused(
            "x in a",
            "unable to parse requirement: found 'a' expected: '('",
        );
        refused(
            "x in (a b)",
            "unable to parse requirement: found 'b', expected: ',' or ')'",
        );
        refused(
            "x in (",
            "unable to parse requirement: found '', expected: ',', ')' or identifier",
        );
        refused(
            "x in ()",
            "unable to parse requirement: values: Invalid value: []: for 'in', 'notin' operators, \
             values set can't be empty",
        );
        refused(
            "x>a",
            "unable to parse requirement: values[0]: Invalid value: \"a\": for 'Gt', 'Lt' \
             operators, the value must be an integer",
        );
    }

    #[test]
    fn keys_and_values_obey_the_rules_for_labels() {
        refused(
            "-x",
            "unable to parse requirement: <nil>: Invalid value: \"-x\": name part must consist of \
             alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
             character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
             '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        );
        refused(
            "x=a/b",
            "unable to parse requirement: values[0][x]: Invalid value: \"a/b\": a valid label must \
             be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
             start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or \
             '12345', regex used for validation is \
             '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
        );
    }
}
