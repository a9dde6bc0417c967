//! What authorisation costs a request: the server's own count of it, in the worst case that a thousand
//! bindings make.

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

/// All of them give something to the asking user.
const BINDINGS: usize = 1_000;
/// The groups that the user is in; each has its share of the bindings.
const GROUPS: usize = 20;
/// How often it is asked.
const REQUESTS: usize = 5_000;
const BOUND_MICROSECONDS: f64 = 10.0;

const API: &str = "/apis/rbac.authorization.k8s.io/v1";
const GROUP: &str = "rbac.authorization.k8s.io";
/// A token for the asking user; it opens nothing but this server's data directory.
const TOKEN: &str = "bench-token-of-a-user-in-twenty-groups";
const ASKED: &str = "/api/v1/namespaces/default/configmaps?limit=1";

pub(super) async fn measure(report: &mut Report) -> Result<()> {
    let server = Server::start_with(|data| {
        let groups: Vec<String> = (0..GROUPS).map(group).collect();
        let path = data.join("tokens.csv");
        let line = format!("{TOKEN},bench,1,\"{}\"\n", groups.join(","));
        std::fs::write(&path, line)?;
        // A token file that others can read is refused.
        std::fs::set_permissions(&path, Permissions::from_mode(0o600))?;
        Ok(vec!["--token-file".to_owned(), path.display().to_string()])
    })?;
    let mut connection = server.target()?.http1().await?;
    for number in 0..BINDINGS {
        grant(&mut connection, number).await?;
    }
    let mut asking = server.target()?.anonymous().http1().await?;
    let before = Counters::read(&mut connection).await?;
    for _ in 0..REQUESTS {
        asking.get_with(ASKED, TOKEN).await?;
    }
    let spent = Counters::read(&mut connection).await?.since(before);
    let microseconds = spent.deciding_seconds * 1e6 / ratio(spent.decisions, 1);
    say(format_args!(
        "{} decisions, {GROUPS} groups, {:.0} bindings a group: {microseconds:.2} µs each",
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

/// A role of its own and its binding; every second one is for a namespace. Only the last role has the right
/// that is asked for.
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
