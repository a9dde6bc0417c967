//! Checks against servers in the test's own process that answer well, badly or not at all.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use kennel_client::fetch::Limits;
use kennel_core::daemonset::event::{CheckAnswer, CheckRequest, Identity};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::{AddressError, BODY_MAX, CheckHost, CheckSettings, Checker, PrometheusUrl};

/// A server that answers each request with the same bytes, and what it was sent.
struct Server {
    address: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Answers with a status and a body.
    async fn new(status: &str, body: &str) -> Self {
        let length = body.len();
        let head = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n");
        Self::raw(format!("{head}connection: close\r\n\r\n{body}")).await
    }

    /// Answers with these bytes; with none it never answers.
    async fn raw(answer: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let requests = Arc::<Mutex<Vec<String>>>::default();
        let received = requests.clone();
        tokio::spawn(async move {
            let mut open = Vec::new();
            while let Ok((mut socket, _)) = listener.accept().await {
                let request = read(&mut socket).await;
                received.lock().unwrap().push(request);
                if answer.is_empty() {
                    open.push(socket);
                } else {
                    // The client may have seen enough and be gone.
                    let _gone = socket.write_all(answer.as_bytes()).await;
                }
            }
        });
        Self { address, requests }
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

/// A request with a body of known length.
async fn read(socket: &mut TcpStream) -> String {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    loop {
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let mut lines = head.lines();
            let length = lines.find_map(|line| line.strip_prefix("content-length: "));
            if length.is_none_or(|length| body.len() >= length.parse().unwrap()) {
                return text;
            }
        }
        let count = socket.read(&mut buffer).await.unwrap();
        assert!(count > 0, "the request ends early: {text}");
        text.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
}

async fn ask(settings: CheckSettings, check: &str) -> CheckAnswer {
    ask_within(settings, check, Duration::from_secs(30)).await
}

async fn ask_within(settings: CheckSettings, check: &str, timeout: Duration) -> CheckAnswer {
    let limits = Limits {
        timeout,
        body: BODY_MAX,
    };
    let daemon_set = Identity {
        namespace: "monitoring".into(),
        name: "agent".into(),
        uid: "u".into(),
    };
    let request = CheckRequest {
        check: check.parse().unwrap(),
        revision: "5d8b".into(),
        state: r#"{"owner":"u","stage":2,"phase":"Baking"}"#.to_owned(),
    };
    let checker = Checker::with_limits(settings, limits);
    checker.ask(&daemon_set, &request).await
}

fn prometheus(server: &Server) -> CheckSettings {
    CheckSettings {
        prometheus: Some(format!("http://{}", server.address).parse().unwrap()),
        hosts: Vec::new(),
    }
}

fn webhooks(host: &str) -> CheckSettings {
    CheckSettings {
        prometheus: None,
        hosts: vec![host.parse().unwrap()],
    }
}

fn inconclusive(answer: CheckAnswer, words: &str) {
    let CheckAnswer::Inconclusive(why) = answer else {
        panic!("{answer:?}");
    };
    assert!(why.contains(words), "{why}");
}

fn success(kind: &str, result: &Value) -> String {
    json!({"status": "success", "data": {"resultType": kind, "result": result}}).to_string()
}

fn series(values: &[&str]) -> String {
    let one = |value: &&str| json!({"metric": {"a": "b"}, "value": [1.5, value]});
    success("vector", &values.iter().map(one).collect())
}

#[tokio::test]
async fn r7_a_number_is_compared() {
    for (body, comparison, passes) in [
        (series(&["0.04"]), "< 0.05", true),
        (series(&["0.05"]), "< 0.05", false),
        (series(&["+Inf"]), "< 0.05", false),
        (series(&["-Inf"]), "< 0.05", true),
        (success("scalar", &json!([1, "3"])), "== 3", true),
    ] {
        let server = Server::new("200 OK", &body).await;
        let check = format!("prometheus errors {comparison}");
        let answer = ask(prometheus(&server), &check).await;
        match answer {
            CheckAnswer::Passed => assert!(passes, "{body}"),
            CheckAnswer::Failed(why) => {
                assert!(!passes, "{body}");
                let ends = format!(", and not {comparison}");
                assert!(
                    why.starts_with("errors is ") && why.ends_with(&ends),
                    "{why}"
                );
            }
            CheckAnswer::Inconclusive(why) => panic!("{why}"),
        }
    }
}

#[tokio::test]
async fn r7_the_query_has_the_names_of_the_rollout() {
    let server = Server::new("200 OK", &series(&["1"])).await;
    let settings = CheckSettings {
        prometheus: Some(format!("http://{}/below/", server.address).parse().unwrap()),
        ..CheckSettings::default()
    };
    let check = r#"prometheus sum(up{n="$namespace",pod=~"$daemonset-.+$",r="$revision"}) + 1 > 0"#;
    assert_eq!(ask(settings, check).await, CheckAnswer::Passed);
    let request = server.requests().remove(0);
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    assert!(
        head.starts_with("POST /below/api/v1/query HTTP/1.1"),
        "{head}"
    );
    let form: Vec<(String, String)> = form_urlencoded::parse(body.as_bytes())
        .into_owned()
        .collect();
    let query = r#"sum(up{n="monitoring",pod=~"agent-.+$",r="5d8b"}) + 1"#;
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    assert_eq!(form, [pair("query", query), pair("timeout", "30000ms")]);
}

#[tokio::test]
async fn r7_an_answer_that_is_not_one_number_is_inconclusive() {
    let error = json!({"status": "error", "errorType": "bad_data", "error": "1:3: parse error"});
    let huge = format!("{{\"status\": \"{}\"}}", "x".repeat(BODY_MAX));
    for (status, body, words) in [
        (
            "200 OK",
            "not JSON".to_owned(),
            "not a Prometheus: expected",
        ),
        ("200 OK", "{}".to_owned(), "missing field `status`"),
        (
            "200 OK",
            json!({"status": "success"}).to_string(),
            "yields a  and",
        ),
        (
            "200 OK",
            series(&[]),
            "yields nothing; append \"or vector(0)\"",
        ),
        ("200 OK", series(&["1", "2"]), "yields 2 series and not one"),
        ("200 OK", series(&["NaN"]), "yields NaN"),
        ("200 OK", series(&["many"]), "\"many\" is not a number"),
        (
            "200 OK",
            success("vector", &json!([{}])),
            "missing field `value`",
        ),
        (
            "200 OK",
            success("matrix", &json!([])),
            "yields a matrix and not",
        ),
        (
            "200 OK",
            success("string", &json!([1, "x"])),
            "yields a string",
        ),
        ("200 OK", huge, "longer than one number can be"),
        (
            "400 Bad Request",
            error.to_string(),
            "evaluate the expression: 1:3: parse error",
        ),
        (
            "500 Internal Server Error",
            "oh\r\n no".to_owned(),
            "with status 500: oh no",
        ),
        ("503 Service Unavailable", String::new(), "with status 503"),
        ("302 Found", String::new(), "with status 302"),
    ] {
        let server = Server::new(status, &body).await;
        inconclusive(ask(prometheus(&server), "prometheus up > 0").await, words);
        assert_eq!(server.requests().len(), 1, "it is asked once: {words}");
    }
}

#[tokio::test]
async fn r7_a_server_that_does_not_answer_is_inconclusive() {
    let silent = Server::raw(String::new()).await;
    let moment = Duration::from_millis(200);
    let answer = ask_within(prometheus(&silent), "prometheus up > 0", moment).await;
    inconclusive(
        answer,
        "Prometheus does not answer: no answer within 0.2 seconds",
    );
    // The head comes, and the body never does.
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n";
    let slow = Server::raw(format!("{head}{{")).await;
    let answer = ask_within(prometheus(&slow), "prometheus up > 0", moment).await;
    inconclusive(answer, "Prometheus does not answer: ");
    let nobody = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap()
    };
    let check = format!("webhook http://{nobody}/");
    let answer = ask(webhooks("127.0.0.1"), &check).await;
    inconclusive(answer, "the webhook does not answer: Connection refused");
    let answer = ask(webhooks("gate.invalid"), "webhook http://gate.invalid/").await;
    inconclusive(answer, "the webhook does not answer: ");
    let broken = Server::raw("not HTTP\r\n\r\n".to_owned()).await;
    let check = format!("webhook http://{}/", broken.address);
    inconclusive(ask(webhooks("127.0.0.1"), &check).await, "invalid HTTP");
    // It speaks no TLS.
    let plain = Server::new("200 OK", "").await;
    let check = format!("webhook https://{}/", plain.address);
    let answer = ask_within(webhooks("127.0.0.1"), &check, moment * 5).await;
    assert!(matches!(answer, CheckAnswer::Inconclusive(_)), "{answer:?}");
}

#[tokio::test]
async fn r7_without_prometheus_url_a_query_is_inconclusive() {
    let answer = ask(CheckSettings::default(), "prometheus up > 0").await;
    inconclusive(answer, "without --prometheus-url");
}

#[tokio::test]
async fn r7_a_webhook_gets_the_state_and_decides_by_its_status() {
    let long = "no ".repeat(BODY_MAX);
    let failed = |why: &str| CheckAnswer::Failed(why.to_owned());
    for (status, body, expected) in [
        ("200 OK", "", CheckAnswer::Passed),
        ("200 OK", &*long, CheckAnswer::Passed),
        ("409 Conflict", "", failed("the webhook says no")),
        (
            "409 Conflict",
            "7 errors\n\tin zone a\u{1b}[1m\n",
            failed("the webhook says no: 7 errors in zone a [1m"),
        ),
    ] {
        let server = Server::new(status, body).await;
        let check = format!("webhook http://{}/gate?x=y", server.address);
        assert_eq!(ask(webhooks("127.0.0.1"), &check).await, expected);
        let request = server.requests().remove(0);
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("POST /gate?x=y HTTP/1.1"), "{head}");
        assert!(head.contains("content-type: application/json"), "{head}");
        let body: Value = serde_json::from_str(body).unwrap();
        let state = json!({"namespace": "monitoring", "daemonset": "agent", "revision": "5d8b",
                           "owner": "u", "stage": 2, "phase": "Baking"});
        assert_eq!(body, state);
    }
    let server = Server::new("409 Conflict", &long).await;
    let check = format!("webhook http://{}/", server.address);
    let CheckAnswer::Failed(why) = ask(webhooks("127.0.0.1"), &check).await else {
        panic!("409 fails");
    };
    assert!(why.chars().count() < 400 && why.ends_with('…'), "{why}");
}

