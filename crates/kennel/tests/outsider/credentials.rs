//! Bad credentials of every kind: all get the same 401.

use crate::common::{SECRETS, Target, unauthorized};

#[test]
fn no_credentials() {
    let target = Target::new();
    unauthorized(&target.stranger().ask("GET", SECRETS, b""));
    unauthorized(&target.stranger().ask("GET", "/api", b""));
    for open in ["/healthz", "/livez", "/readyz", "/version"] {
        assert_eq!(target.stranger().ask("GET", open, b"").code, 200, "{open}");
    }
}

#[test]
fn tokens_of_nobody() {
    let target = Target::new();
    for token in ["", "x", "a.b.c", "abcdef.0123456789abcdef", "Bearer"] {
        unauthorized(&target.with_token(token));
    }
}
