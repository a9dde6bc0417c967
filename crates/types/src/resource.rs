//! `kube::Resource` for the partial types, so that `kube::Api` can list and watch them.

use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};

use crate::{DaemonSet, EndpointSlice, Lease, Namespace, Node, Pod, Service};

/// Implements `kube::Resource` for a type with a field `metadata: ObjectMeta`: the kind of this group, version `v1`, and
/// plural name. For crates that decode other fields than the types here.
#[macro_export]
macro_rules! resource {
    ($type:ty $(, <$param:ident>)?; $scope:ty, $group:literal, $kind:literal, $plural:literal) => {
        impl$(<$param>)? ::kube::Resource for $type {
            type DynamicType = ();
            type Scope = $scope;

            fn kind((): &()) -> ::std::borrow::Cow<'_, str> {
                $kind.into()
            }

            fn group((): &()) -> ::std::borrow::Cow<'_, str> {
                $group.into()
            }

            fn version((): &()) -> ::std::borrow::Cow<'_, str> {
                "v1".into()
            }

            fn plural((): &()) -> ::std::borrow::Cow<'_, str> {
                $plural.into()
            }

            fn meta(&self) -> &$crate::meta::ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut $crate::meta::ObjectMeta {
                &mut self.metadata
            }
        }
    };
}

resource!(Pod<C>, <C>; NamespaceResourceScope, "", "Pod", "pods");
resource!(DaemonSet; NamespaceResourceScope, "apps", "DaemonSet", "daemonsets");
resource!(Node; ClusterResourceScope, "", "Node", "nodes");
resource!(Lease; NamespaceResourceScope, "coordination.k8s.io", "Lease", "leases");
resource!(Service; NamespaceResourceScope, "", "Service", "services");
resource!(EndpointSlice; NamespaceResourceScope, "discovery.k8s.io", "EndpointSlice", "endpointslices");
resource!(Namespace; ClusterResourceScope, "", "Namespace", "namespaces");

#[cfg(test)]
mod tests {
    use kube::Resource as _;

    use super::*;

    #[test]
    fn url_paths_are_those_of_the_kinds() {
        assert_eq!(Pod::<()>::url_path(&(), None), "/api/v1/pods");
        assert_eq!(Node::url_path(&(), None), "/api/v1/nodes");
        assert_eq!(Namespace::url_path(&(), None), "/api/v1/namespaces");
        let leases = "/apis/coordination.k8s.io/v1/leases";
        assert_eq!(Lease::url_path(&(), None), leases);
    }
}