#[tokio::test]
async fn r7_any_other_status_of_a_webhook_is_inconclusive_and_redirects_are_not_followed() {
    let elsewhere = Server::new("200 OK", "").await;
    let location = format!(
        "HTTP/1.1 307 Temporary Redirect\r\nlocation: http://{}/\r\ncontent-length: 0\r\n\r\n",
        elsewhere.address
    );
    let server = Server::raw(location).await;
    let check = format!("webhook http://{}/", server.address);
    let answer = ask(webhooks("127.0.0.1"), &check).await;
    inconclusive(answer, "the webhook answers with status 307");
    assert!(elsewhere.requests().is_empty());
    for status in [
        "201 Created",
        "204 No Content",
        "404 Not Found",
        "429 Too Many Requests",
        "503 Busy",
    ] {
        let server = Server::new(status, "").await;
        let check = format!("webhook http://{}/", server.address);
        let answer = ask(webhooks("127.0.0.1"), &check).await;
        inconclusive(answer, &format!("with status {}", &status[..3]));
        assert_eq!(server.requests().len(), 1, "it is asked once");
    }
}

#[tokio::test]
async fn r7_a_webhook_on_a_host_that_is_not_allowed_is_not_asked() {
    let server = Server::new("200 OK", "").await;
    let check = format!("webhook http://{}/", server.address);
    for settings in [
        CheckSettings::default(),
        webhooks("gate.example.com"),
        webhooks("127.0.0.1:1"),
        webhooks("127.0.0.10"),
    ] {
        let answer = ask(settings, &check).await;
        inconclusive(
            answer,
            "127.0.0.1 is not allowed; whoever runs the controller",
        );
    }
    assert!(server.requests().is_empty());
    let allowed = webhooks(&server.address);
    assert_eq!(ask(allowed, &check).await, CheckAnswer::Passed);
}

