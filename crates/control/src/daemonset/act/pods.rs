//! Creating pods.
//!
//! Upstream lets the API make up the name. Then nobody knows, when an answer got lost, whether a pod
//! was made, and one request more may be one pod too many. So the name is made up here, in the
//! API's way, and a request whose answer got lost is sent again under the same name: if it was carried
//! out the first time, the name is taken, and that is the answer. A pod that was seen in the meantime is
//! not asked for again: it may be gone already, and would come back.

use std::sync::Arc;

use kennel_client::api;
use kennel_client::write::{Call, Failure, Writer};
use kennel_core::daemonset::event::{Answer, Object, SetRef};

use super::names::Names;
use super::{Failed, Target, target};

/// What names are made up from: the API's letters, without vowels and look-alikes.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// How many of them.
const SUFFIX: usize = 5;
/// The longest name that the API would make up.
const NAME_MAX: usize = 63;
/// How many names are tried: even among thousands of pods two in a row are hardly taken.
const NAMES: u32 = 5;
pub(super) fn path<'a>(set: &SetRef, pod: &'a Object) -> Target<'a> {
    target(&api::core_path(&set.namespace, "pods"), pod)
}

/// Creates a pod from its text, in which the name is missing.
pub(super) async fn create(
    writer: &Writer,
    names: &Names,
    set: &SetRef,
    text: &str,
) -> Result<Answer, Failed> {
    let collection = api::core_path(&set.namespace, "pods");
    let mut taken = None;
    for _ in 0..NAMES {
        let name: Arc<str> = name(&set.name).into();
        let given = names.give(&set.namespace, &name);
        let call = Call::create(collection.as_str(), named(text, &name));
        match writer.send_until(&call, || given.seen()).await {
            Ok(_) => return Ok(Answer::Pod { name }),
            // Taken by ourselves, a moment ago.
            Err(failure) if is_taken(&failure) && failure.repeated => {
                return Ok(Answer::Pod { name });
            }
            Err(failure) if is_taken(&failure) => taken = Some(failure),
            Err(failure) if failure.unsure => {
                return Err(Failed::from(failure).of_unknown_end());
            }
            Err(failure) => return Err(failure.into()),
        }
    }
    let message = taken.map(|failure| failure.message).unwrap_or_default();
    Err(Failed::refused(message))
}

/// Deletes a pod with its own grace period. A conflict is no sign that it is gone: if another has its
/// name, the watch says so.
pub(super) async fn delete(writer: &Writer, pod: &Target<'_>) -> Result<Answer, Failed> {
    let call = Call::delete(pod.path.as_str(), pod.uid);
    match writer.send_certainly(&call).await {
        // By ourselves, a moment ago.
        Err(failure) if failure.is(404) && failure.repeated => Ok(Answer::Nothing),
        result => Ok(result.map(|_| Answer::Nothing)?),
    }
}

fn is_taken(failure: &Failure) -> bool {
    failure.is(409) && failure.reason == "AlreadyExists"
}

/// A name as the API would make it up from `<name>-` (rule 3.9.1).
fn name(daemon_set: &str) -> String {
    let mut name = format!("{daemon_set}-");
    name.truncate(NAME_MAX - SUFFIX);
    let letter = || char::from(LETTERS[fastrand::usize(..LETTERS.len())]);
    name.extend(std::iter::repeat_with(letter).take(SUFFIX));
    name
}

/// The text of a pod with a name. The first metadata in it is the pod's: only its kind and version
/// come before.
fn named(text: &str, name: &str) -> String {
    let metadata = "\"metadata\":{";
    text.replacen(metadata, &format!("{metadata}\"name\":\"{name}\","), 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn s3_9_1_names_are_made_up_as_the_api_would() {
        let short = name("agent");
        assert!(short.starts_with("agent-") && short.len() == 11, "{short}");
        let suffix = short.as_bytes()[6..].iter();
        assert!(suffix.into_iter().all(|b| LETTERS.contains(b)), "{short}");
        assert_ne!(name("agent"), name("agent"));
        let long = name(&"a".repeat(100));
        assert_eq!(long.len(), 63);
        assert!(long.starts_with(&"a".repeat(58)));
    }

    #[test]
    fn the_name_goes_into_the_pods_own_metadata() {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "d-"},
                         "spec": {"volumes": [{"metadata": {"x": 1}}]}});
        let text = named(&pod.to_string(), "d-abcde");
        let named: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            named["metadata"],
            json!({"name": "d-abcde", "generateName": "d-"})
        );
        assert_eq!(named["spec"], pod["spec"]);
    }
}
