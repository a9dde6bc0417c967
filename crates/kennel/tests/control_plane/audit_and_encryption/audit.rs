//! The audit log: a line for every change that was asked for, whatever became of it.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use kennel_testkit::{Access, Deadline, eventually};
use serde_json::{Value, json};

use crate::audit_and_encryption::fixture::{
    CONFIGMAPS, Fixture, KENNEL, NOWHERE, SECRETS, holding,
};

fn log_of(server: &Fixture) -> PathBuf {
    server.kennel.data_dir().join("audit/audit.log")
}

/// The lines of a log, each of which must be an event.
fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    // What comes after the last newline is being written.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let parsed = whole.lines().map(|line| {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"));
        assert_eq!(line["apiVersion"], "audit.k8s.io/v1");
        line
    });
    parsed.collect()
}

/// Waits for the line with this id.
fn line(path: &Path, id: &str) -> Value {
    eventually(Deadline::seconds(10), || {
        let found = lines(path).into_iter().find(|line| line["auditID"] == id);
        found.ok_or("no such line yet")
    })
}

#[test]
fn every_change_has_a_line_whatever_became_of_it() {
    let server = Fixture::started(&[]);
    let (admin, log) = (&server.admin, log_of(&server));
    let stranger = &Access::stranger(server.kennel.address(), &server.kennel.data_dir());
    let small = json!({"metadata": {"name": "seen"}})
        .to_string()
        .into_bytes();
    let (huge, one) = (vec![b' '; 4 << 20], format!("{CONFIGMAPS}/seen"));
    let none: &[u8] = b"";
    let check =
        |who: &Access, token: &str, asked: (&str, &str, &[u8]), expected: (u16, &str, &str)| {
            let (method, path, body) = asked;
            let reply = match token {
                "" => who.ask(method, path, body),
                token => who.ask_with(method, path, &[("Authorization", token)], body),
            };
            let line = line(&log, reply.header("audit-id").expect("changes are named"));
            let (code, verb, user) = expected;
            assert_eq!(reply.code, code, "{}", reply.text());
            assert_eq!(line["responseStatus"]["code"], code, "{line}");
            assert_eq!(line["verb"], verb, "{line}");
            assert_eq!(line["user"]["username"].as_str().unwrap_or_default(), user);
            assert_eq!(line["sourceIPs"], json!(["127.0.0.1"]), "{line}");
            reply
        };
    let me = "kennel-admin";
    let made = check(admin, "", ("POST", CONFIGMAPS, &small), (201, "create", me));
    check(admin, "", ("POST", CONFIGMAPS, &small), (409, "create", me));
    check(admin, "", ("POST", CONFIGMAPS, &huge), (413, "create", me));
    check(admin, "", ("DELETE", &one, none), (200, "delete", me));
    check(
        admin,
        "",
        ("DELETE", CONFIGMAPS, none),
        (200, "deletecollection", me),
    );
    check(admin, "", ("PUT", "/nothing", none), (404, "put", me));
    check(
        stranger,
        "",
        ("DELETE", &one, none),
        (401, "delete", "system:anonymous"),
    );
    check(
        stranger,
        "Bearer x",
        ("DELETE", &one, none),
        (401, "delete", ""),
    );
    assert_eq!(admin.ask("GET", &one, b"").header("audit-id"), None);
    let all = lines(&log);
    assert_eq!(all.len(), 8, "reads leave no lines: {all:?}");
    let uid = &made.json()["metadata"]["uid"];
    let first = json!({"resource": "configmaps", "namespace": "default", "name": "seen",
        "apiVersion": "v1", "uid": uid});
    assert_eq!(all[0]["objectRef"], first);
    assert_eq!(all[1]["responseStatus"]["reason"], "AlreadyExists");
}