#[test]
fn r7_an_allowed_host_is_that_host_and_no_other() {
    let allows = |host: &str, url: &str| {
        let host: CheckHost = host.parse().unwrap();
        host.allows(&url.parse().unwrap())
    };
    assert!(allows("gate.example", "https://Gate.Example/x"));
    assert!(allows("gate.example", "http://gate.example:8080/"));
    assert!(allows("gate.example:443", "https://gate.example/"));
    assert!(allows("gate.example:80", "http://gate.example/"));
    assert!(allows("[::1]:8080", "http://[::1]:8080/"));
    assert!(!allows("gate.example:443", "http://gate.example/"));
    assert!(!allows("gate.example", "https://gate.example.evil/"));
    assert!(!allows("gate.example", "https://evil/gate.example"));
    assert!(!allows("gate.example", "https://gate.example@evil/"));
    assert!(!allows("example", "https://gate.example/"));
}

#[test]
fn flags_that_name_no_server_say_what_is_wrong() {
    for (text, error) in [
        ("", AddressError::Url),
        ("prometheus:9090", AddressError::Scheme),
        ("/metrics", AddressError::Url),
        ("ftp://prometheus", AddressError::Scheme),
        ("http://me:secret@prometheus", AddressError::UserInfo),
        ("http://prometheus/?a=b", AddressError::Query),
    ] {
        assert_eq!(text.parse::<PrometheusUrl>(), Err(error), "{text}");
    }
    for (text, error) in [
        ("", AddressError::Host),
        ("*.example.com", AddressError::Host),
        ("https://gate.example", AddressError::Host),
        ("gate.example:port", AddressError::Host),
        ("gate.example:99999", AddressError::Host),
        ("me@gate.example", AddressError::UserInfo),
    ] {
        assert_eq!(text.parse::<CheckHost>(), Err(error), "{text}");
    }
}
