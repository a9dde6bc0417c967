//! One attempt to empty a namespace.

use std::collections::BTreeMap;

use kennel_client::clock;
use kennel_client::write::{Call, Failure, Writer};
use kennel_core::garbage::namespace::{self, Attempt, Remaining};
use kube::Client;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::OnceCell;

use crate::discover::{self, Stored};

/// What an attempt came to.
pub(super) enum Emptied {
    /// Nothing holds the namespace any more, as far as we are concerned.
    Finalized,
    /// Something remains, or could not be done.
    NotYet,
}

/// Empties namespaces.
pub(super) struct Emptier {
    client: Client,
    writer: Writer,
    /// Asked for once it is needed, and until it is told.
    stored: OnceCell<Vec<Stored>>,
}

#[derive(Deserialize)]
struct List {
    items: Vec<Listed>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Listed {
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    name: String,
    uid: String,
    finalizers: Vec<String>,
}

/// Why objects could not be listed or deleted.
struct Trouble {
    code: Option<u16>,
    message: String,
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self {
            code: failure.code,
            message: failure.message,
        }
    }
}

impl Emptier {
    pub(super) fn new(client: Client, writer: Writer) -> Self {
        Self {
            client,
            writer,
            stored: OnceCell::new(),
        }
    }

    /// Empties a namespace as far as it can be now, tells what remains, and finalizes it if nothing does.
    pub(super) async fn empty(&self, name: &str, uid: &str) -> Emptied {
        match self.attempt(name, uid).await {
            Ok(emptied) => emptied,
            Err(failure) if failure.is(404) => Emptied::Finalized,
            Err(failure) => {
                if !failure.is(409) {
                    tracing::warn!("emptying namespace {name} failed: {failure}");
                }
                Emptied::NotYet
            }
        }
    }

    async fn attempt(&self, name: &str, uid: &str) -> Result<Emptied, Failure> {
        let path = format!("/api/v1/namespaces/{name}");
        let namespace = self.get(&path).await?;
        let is_it = namespace["metadata"]["uid"] == uid;
        let deleting = !namespace["metadata"]["deletionTimestamp"].is_null();
        if !is_it || !deleting || namespace::finalized(&namespace).is_none() {
            return Ok(Emptied::Finalized);
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
            return Ok(Emptied::NotYet);
        }
        if let Some(finalized) = namespace::finalized(&namespace) {
            let call = Call::replace(format!("{path}/finalize"), &finalized);
            self.writer.send(&call).await?;
        }
        Ok(Emptied::Finalized)
    }

    async fn get(&self, path: &str) -> Result<Value, Failure> {
        self.writer.send(&Call::get(path)).await?.tree()
    }

    /// Deletes all there is: pods first, and the rest once they are gone.
    async fn delete_content(&self, namespace: &str) -> Attempt {
        let mut attempt = Attempt::default();
        let stored = self
            .stored
            .get_or_try_init(|| discover::stored(&self.client));
        let stored = match stored.await {
            Ok(stored) => stored,
            Err(error) => {
                attempt.undiscovered = Some(format!("Discovery failed for some groups: {error}"));
                return attempt;
            }
        };
        let is_pods = |s: &&Stored| s.resource.group.is_empty() && s.resource.plural == "pods";
        let inside = || stored.iter().filter(|s| s.namespaced);
        for pods in inside().filter(is_pods) {
            self.delete_all(namespace, pods, &mut attempt).await;
        }
        if attempt.is_empty() {
            for other in inside().filter(|s| !is_pods(s)) {
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
            self.delete(namespace, stored, &listed).await?;
            self.list(namespace, stored).await
        };
        match result.await {
            Ok(left) if left.is_empty() => {}
            Ok(left) => attempt.remaining.push(remaining(stored, &left)),
            // No such resource any more: nothing of it is left.
            Err(trouble) if matches!(trouble.code, Some(404 | 405)) => {}
            Err(trouble) => attempt.failures.push(trouble.message),
        }
    }

    async fn delete(
        &self,
        namespace: &str,
        stored: &Stored,
        listed: &[Metadata],
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
            let call = Call::delete(stored.object(namespace, &object.name), &object.uid);
            match self.writer.send(&call).await {
                Err(failure) if !failure.is(404) && !failure.is(409) => return Err(failure),
                _ => {}
            }
        }
        Ok(())
    }

    async fn list(&self, namespace: &str, stored: &Stored) -> Result<Vec<Metadata>, Trouble> {
        let call = Call::get(stored.collection(namespace));
        let tree = self.writer.send(&call).await?.tree()?;
        // What cannot be read must not be taken for nothing.
        let list: List = serde_json::from_value(tree).map_err(|error| Trouble {
            code: None,
            message: format!("a list of {} is none: {error}", stored.resource.plural),
        })?;
        Ok(list.items.into_iter().map(|item| item.metadata).collect())
    }
}

fn remaining(stored: &Stored, left: &[Metadata]) -> Remaining {
    let mut finalizers: BTreeMap<String, usize> = BTreeMap::new();
    for finalizer in left.iter().flat_map(|object| &object.finalizers) {
        *finalizers.entry(finalizer.clone()).or_default() += 1;
    }
    Remaining {
        resource: format!("{}.{}", stored.resource.plural, stored.resource.group),
        count: left.len(),
        finalizers,
    }
}
