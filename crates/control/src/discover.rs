//! Which resources the API stores, as its discovery tells.

use kube::Client;
use kube::api::ApiResource;
use kube::discovery::{Discovery, Scope, verbs};

/// A resource whose objects can be listed and deleted.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    /// Its names.
    pub(crate) resource: ApiResource,
    /// Its objects live in namespaces.
    pub(crate) namespaced: bool,
    /// Its objects can be watched.
    pub(crate) watched: bool,
    /// Its objects can be deleted all at once.
    pub(crate) collective: bool,
}

impl Stored {
    /// Where its objects of a namespace are, or all of them.
    pub(crate) fn collection(&self, namespace: &str) -> String {
        let ApiResource {
            group,
            version,
            plural,
            ..
        } = &self.resource;
        let root = if group.is_empty() {
            format!("/api/{version}")
        } else {
            format!("/apis/{group}/{version}")
        };
        if self.namespaced && !namespace.is_empty() {
            format!("{root}/namespaces/{namespace}/{plural}")
        } else {
            format!("{root}/{plural}")
        }
    }

    /// Where one of its objects is.
    pub(crate) fn object(&self, namespace: &str, name: &str) -> String {
        format!("{}/{name}", self.collection(namespace))
    }
}

/// All of them, in the version of each that the API prefers.
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
        watched: can.supports_operation(verbs::WATCH),
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
            watched: true,
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
