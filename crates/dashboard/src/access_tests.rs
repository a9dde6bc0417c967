//! Tests of [`Access`]: which requests pass.

use http::HeaderName;

use super::*;

fn access() -> Access {
    Access::new(Hosts::loopback("127.0.0.1:6480".parse().unwrap())).unwrap()
}

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let pairs = pairs
        .iter()
        .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(name, value);
    }
    headers
}

fn token(access: &Access) -> String {
    let address = access.address().borrow().clone();
    address.split_once("token=").unwrap().1.to_owned()
}

/// The cookie of a browser that has opened the address.
fn session(access: &Access) -> String {
    let cookie = access.open(&token(access)).unwrap().unwrap();
    cookie.split(';').next().unwrap().to_owned()
}

#[test]
fn a_token_opens_one_session_and_is_replaced() {
    let access = access();
    let mut address = access.address();
    let first = token(&access);
    assert!(access.open("guessed").unwrap().is_none());
    assert!(!address.has_changed().unwrap());
    let cookie = access.open(&first).unwrap().unwrap();
    assert!(cookie.starts_with("kennel_dashboard_6480="));
    assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict"));
    assert!(address.has_changed().unwrap());
    address.mark_unchanged();
    assert!(access.open(&first).unwrap().is_none(), "it works once");
    assert_ne!(token(&access), first);
    assert!(access.open(&token(&access)).unwrap().is_some());
}

#[test]
fn the_api_needs_a_session_of_this_dashboard() {
    let access = access();
    let check = |cookie: Option<&str>, expected: Result<(), &'static str>| {
        let headers = headers(
            &cookie
                .map(|c| ("cookie", c))
                .into_iter()
                .collect::<Vec<_>>(),
        );
        let found = access.check_api(&Method::GET, &headers);
        assert_eq!(
            found.map_err(|failure| failure.code),
            expected,
            "{cookie:?}"
        );
    };
    check(None, Err("NoSession"));
    check(Some("kennel_dashboard_6480=guessed"), Err("NoSession"));
    check(Some("kennel_dashboard_6480="), Err("NoSession"));
    let own = session(&access);
    check(Some(&own), Ok(()));
    check(Some(&format!("other=1; {own}; more=2")), Ok(()));
    let renamed = own.replace("6480", "6481");
    check(Some(&renamed), Err("NoSession"));
    check(Some(&token(&access)), Err("NoSession"));
}

#[test]
fn the_oldest_of_too_many_sessions_ends() {
    let access = access();
    let first = session(&access);
    let rest: Vec<String> = (0..SESSIONS_MAX).map(|_| session(&access)).collect();
    let has = |cookie: &str| access.has_session(&headers(&[("cookie", cookie)]));
    assert!(!has(&first));
    assert!(rest.iter().all(|cookie| has(cookie)));
}

#[test]
fn requests_of_other_origins_are_refused_whatever_cookie_they_carry() {
    const OWN: &str = "http://127.0.0.1:6480";
    let access = access();
    let cookie = session(&access);
    let check = |method: Method, pairs: &[(&'static str, &str)], passes: bool| {
        let mut pairs = pairs.to_vec();
        pairs.push(("cookie", &cookie));
        let found = access.check_api(&method, &headers(&pairs));
        let expected = if passes { Ok(()) } else { Err("WrongOrigin") };
        assert_eq!(
            found.map_err(|failure| failure.code),
            expected,
            "{method} {pairs:?}"
        );
    };
    let (get, post) = (|| Method::GET, || Method::POST);
    check(get(), &[("sec-fetch-site", "same-origin")], true);
    // Another port of this machine is the same site, and its pages' requests carry the cookie.
    check(get(), &[("sec-fetch-site", "same-site")], false);
    check(get(), &[("sec-fetch-site", "cross-site")], false);
    check(get(), &[("sec-fetch-site", "none")], false);
    check(
        get(),
        &[
            ("sec-fetch-site", "same-origin"),
            ("sec-fetch-site", "none"),
        ],
        false,
    );
    check(get(), &[("origin", "http://127.0.0.1:8000")], false);
    check(get(), &[("origin", "null")], false);
    check(get(), &[], true);
    check(
        post(),
        &[("origin", OWN), ("sec-fetch-site", "same-origin")],
        true,
    );
    check(post(), &[("origin", OWN)], true);
    check(post(), &[("sec-fetch-site", "same-origin")], false);
    check(post(), &[], false);
    check(post(), &[("origin", "https://127.0.0.1:6480")], false);
    check(post(), &[("origin", "http://attacker.example")], false);
    check(
        post(),
        &[("origin", OWN), ("sec-fetch-site", "cross-site")],
        false,
    );
}

#[test]
fn names_that_point_here_are_refused() {
    let access = access();
    let check = |pairs: &[(&'static str, &str)], passes: bool| {
        let found = access.check_host(&headers(pairs));
        let expected = if passes { Ok(()) } else { Err("WrongHost") };
        assert_eq!(found.map_err(|failure| failure.code), expected, "{pairs:?}");
    };
    check(&[("host", "127.0.0.1:6480")], true);
    check(&[("host", "localhost:6480")], true);
    check(&[("host", "attacker.example:6480")], false);
    check(
        &[("host", "127.0.0.1:6480"), ("host", "attacker.example")],
        false,
    );
    check(&[], false);
}

#[test]
fn links_lead_to_the_document_and_not_to_its_files() {
    let check = |site: &str, is_document: bool, passes: bool| {
        let found = Access::check_file(&headers(&[("sec-fetch-site", site)]), is_document);
        assert_eq!(found.is_ok(), passes, "{site} {is_document}");
    };
    check("cross-site", true, true);
    check("none", true, true);
    check("same-origin", false, true);
    check("none", false, true);
    check("cross-site", false, false);
    check("same-site", false, false);
}
