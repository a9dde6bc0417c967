//! Splits the query string of a label selector into tokens.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    ClosedPar,
    Comma,
    Not,
    DoubleEquals,
    Equals,
    GreaterThan,
    Identifier,
    In,
    LessThan,
    NotEquals,
    NotIn,
    OpenPar,
    End,
}

/// A token and the text it stood for, as error messages show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) token: Token,
    pub(super) literal: String,
}

/// All tokens of the text; the last one is always [`Token::End`].
pub(super) fn scan(text: &str) -> Vec<Item> {
    let mut items = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\r', '\n']);
        let Some(first) = rest.chars().next() else {
            break;
        };
        let (item, used) = if is_special(first) {
            special(rest)
        } else {
            word(rest)
        };
        items.push(item);
        rest = &rest[used..];
    }
    items.push(Item {
        token: Token::End,
        literal: String::new(),
    });
    items
}

fn is_special(c: char) -> bool {
    matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<')
}

fn keyword(text: &str) -> Option<Token> {
    Some(match text {
        ")" => Token::ClosedPar,
        "," => Token::Comma,
        "!" => Token::Not,
        "==" => Token::DoubleEquals,
        "=" => Token::Equals,
        ">" => Token::GreaterThan,
        "in" => Token::In,
        "<" => Token::LessThan,
        "!=" => Token::NotEquals,
        "notin" => Token::NotIn,
        "(" => Token::OpenPar,
        _ => return None,
    })
}

/// The longest run of symbols that is a token: `==` before `=`. Symbols are one byte each.
fn special(rest: &str) -> (Item, usize) {
    let longest = [2, 1].into_iter().find_map(|length| {
        let symbols = rest.get(..length)?;
        Some((keyword(symbols)?, symbols)).filter(|_| symbols.chars().all(is_special))
    });
    let (token, symbols) = longest.expect("every symbol alone is a token");
    let literal = symbols.to_owned();
    (Item { token, literal }, symbols.len())
}

fn word(rest: &str) -> (Item, usize) {
    let end = rest
        .find(|c| is_special(c) || matches!(c, ' ' | '\t' | '\r' | '\n'))
        .unwrap_or(rest.len());
    let literal = rest[..end].to_owned();
    let token = keyword(&literal).unwrap_or(Token::Identifier);
    (Item { token, literal }, end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_taken_as_long_as_they_go() {
        let tokens: Vec<Token> = scan("a==b!=(c),!d<1").iter().map(|i| i.token).collect();
        let word = Token::Identifier;
        assert_eq!(
            tokens,
            [
                word,
                Token::DoubleEquals,
                word,
                Token::NotEquals,
                Token::OpenPar,
                word,
                Token::ClosedPar,
                Token::Comma,
                Token::Not,
                word,
                Token::LessThan,
                word,
                Token::End
            ]
        );
    }
}
