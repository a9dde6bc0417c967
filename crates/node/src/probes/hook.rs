//! Lifecycle hooks of containers: `postStart` and `preStop`.
//!
//! A hook has no timeout of its own. The caller stops waiting when the container's grace period is over.

use std::time::Duration;

use serde_json::Value;

use super::error::{HttpError, RequestError, message};
use super::http_get::HttpGet;
use super::{Target, exec};
use crate::pods::traits::HookError;
use crate::runtime::PodId;

/// Runtimes want a timeout for commands: longer than any reasonable grace period.
const EXEC_TIMEOUT: Duration = Duration::from_hours(24);

/// `handler` is `lifecycle.postStart` or `lifecycle.preStop` of the container. An error may hold the command's output,
/// so it belongs in logs and not in events.
pub(super) async fn run(target: &Target<'_>, handler: &Value) -> Result<(), HookError> {
    if handler["exec"].is_object() {
        exec_command(target, &handler["exec"]).await
    } else if handler["httpGet"].is_object() {
        http_get(target, &handler["httpGet"]).await
    } else if handler["sleep"].is_object() {
        let seconds = handler["sleep"]["seconds"].as_u64().unwrap_or_default();
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        Ok(())
    } else {
        Err(HookError(format!("Invalid handler: {handler}")))
    }
}

async fn exec_command(target: &Target<'_>, action: &Value) -> Result<(), HookError> {
    let command = exec::command(action);
    let result = target.runtime.exec(target.id, &command, EXEC_TIMEOUT).await;
    let command = command.join(" ");
    let (error, output) = match result {
        Ok(output) if output.code == 0 => return Ok(()),
        Ok(output) => {
            let text = exec::text(&output.text);
            let code = output.code;
            (
                format!("command '{command}' exited with {code}: {text}"),
                text,
            )
        }
        Err(error) => (error.to_string(), String::new()),
    };
    let about = describe(target);
    Err(HookError(format!(
        "Exec lifecycle hook ([{command}]) for {about} failed - error: {error}, message: {output:?}"
    )))
}

/// Succeeds with any response: upstream does not look at the status.
async fn http_get(target: &Target<'_>, action: &Value) -> Result<(), HookError> {
    let failed = |error: &dyn std::error::Error| {
        let path = action["path"].as_str().unwrap_or_default();
        let (about, error) = (describe(target), message(error));
        HookError(format!(
            "HTTP lifecycle hook ({path}) for {about} failed - error: {error}"
        ))
    };
    let request = HttpGet::new(target, action, "kube-lifecycle/1.36");
    let request = request.map_err(|error: RequestError| failed(&error))?;
    let sent = request.send().await;
    sent.map(drop).map_err(|error: HttpError| failed(&error))
}

fn describe(target: &Target<'_>) -> String {
    let PodId {
        namespace,
        name,
        uid,
    } = target.pod;
    let container = &target.container.name;
    format!("Container {container:?} in Pod \"{name}_{namespace}({uid})\"")
}