#[test]
fn secrets_are_never_in_it() {
    let server = Fixture::started(&[]);
    let (plain, encoded) = ("hunter2-is-my-password", "aHVudGVyMi1pcy1teS1wYXNzd29yZA==");
    let secret = json!({"metadata": {"name": "s"}, "stringData": {"k": plain}});
    assert_eq!(server.post(SECRETS, &secret).code, 201);
    assert_eq!(server.post(SECRETS, &secret).code, 409);
    let one = format!("{SECRETS}/s");
    let change = json!({"data": {"other": encoded}, "stringData": {"third": plain}});
    assert_eq!(server.patch(&one, &change).code, 200);
    // A refusal whose words quote what was sent.
    let quoted = json!({"metadata": {"name": "t"}, "type": plain, "data": {"k": plain}});
    assert!(server.post(SECRETS, &quoted).code >= 400);
    let tokens = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let made = server.post(tokens, &json!({"spec": {}}));
    let token = made.json()["status"]["token"].as_str().unwrap().to_owned();
    let review = json!({"spec": {"token": token}});
    server.post("/apis/authentication.k8s.io/v1/tokenreviews", &review);
    let bearer = format!("Bearer {token}");
    let headers = [("Authorization", bearer.as_str())];
    let last = server.admin.ask_with("DELETE", &one, &headers, b"");
    line(&log_of(&server), last.header("audit-id").unwrap());
    let audit = server.kennel.data_dir().join("audit");
    let signature = token.rsplit('.').next().unwrap();
    for needle in [plain, encoded, signature, "Bearer"] {
        assert_eq!(holding(&audit, needle), NOWHERE, "{needle}");
    }
    assert_eq!(holding(&audit, "\"secrets\"").len(), 1);
}

#[test]
fn it_rotates_within_its_bounds() {
    let bounds = ["--audit-log-max-size", "64Ki", "--audit-log-max-files", "3"];
    let server = Fixture::started(&bounds);
    let mut wire = server.admin.open().unwrap();
    let count = 500;
    let mut last = String::new();
    for n in 0..count {
        let path = format!("{CONFIGMAPS}/absent-{n}");
        let reply = wire.ask("DELETE", &path, "application/json", b"").unwrap();
        last = reply.header("audit-id").unwrap().to_owned();
    }
    let log = log_of(&server);
    line(&log, &last);
    let numbered = |n: u8| log.with_file_name(format!("audit.log.{n}"));
    let files = [numbered(2), numbered(1), log.clone()];
    for file in &files {
        let length = fs::metadata(file).unwrap().len();
        assert!((1..=64 << 10).contains(&length), "{length}");
    }
    assert!(!numbered(3).exists());
    let names: Vec<String> = files
        .iter()
        .flat_map(|file| lines(file))
        .map(|line| name_of(&line))
        .collect();
    let first = count - names.len();
    assert!(first > 0, "something was thrown away");
    let expected: Vec<String> = (first..count).map(|n| format!("absent-{n}")).collect();
    assert_eq!(names, expected);
}

fn name_of(line: &Value) -> String {
    line["objectRef"]["name"].as_str().unwrap().to_owned()
}

#[test]
fn a_stop_loses_nothing_and_half_a_line_harms_no_other() {
    let server = Fixture::started(&[]);
    let log = log_of(&server);
    let reply = server.touch("before");
    let id = reply.header("audit-id").unwrap();
    let mut server = Fixture::of(server.kennel.restart());
    assert_eq!(lines(&log).last().unwrap()["auditID"], id);
    server.kennel.kill();
    let mut file = fs::File::options().append(true).open(&log).unwrap();
    file.write_all(b"{\"kind\":\"Ev").unwrap();
    let server = Fixture::of(server.kennel.crash_and_restart());
    let reply = server.touch("after");
    let id = reply.header("audit-id").unwrap();
    let text = eventually(Deadline::seconds(10), || {
        let text = fs::read_to_string(&log).unwrap();
        if text.contains(id) {
            Ok(text)
        } else {
            Err("not yet")
        }
    });
    let whole = |line: &&str| serde_json::from_str::<Value>(line).is_ok();
    let (whole, torn): (Vec<&str>, Vec<&str>) = text.lines().partition(whole);
    assert_eq!((whole.len(), torn), (2, vec!["{\"kind\":\"Ev"]));
}

fn lost(server: &Fixture) -> u64 {
    let metrics = server.admin.ask("GET", "/metrics", b"").text();
    let line = metrics
        .lines()
        .find_map(|line| line.strip_prefix("kennel_audit_dropped_events_total "));
    line.expect("it is counted").parse().unwrap()
}

