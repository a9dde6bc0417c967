//! Expands `$(NAME)` in commands, arguments, variables and paths.

/// Replaces each `$(NAME)` that `find` knows. `$$` becomes `$`; unknown references stay as they are.
pub(in crate::inputs) fn expand(text: &str, find: impl Fn(&str) -> Option<String>) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        result.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            result.push('$');
            rest = after;
            continue;
        }
        let inner = rest.strip_prefix('(');
        let name = inner.and_then(|inner| inner.split_once(')'));
        let Some((name, after)) = name else {
            // A lone dollar or an unterminated reference stays as it is.
            result.push('$');
            continue;
        };
        if let Some(value) = find(name) {
            result.push_str(&value);
        } else {
            result.push_str("$(");
            result.push_str(name);
            result.push(')');
        }
        rest = after;
    }
    result.push_str(rest);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_replaced_and_dollars_escaped() {
        let check = |text: &str, expected: &str| {
            let find = |name: &str| match name {
                "A" => Some("1".to_owned()),
                "B" => Some("$(A)".to_owned()),
                "EMPTY" => Some(String::new()),
                _ => None,
            };
            assert_eq!(expand(text, find), expected, "{text}");
        };
        check("plain", "plain");
        check("$(A)", "1");
        check("x-$(A)$(A)-y", "x-11-y");
        check("$$(A)", "$(A)");
        check("$$$(A)", "$1");
        check("$(UNKNOWN)/$(A)", "$(UNKNOWN)/1");
        check("$(EMPTY)", "");
        check("$(B)", "$(A)");
        check("100$", "100$");
        check("$A $(A", "$A $(A");
        check("$(", "$(");
        check("$()", "$()");
        check("a$$", "a$");
        check("$ä$(A)", "$ä1");
    }
}
