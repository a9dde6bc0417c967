//! One attempt to delete the content of a namespace and to finalize it.

use std::collections::BTreeMap;

use kennel_client::write::{Call, Failure, Writer};
use kennel_client::{api, clock};
use kennel_core::garbage::namespace::{self, Attempt, Remaining};
use kennel_types::Identity;
use kennel_types::meta::ObjectMeta;
use kube::Client;
use kube::api::{DynamicObject, PartialObjectMeta};
use serde_json::Value;
use tokio::sync::OnceCell;

use crate::discovery::{self, Stored};

pub(super) enum Progress {
    /// The namespace is empty and has no finalizer of ours any more.
    Finalized,
    /// Content remains, or a request failed.
    Remaining,
}

pub(super) struct ContentDeleter {
    client: Client,
    writer: Writer,
    /// Discovered on first use; a failure is tried again on the next.
    resources: OnceCell<Vec<Stored>>,
}

type List = api::List<PartialObjectMeta<DynamicObject>>;

impl ContentDeleter {
    pub(super) fn new(client: Client, writer: Writer) -> Self {
        Self {
            client,
            writer,
            resources: OnceCell::new(),
        }
    }

    /// Deletes what can be deleted now, writes what remains to the conditions, and finalizes the namespace if nothing
    /// does.
    pub(super) async fn delete(&self, name: &str, uid: &str) -> Progress {
        match self.attempt(name, uid).await {
            Ok(progress) => progress,
            Err(failure) if failure.is(404) => Progress::Finalized,
            Err(failure) => {
                if !failure.is(409) {
                    tracing::warn!("deleting the content of namespace {name} failed: {failure}");
                }
                Progress::Remaining
            }
        }
    }

    async fn attempt(&self, name: &str, uid: &str) -> Result<Progress, Failure> {
        let path = format!("/api/v1/namespaces/{name}");
        let namespace = self.get(&path).await?;
        let same = namespace["metadata"]["uid"] == uid;
        let deleting = !namespace["metadata"]["deletionTimestamp"].is_null();
        if !same || !deleting || namespace::finalized(&namespace).is_none() {
            return Ok(Progress::Finalized);
        }
        let attempt = self.delete_content(name).await;
        let mut namespace = namespace;
        if let Some(changed) =
            namespace::with_conditions(&namespace, &attempt, &clock::now_rfc3339())
        {
            let call = Call::replace(format!("{path}/status"), &changed);
            namespace = self.writer.send(&call).await?.tree()?;
        }
        if !attempt.is_empty() {
            return Ok(Progress::Remaining);
        }
        if let Some(finalized) = namespace::finalized(&namespace) {
            let call = Call::replace(format!("{path}/finalize"), &finalized);
            self.writer.send(&call).await?;
        }
        Ok(Progress::Finalized)
    }

    async fn get(&self, path: &str) -> Result<Value, Failure> {
        self.writer.send(&Call::get(path)).await?.tree()
    }

    /// Deletes pods first, and the rest once they are gone.
    async fn delete_content(&self, namespace: &str) -> Attempt {
        let mut attempt = Attempt::default();
        let resources = self
            .resources
            .get_or_try_init(|| discovery::stored(&self.client));
        let resources = match resources.await {
            Ok(resources) => resources,
            Err(error) => {
                attempt.undiscovered = Some(format!("Discovery failed for some groups: {error}"));
                return attempt;
            }
        };
        let is_pods = |s: &&Stored| s.resource.group.is_empty() && s.resource.plural == "pods";
        let namespaced = || resources.iter().filter(|s| s.namespaced);
        for pods in namespaced().filter(is_pods) {
            self.delete_all(namespace, pods, &mut attempt).await;
        }
        if attempt.is_empty() {
            for other in namespaced().filter(|s| !is_pods(s)) {
                self.delete_all(namespace, other, &mut attempt).await;
            }
        }
        attempt
    }

    /// Deletes all objects of a resource, and notes which are left.
    async fn delete_all(&self, namespace: &str, stored: &Stored, attempt: &mut Attempt) {
        let result = async {
            let listed = self.list(namespace, stored).await?;
            if listed.is_empty() {
                return Ok(listed);
            }
            self.delete_objects(namespace, stored, &listed).await?;
            self.list(namespace, stored).await
        };
        match result.await {
            Ok(left) if left.is_empty() => {}
            Ok(left) => attempt.remaining.push(remaining(stored, &left)),
            // The resource is no longer served, so nothing of it remains.
            Err(error) if matches!(error.code, Some(404 | 405)) => {}
            Err(error) => attempt.failures.push(error.message),
        }
    }

    async fn delete_objects(
        &self,
        namespace: &str,
        stored: &Stored,
        listed: &[ObjectMeta],
    ) -> Result<(), Failure> {
        let body = r#"{"apiVersion":"v1","kind":"DeleteOptions","propagationPolicy":"Background"}"#;
        if stored.collective {
            let call = Call {
                body: body.to_owned(),
                ..Call::delete(stored.collection(namespace), "")
            };
            return self.writer.send(&call).await.map(drop);
        }
        for object in listed {
            let id = Identity::of(object);
            let call = Call::delete(stored.object(namespace, &id.name), &id.uid);
            match self.writer.send(&call).await {
                Err(failure) if !failure.is(404) && !failure.is(409) => return Err(failure),
                _ => {}
            }
        }
        Ok(())
    }

    async fn list(&self, namespace: &str, stored: &Stored) -> Result<Vec<ObjectMeta>, Failure> {
        let call = Call::get(stored.collection(namespace));
        let tree = self.writer.send(&call).await?.tree()?;
        // A list that cannot be decoded must not count as empty.
        let list: List = serde_json::from_value(tree).map_err(|error| Failure {
            message: format!(
                "the list of {} cannot be decoded: {error}",
                stored.resource.plural
            ),
            ..Failure::default()
        })?;
        Ok(list.items.into_iter().map(|item| item.metadata).collect())
    }
}

fn remaining(stored: &Stored, left: &[ObjectMeta]) -> Remaining {
    let mut finalizers: BTreeMap<String, usize> = BTreeMap::new();
    for finalizer in left
        .iter()
        .flat_map(|object| object.finalizers.iter().flatten())
    {
        *finalizers.entry(finalizer.clone()).or_default() += 1;
    }
    Remaining {
        resource: format!("{}.{}", stored.resource.plural, stored.resource.group),
        count: left.len(),
        finalizers,
    }
}
