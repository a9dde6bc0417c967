//! The time that the server spends on authorising a request, as it reports it, with a thousand bindings that apply to
//! the user.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use anyhow::Result;
use bytes::Bytes;
use serde_json::{Value, json};

use super::client::Http1;
use super::counters::Counters;
use super::report::{Report, say};
use super::server::Server;
use super::{count, ratio};

/// All of them apply to the user.
const BINDINGS: usize = 1_000;
/// The user's groups; the bindings are spread over them.
const GROUPS: usize = 20;
const REQUESTS: usize = 5_000;
const BOUND_MICROSECONDS: f64 = 10.0;

const API: &str = "/apis/rbac.authorization.k8s.io/v1";
const GROUP: &str = "rbac.authorization.k8s.io";
/// The user's token; it is valid only for the server of this run.
const TOKEN: &str = "bench-token-of-a-user-in-twenty-groups";
const REQUEST_PATH: &str = "/api/v1/namespaces/default/configmaps?limit=1";

pub(super) async fn measure(report: &mut Report) -> Result<()> {
    let server = Server::start_with(|data| {
        let groups: Vec<String> = (0..GROUPS).map(group).collect();
        let path = data.join("tokens.csv");
        let line = format!("{TOKEN},bench,1,\"{}\"\n", groups.join(","));
        std::fs::write(&path, line)?;
        // The server rejects a token file that others can read.
        std::fs::set_permissions(&path, Permissions::from_mode(0o600))?;
        Ok(vec!["--token-file".to_owned(), path.display().to_string()])
    })?;
    let mut connection = server.target()?.http1().await?;
    for number in 0..BINDINGS {
        grant(&mut connection, number).await?;
    }
    let mut user_connection = server.target()?.anonymous().http1().await?;
    let before = Counters::read(&mut connection).await?;
    for _ in 0..REQUESTS {
        user_connection.get_with(REQUEST_PATH, TOKEN).await?;
    }
    let spent = Counters::read(&mut connection).await?.since(before);
    let microseconds = spent.deciding_seconds * 1e6 / ratio(spent.decisions, 1);
    say(format_args!(
        "{} decisions, {GROUPS} groups, {:.0} bindings per group: {microseconds:.2} µs each",
        spent.decisions,
        count(BINDINGS) / count(GROUPS),
    ));
    report.judge(
        "authorisation at 1,000 bindings",
        format!("{microseconds:.2} µs"),
        format!("≤ {BOUND_MICROSECONDS:.0} µs"),
        microseconds <= BOUND_MICROSECONDS,
    );
    Ok(())
}

fn group(number: usize) -> String {
    format!("team-{:02}", number % GROUPS)
}

/// Creates a role and its binding, every second one namespaced. Only the last role allows the request.
async fn grant(connection: &mut Http1, number: usize) -> Result<()> {
    let name = format!("bench-{number:04}");
    let resource = if number + 1 == BINDINGS {
        "configmaps".to_owned()
    } else {
        format!("things-{number}")
    };
    let rules = json!([
        {"verbs": ["get", "list"], "apiGroups": ["example.com"], "resources": ["cats", "dogs"]},
        {"verbs": ["get", "list", "watch"], "apiGroups": [""], "resources": [resource]},
    ]);
    let role = json!({"metadata": {"name": name}, "rules": rules});
    let binding = json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": GROUP, "kind": "Group", "name": group(number)}],
    });
    let bindings = if number.is_multiple_of(2) {
        format!("{API}/clusterrolebindings")
    } else {
        format!("{API}/namespaces/default/rolebindings")
    };
    let body = |value: &Value| Bytes::from(value.to_string());
    connection
        .create(&format!("{API}/clusterroles"), body(&role))
        .await?;
    connection.create(&bindings, body(&binding)).await?;
    Ok(())
}
