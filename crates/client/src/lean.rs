//! Objects of which a watch decodes only what its reader needs.
//!
//! Such a type has a field `metadata` of type `ObjectMeta`, and says with [`resource!`](crate::resource) which
//! kind it is.

/// Makes a type with a field `metadata` the kind of this group (its version is `v1`) and plural name.
#[macro_export]
macro_rules! resource {
    ($type:ty, $scope:ty, $group:literal, $kind:literal, $plural:literal) => {
        impl ::kube::Resource for $type {
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

            fn meta(&self) -> &ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        }
    };
}
