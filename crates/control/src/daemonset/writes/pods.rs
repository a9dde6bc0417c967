//! Creates and deletes pods.
//!
//! Upstream lets the API generate the name. Then a lost response leaves unknown whether a pod was created, and repeating
//! the request may create one too many. So the name is generated here, in the API's way, and a request whose response
//! got lost is repeated with the same name: if the first one was applied, the second gets `AlreadyExists`. The request is
//! not repeated once a watch has delivered the pod: it may have been deleted already, and would be created again.

use std::sync::Arc;

use kennel_client::api;
use kennel_client::write::{Call, Failure, Writer};
use kennel_core::daemonset::event::{Answer, Identity, Object};
use kennel_core::names::generate_name;
use kennel_types::Reason;

use super::pending_names::PendingNames;
use super::{Failed, Target, send, target};

/// How many names are tried: two collisions in a row are unlikely even among thousands of pods.
const NAMES: u32 = 5;

pub(super) fn path<'a>(set: &Identity, pod: &'a Object) -> Target<'a> {
    target(&api::core_path(&set.namespace, "pods"), pod)
}

/// Creates a pod. `body` makes the request from the pod's name.
pub(super) async fn create(
    writer: &Writer,
    names: &PendingNames,
    set: &Identity,
    body: impl Fn(&str) -> String,
) -> Result<Answer, Failed> {
    let collection = api::core_path(&set.namespace, "pods");
    let mut collision = None;
    for _ in 0..NAMES {
        let name: Arc<str> = pod_name(&set.name).into();
        let tracked = names.track(&set.namespace, &name);
        let call = Call::create(collection.as_str(), body(&name));
        match writer
            .send_idempotent_until(&call, || tracked.observed())
            .await
        {
            Ok(_) => return Ok(Answer::Pod { name }),
            // An earlier try of this request created it.
            Err(failure) if is_taken(&failure) && failure.repeated => {
                return Ok(Answer::Pod { name });
            }
            Err(failure) if is_taken(&failure) => {
                tracked.refused();
                collision = Some(failure);
            }
            Err(failure) if failure.unsure => {
                return Err(Failed::from(failure).of_unknown_outcome());
            }
            Err(failure) => {
                // A server that reports an error of its own may have created the pod.
                if failure.code.is_some_and(|code| code < 500) {
                    tracked.refused();
                }
                return Err(failure.into());
            }
        }
    }
    let message = collision.map(|failure| failure.message).unwrap_or_default();
    Err(Failed::refused(message))
}

/// Deletes a pod with its own grace period. A conflict does not count as success: the watch delivers whether another pod
/// has its name.
pub(super) async fn delete(writer: &Writer, pod: &Target<'_>) -> Result<Answer, Failed> {
    let call = Call::delete(pod.path.as_str(), pod.uid);
    // If it was repeated, an earlier try of this request deleted the pod.
    send(writer, &call, |failure| failure.is(404) && failure.repeated).await
}

fn is_taken(failure: &Failure) -> bool {
    failure.is(409) && failure.reason == Reason::AlreadyExists
}

/// A name as the API generates it from `<name>-` (rule 3.9.1).
fn pod_name(daemon_set: &str) -> String {
    generate_name(&format!("{daemon_set}-"), |below| fastrand::usize(..below))
}

#[cfg(test)]
mod tests {
    use kennel_core::names::GENERATED_ALPHABET;

    use super::*;

    #[test]
    fn s3_9_1_names_are_made_up_as_the_api_would() {
        let short = pod_name("agent");
        assert!(short.starts_with("agent-") && short.len() == 11, "{short}");
        let mut suffix = short.as_bytes()[6..].iter();
        assert!(suffix.all(|b| GENERATED_ALPHABET.contains(b)), "{short}");
        assert_ne!(pod_name("agent"), pod_name("agent"));
        let long = pod_name(&"a".repeat(100));
        assert_eq!(long.len(), 63);
        assert!(long.starts_with(&"a".repeat(58)));
    }
}
