//! What tokens may be used for, as tables.

use super::*;

fn limits(entries: &[(&str, &str)]) -> TokenLimits {
    TokenLimits::read(|key| {
        let mut entries = entries.iter();
        let found = entries.find(|(own, _)| *own == key);
        found.map(|(_, value)| (*value).to_owned())
    })
}

const FREE: Joining<'_> = Joining {
    node: "n1",
    key: "k",
    exists: false,
    revoked: None,
    claim: Standing::Free,
};

/// `expected`: whether it revokes and whether it counts.
#[track_caller]
fn check(entries: &[(&str, &str)], joining: Joining<'_>, expected: Result<(bool, bool), &str>) {
    match (limits(entries).verdict(joining), expected) {
        (Verdict::Approve { revokes, counts }, Ok(expected)) => {
            assert_eq!((revokes, counts), expected, "{entries:?} {joining:?}");
        }
        (Verdict::Deny(why), Err(words)) => assert!(why.contains(words), "{why}"),
        (verdict, expected) => panic!("{verdict:?} instead of {expected:?}"),
    }
}

const EXISTING: Joining<'_> = Joining {
    exists: true,
    ..FREE
};

#[test]
fn a_token_makes_new_nodes_only() {
    let exists = Err("node n1 exists");
    check(&[], FREE, Ok((false, false)));
    check(&[], EXISTING, exists);
    check(&[("uses", "5")], EXISTING, exists);
    // Naming a node alone does not allow to replace it, nor does the right to replace without a name.
    check(&[("node", "n1")], EXISTING, exists);
    check(&[("replace", "true")], EXISTING, exists);
    // Nor does an earlier use.
    check(&[("uses", "1"), ("used-by", "n1=k@1000")], EXISTING, exists);
}

#[test]
fn uses_are_counted_by_node_and_key() {
    let once = ("uses", "1");
    check(&[once], FREE, Ok((false, true)));
    check(&[once, ("used-by", "n2=x@5")], FREE, Err("used once"));
    check(&[once, ("used-by", "n1=x@5")], FREE, Err("another machine"));
    check(
        &[("uses", "2"), ("used-by", "n2=x@5")],
        FREE,
        Ok((false, true)),
    );
    check(&[("uses", "many")], FREE, Err("as often as"));
    let token = limits(&[("uses", "3"), ("used-by", "a=1,b=2@5")]);
    assert_eq!(token.uses_left(), Some(1));
    let used_by = token.used_by_with("c", "3", Timestamp::from_secs(7));
    assert_eq!(used_by, "a=1@0,b=2@5,c=3@7");
    assert_eq!(limits(&[]).uses_left(), None);
}

#[test]
fn the_same_machine_asks_again_until_its_certificates_are_revoked() {
    let revoked = |seconds: i64| Joining {
        revoked: Some(Timestamp::from_secs(seconds)),
        ..FREE
    };
    let used = [("uses", "1"), ("used-by", "n1=k@1000")];
    check(&used, FREE, Ok((false, false)));
    check(&used, revoked(1000), Ok((false, false)));
    check(&used, revoked(1001), Err("revoked since"));
    // A use that an earlier version has recorded may be older than any revocation.
    let used = [("uses", "1"), ("used-by", "n1=k")];
    check(&used, FREE, Ok((false, false)));
    check(&used, revoked(1), Err("revoked since"));
}

#[test]
fn a_name_that_another_machine_has_just_got_is_taken() {
    let claim = |claim: Standing| Joining { claim, ..FREE };
    for limits in [&[][..], &[("uses", "1")]] {
        let counts = !limits.is_empty();
        check(
            limits,
            claim(Standing::Taken),
            Err("another machine has just got"),
        );
        check(limits, claim(Standing::Own), Ok((false, counts)));
        check(limits, claim(Standing::Abandoned), Ok((true, counts)));
    }
    let replacing = [("node", "n1"), ("replace", "true"), ("uses", "1")];
    check(&replacing, claim(Standing::Taken), Ok((true, true)));
    // The use is recorded again, because it must not be older than the revocation.
    let used = [("uses", "1"), ("used-by", "n1=k@1000")];
    check(&used, claim(Standing::Abandoned), Ok((true, true)));
    check(
        &used,
        claim(Standing::Taken),
        Err("another machine has just got"),
    );
}

#[test]
fn a_token_that_replaces_a_node_is_for_that_node() {
    let token = [("node", "n1"), ("replace", "true"), ("uses", "1")];
    let other = Joining { node: "n2", ..FREE };
    check(&token, other, Err("for node n1 only"));
    check(&token, FREE, Ok((false, true)));
    check(&token, EXISTING, Ok((true, true)));
    let used = [&token[..], &[("used-by", "n1=k@1000")]].concat();
    check(&used, EXISTING, Ok((false, false)));
}