#[test]
fn unauthenticated_requests_are_counted_and_do_not_push_other_lines_out() {
    let server = Fixture::started(&[]);
    let log = log_of(&server);
    let stranger = &Access::stranger(server.kennel.address(), &server.kennel.data_dir());
    let mut wire = stranger.open().unwrap();
    let count = 300;
    for n in 0..count {
        let path = format!("{SECRETS}/absent-{n}");
        let reply = wire.ask("GET", &path, "application/json", b"").unwrap();
        assert_eq!(reply.code, 401);
    }
    let reply = server.touch("seen");
    line(&log, reply.header("audit-id").unwrap());
    let refused = |line: &&Value| line["responseStatus"]["code"] == 401;
    let recorded = lines(&log).iter().filter(refused).count();
    assert!((1..=20).contains(&recorded), "{recorded}");
    let metrics = server.admin.ask("GET", "/metrics", b"").text();
    let counted = format!(
        "kennel_audit_suppressed_requests_total {}\n",
        count - recorded
    );
    assert!(metrics.contains(&counted), "no {counted}");
    // What was counted is in the log, too.
    let _again = server.kennel.restart();
    let all = lines(&log);
    let counts = all.iter().find_map(|line| {
        let annotations = &line["annotations"];
        let requests = annotations["audit.kennel.dev/suppressed-requests"].as_str()?;
        let sources = annotations["audit.kennel.dev/suppressed-sources"].as_str()?;
        Some((requests.to_owned(), sources.to_owned()))
    });
    let expected = (count - recorded).to_string();
    assert_eq!(
        counts,
        Some((expected.clone(), format!("127.0.0.1: {expected}")))
    );
}

#[test]
fn a_full_disk_costs_lines_and_no_requests() {
    let server = Fixture::started(&["--audit-log", "/dev/full"]);
    for n in 0..3 {
        assert_eq!(server.touch(&format!("m{n}")).code, 201);
    }
    eventually(Deadline::seconds(10), || match lost(&server) {
        3 => Ok(()),
        other => Err(format!("{other} lost")),
    });
    assert!(
        server
            .kennel
            .log()
            .contains("cannot write to the audit log, lines are lost")
    );
}

#[test]
fn once_it_works_again_it_says_what_is_missing() {
    let server = Fixture::started(&[]);
    let log = log_of(&server);
    let dir = log.parent().unwrap();
    fs::remove_dir_all(dir).unwrap();
    fs::write(dir, "in the way").unwrap();
    assert_eq!(server.touch("unseen").code, 201);
    eventually(Deadline::seconds(10), || match lost(&server) {
        1 => Ok(()),
        other => Err(format!("{other} lost")),
    });
    fs::remove_file(dir).unwrap();
    let reply = server.touch("seen");
    line(&log, reply.header("audit-id").unwrap());
    let all = lines(&log);
    assert_eq!(all[0]["annotations"]["audit.kennel.dev/lost-lines"], "1");
    assert_eq!((all.len(), lost(&server)), (2, 1));
}

#[test]
fn a_place_that_cannot_be_written_is_refused_at_the_start() {
    let dir = tempfile::TempDir::new().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "x").unwrap();
    let refused = |arguments: &[&str], words: &str| {
        let mut command = Command::new(KENNEL);
        command.args(["server", "--listen", "127.0.0.1:0", "--data-dir"]);
        let output = command
            .arg(dir.path().join("data"))
            .args(arguments)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success());
        assert!(said.contains(words), "no {words:?} in: {said}");
    };
    let below = file.join("audit.log");
    let below = below.to_str().unwrap();
    refused(
        &["--audit-log", below],
        &format!("cannot write the audit log {below}"),
    );
    refused(&["--audit-log-max-size", "1Ki"], "must be at least 64Ki");
    refused(&["--audit-log-max-files", "0"], "0 is not in 1..");
}

#[test]
fn it_can_be_turned_off() {
    let server = Fixture::started(&["--audit-log", "off"]);
    assert_eq!(server.touch("m").header("audit-id"), None);
    assert!(!server.kennel.data_dir().join("audit").exists());
}
