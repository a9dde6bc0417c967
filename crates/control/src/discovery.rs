//! The resources that the API stores, from its discovery documents.

use kube::api::{ApiResource, DynamicObject};
use kube::discovery::{Discovery, Scope, verbs};
use kube::{Client, Resource as _};

/// A resource whose objects can be listed and deleted.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) resource: ApiResource,
    pub(crate) namespaced: bool,
    pub(crate) watchable: bool,
    /// Supports `deletecollection`.
    pub(crate) collective: bool,
}

impl Stored {
    /// The path of its objects in a namespace; of all of them if the namespace is empty.
    pub(crate) fn collection(&self, namespace: &str) -> String {
        let namespace = Some(namespace).filter(|name| self.namespaced && !name.is_empty());
        DynamicObject::url_path(&self.resource, namespace)
    }

    /// The path of one of its objects.
    pub(crate) fn object(&self, namespace: &str, name: &str) -> String {
        format!("{}/{name}", self.collection(namespace))
    }
}

/// Every such resource, each in the API's preferred version.
pub(crate) async fn stored(client: &Client) -> kube::Result<Vec<Stored>> {
    let discovery = Discovery::new(client.clone()).run().await?;
    let groups = discovery.groups_alphabetical();
    let all = groups
        .into_iter()
        .flat_map(kube::discovery::ApiGroup::recommended_resources);
    let able = all.filter(|(_, can)| {
        can.supports_operation(verbs::LIST) && can.supports_operation(verbs::DELETE)
    });
    let stored = able.map(|(resource, can)| Stored {
        resource,
        namespaced: can.scope == Scope::Namespaced,
        watchable: can.supports_operation(verbs::WATCH),
        collective: can.supports_operation(verbs::DELETE_COLLECTION),
    });
    Ok(stored.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(group: &str, namespaced: bool, namespace: &str, expected: &str) {
        let gvk = kube::api::GroupVersionKind::gvk(group, "v1", "Thing");
        let stored = Stored {
            resource: ApiResource::from_gvk_with_plural(&gvk, "things"),
            namespaced,
            watchable: true,
            collective: true,
        };
        assert_eq!(stored.object(namespace, "x"), expected);
    }

    #[test]
    fn objects_have_their_paths() {
        check("", true, "n", "/api/v1/namespaces/n/things/x");
        check("", false, "", "/api/v1/things/x");
        check("a.b", true, "n", "/apis/a.b/v1/namespaces/n/things/x");
        check("a.b", false, "", "/apis/a.b/v1/things/x");
    }
}
