//! Headers that claim what is not so.

use super::{is_well, jane};
use crate::unauthorized_clients::fixture::{SECRETS, Target, unauthorized};

#[test]
fn credentials_are_given_once() {
    let target = Target::new();
    let twice = [("Authorization", "Bearer a"), ("Authorization", "Bearer b")];
    for who in [target.stranger(), target.admin.clone()] {
        let reply = who.ask_with("GET", SECRETS, &twice, b"");
        assert_eq!(reply.code, 400, "{}", reply.text());
        assert_eq!(reply.json()["reason"], "BadRequest");
    }
    for odd in [
        "Basic YWRtaW46YWRtaW4=",
        "Bearer",
        "Bearer a b",
        "bearer x, Bearer y",
        "Negotiate x",
        "admin",
    ] {
        let headers = [("Authorization", odd)];
        unauthorized(
            &target.stranger().ask_with("GET", SECRETS, &headers, b""),
            odd,
        );
    }
    is_well(&target);
}

#[test]
fn nobody_is_somebody_else_without_the_right_to_be() {
    let target = Target::new();
    let jane = jane(&target);
    let claims: [&[(&str, &str)]; 6] = [
        &[("Impersonate-User", "kennel-admin")],
        &[
            ("Impersonate-User", "x"),
            ("Impersonate-Group", "system:masters"),
        ],
        &[("Impersonate-User", "system:kube-scheduler")],
        &[
            ("impersonate-user", "system:node:n"),
            ("Impersonate-Group", "system:nodes"),
        ],
        &[
            ("Impersonate-User", "jane"),
            ("Impersonate-Extra-Scopes", "all"),
        ],
        &[("Impersonate-User", "jane"), ("Impersonate-Uid", "1")],
    ];
    for claim in claims {
        let reply = jane.ask_with("GET", SECRETS, claim, b"");
        let text = reply.text();
        assert_eq!(reply.code, 403, "{claim:?}: {text}");
        assert!(text.contains("cannot impersonate"), "{claim:?}: {text}");
        // Those without a name cannot take another one either.
        let reply = target.stranger().ask_with("GET", SECRETS, claim, b"");
        assert!(
            matches!(reply.code, 401 | 403),
            "{claim:?}: {}",
            reply.text()
        );
    }
    let twice = [("Impersonate-User", "jane"), ("Impersonate-User", "admin")];
    assert_eq!(target.admin.ask_with("GET", SECRETS, &twice, b"").code, 400);
    is_well(&target);
}

/// What proxies tell each other is not for us.
#[test]
fn headers_of_proxies_mean_nothing() {
    let target = Target::new();
    let jane = jane(&target);
    let usual = jane.ask("GET", SECRETS, b"");
    assert_eq!(usual.code, 403);
    for (name, value) in [
        ("X-Remote-User", "kennel-admin"),
        ("X-Remote-Group", "system:masters"),
        ("X-Forwarded-User", "kennel-admin"),
        ("X-Forwarded-For", "127.0.0.1"),
        ("X-Original-URL", "/api/v1/namespaces/mine/secrets"),
        ("X-Rewrite-URL", "/readyz"),
        ("X-HTTP-Method-Override", "HEAD"),
        ("Forwarded", "for=127.0.0.1"),
        ("X-Client-Cert", "anything"),
    ] {
        let reply = jane.ask_with("GET", SECRETS, &[(name, value)], b"");
        assert_eq!((reply.code, reply.text()), (403, usual.text()), "{name}");
    }
    is_well(&target);
}
