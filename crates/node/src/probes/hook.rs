//! The hooks of a container's life: after its start and before its end.
//!
//! A hook has no time of its own. Whoever runs it stops waiting when the container's time is over.

use std::time::Duration;

use serde_json::Value;

use super::web::Asked;
use super::{Target, exec};
use crate::runtime::PodId;

/// Runtimes want a bound for commands: longer than any grace period that somebody means.
const LONGEST: Duration = Duration::from_hours(24);

/// Runs a hook: `handler` is `lifecycle.postStart` or `lifecycle.preStop` of the container. `Err` says why it
/// failed; it may hold what the command wrote, so it belongs in logs and not in events.
pub(super) async fn hook(target: &Target<'_>, handler: &Value) -> Result<(), String> {
    if handler["exec"].is_object() {
        command(target, &handler["exec"]).await
    } else if handler["httpGet"].is_object() {
        request(target, &handler["httpGet"]).await
    } else if handler["sleep"].is_object() {
        let seconds = handler["sleep"]["seconds"].as_u64().unwrap_or_default();
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        Ok(())
    } else {
        Err(format!("Invalid handler: {handler}"))
    }
}

async fn command(target: &Target<'_>, action: &Value) -> Result<(), String> {
    let command = exec::command(action);
    let ran = target.runtime.exec(target.id, &command, LONGEST).await;
    let (error, said) = match ran {
        Ok(output) if output.code == 0 => return Ok(()),
        Ok(output) => {
            let said = exec::text(&output.text);
            let command = command.join(" ");
            let code = output.code;
            (
                format!("command '{command}' exited with {code}: {said}"),
                said,
            )
        }
        Err(error) => (error.to_string(), String::new()),
    };
    let about = about(target);
    let command = command.join(" ");
    Err(format!(
        "Exec lifecycle hook ([{command}]) for {about} failed - error: {error}, message: {said:?}"
    ))
}

/// Whatever the answer, the request must have got there: upstream does not look at the status.
async fn request(target: &Target<'_>, action: &Value) -> Result<(), String> {
    let sent = match Asked::new(target, action, "kube-lifecycle/1.36") {
        Ok(request) => request.send().await.map(drop),
        Err(error) => Err(error),
    };
    sent.map_err(|error| {
        let path = action["path"].as_str().unwrap_or_default();
        let about = about(target);
        format!("HTTP lifecycle hook ({path}) for {about} failed - error: {error}")
    })
}

fn about(target: &Target<'_>) -> String {
    let PodId {
        namespace,
        name,
        uid,
    } = target.pod;
    let container = &target.container.name;
    format!("Container {container:?} in Pod \"{name}_{namespace}({uid})\"")
}
