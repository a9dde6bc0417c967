//! Copies ConfigMaps for revisions (R10).

use kennel_client::api;
use kennel_client::write::{self, Call, Writer};
use kennel_core::daemonset::event::{Answer, FailureKind, Identity};
use kennel_core::daemonset::view::ConfigMapView;
use kennel_core::rollout::config::ConfigCopy;
use kennel_types::Reason;
use kube::api::DynamicObject;
use serde_json::Value;

use super::Failed;
use crate::view;

/// Copies the content that is expected, and no other.
pub(super) async fn copy(
    writer: &Writer,
    set: &Identity,
    copy: &ConfigCopy,
) -> Result<Answer, Failed> {
    let collection = api::core_path(&set.namespace, "configmaps");
    let source = Call::get(format!("{collection}/{}", copy.source));
    let (source, content) = read(&writer.send(&source).await?)?;
    if source.hash != copy.hash {
        let text = format!("ConfigMap {} has changed since", copy.source);
        return Err(Failed::of_kind(FailureKind::NotFound, text));
    }
    let body = copy.body(&set.namespace, &content).to_string();
    let call = Call::create(collection.as_str(), body.as_str());
    let failure = match writer.send_idempotent(&call).await {
        Ok(answer) => return read(&answer).map(|(view, _)| Answer::ConfigMap(view)),
        Err(failure) => failure,
    };
    if !(failure.is(409) && failure.reason == Reason::AlreadyExists) {
        return Err(failure.into());
    }
    let holder = Call::get(format!("{collection}/{}", copy.name));
    let (holder, _) = read(&writer.send(&holder).await?)?;
    if holder.hash == copy.hash && holder.owner.as_ref() == Some(&copy.revision.uid) {
        return Ok(Answer::ConfigMap(holder));
    }
    Err(Failed::of_kind(FailureKind::NameTaken, failure.message))
}

/// The ConfigMap of a response, and its contents.
fn read(answer: &write::Answer) -> Result<(ConfigMapView, Value), Failed> {
    let object: Option<DynamicObject> = serde_json::from_slice(&answer.body).ok();
    let object = object
        .ok_or_else(|| Failed::refused("the API's response is not a ConfigMap".to_owned()))?;
    Ok((view::config_map(&object), object.data))
}
