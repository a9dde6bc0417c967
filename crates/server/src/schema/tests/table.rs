//! What the schema table must say.

use super::*;

#[test]
fn every_resource_has_its_type() {
    for row in crate::registry::RESOURCES {
        let ty = ty(row.schema);
        assert!(ty.is_kind, "{}", row.schema);
        for name in ["apiVersion", "kind", "metadata"] {
            assert!(ty.field(name).is_some(), "{} {name}", row.schema);
        }
    }
}

#[test]
fn types_and_fields_are_sorted_for_binary_search() {
    assert!(types().windows(2).all(|pair| pair[0].name < pair[1].name));
    for ty in types() {
        let fields = ty.fields;
        assert!(
            fields.windows(2).all(|pair| pair[0].name < pair[1].name),
            "{ty:?}"
        );
    }
}

#[test]
fn protobuf_numbers_are_unique_in_their_message() {
    for ty in types() {
        let direct = ty.fields.iter().filter(|f| f.within == 0 && f.number > 0);
        let mut numbers: Vec<u32> = direct.chain(ty.inlined).map(|f| f.number).collect();
        numbers.sort_unstable();
        assert!(numbers.windows(2).all(|pair| pair[0] != pair[1]), "{ty:?}");
    }
}

#[test]
fn inlined_members_stand_one_level_up() {
    let volume = ty("core.v1.Volume");
    assert!(volume.field("volumeSource").is_none());
    let host_path = volume.field("hostPath").unwrap();
    assert_eq!((host_path.within, host_path.number), (2, 1));
    assert_eq!(volume.inlined[0].number, 2);
    assert!(ty("core.v1.Probe").field("httpGet").is_some());
    assert_eq!(
        ty("authentication.v1.BoundObjectReference")
            .field("uid")
            .unwrap()
            .number,
        4
    );
    assert!(ty("core.v1.DaemonEndpoint").field("Port").is_some());
}

/// Server-side apply takes the field paths of one version of a group for those of the other.
#[test]
fn versions_of_a_group_have_the_same_field_paths() {
    fn compare(one: &Type, other: &Type) {
        if one.name == other.name {
            return;
        }
        let paths = |ty: &Type| -> Vec<_> {
            let fields = ty.fields.iter();
            let path = |f: &Field| (f.name, f.shape, f.list_type, f.list_map_keys, f.atomic);
            fields.map(path).collect()
        };
        assert_eq!(paths(one), paths(other), "{one:?} {other:?}");
        assert_eq!(one.is_atomic, other.is_atomic, "{one:?} {other:?}");
        for (field, same) in one.fields.iter().zip(other.fields) {
            if let (Kind::Object(one), Kind::Object(other)) = (field.kind, same.kind) {
                compare(one, other);
            }
        }
    }
    let rows = crate::registry::RESOURCES;
    let mut compared = 0;
    for one in rows {
        let is_other = |other: &&crate::registry::Resource| {
            (other.group, other.kind) == (one.group, one.kind) && other.version != one.version
        };
        for other in rows.iter().filter(is_other) {
            compare(ty(one.schema), ty(other.schema));
            compared += 1;
        }
    }
    assert!(compared > 0, "no kind has two versions");
}

fn merge_keys() -> Vec<(&'static str, &'static str)> {
    vec![
        ("meta.v1.ObjectMeta ownerReferences", "uid"),
        ("meta.v1.ObjectMeta finalizers", ""),
        ("core.v1.PodSpec containers", "name"),
        ("core.v1.PodSpec initContainers", "name"),
        ("core.v1.PodSpec ephemeralContainers", "name"),
        ("core.v1.PodSpec volumes", "name"),
        ("core.v1.PodSpec imagePullSecrets", "name"),
        ("core.v1.PodSpec hostAliases", "ip"),
        ("core.v1.PodSpec topologySpreadConstraints", "topologyKey"),
        ("core.v1.PodSpec schedulingGates", "name"),
        ("core.v1.PodSpec resourceClaims", "name"),
        ("core.v1.Container env", "name"),
        ("core.v1.Container ports", "containerPort"),
        ("core.v1.Container volumeMounts", "mountPath"),
        ("core.v1.Container volumeDevices", "devicePath"),
        ("core.v1.EphemeralContainer env", "name"),
        ("core.v1.EphemeralContainer volumeMounts", "mountPath"),
        ("core.v1.PodStatus conditions", "type"),
        ("core.v1.PodStatus podIPs", "ip"),
        ("core.v1.PodStatus hostIPs", "ip"),
        ("core.v1.PodStatus resourceClaimStatuses", "name"),
        ("core.v1.ContainerStatus volumeMounts", "mountPath"),
        ("core.v1.ContainerStatus allocatedResourcesStatus", "name"),
        ("core.v1.NodeSpec podCIDRs", ""),
        ("core.v1.NodeStatus conditions", "type"),
        ("core.v1.NodeStatus addresses", "type"),
        ("core.v1.ServiceSpec ports", "port"),
        ("core.v1.ServiceStatus conditions", "type"),
        ("core.v1.NamespaceStatus conditions", "type"),
        ("core.v1.ServiceAccount secrets", "name"),
        ("apps.v1.DaemonSetStatus conditions", "type"),
        ("policy.v1.PodDisruptionBudgetStatus conditions", "type"),
        ("storage.v1.CSINodeSpec drivers", "name"),
    ]
}

#[test]
fn lists_merge_by_the_keys_of_the_contract() {
    for (place, key) in merge_keys() {
        let (name, field) = place.split_once(' ').unwrap();
        let field = ty(name).field(field).unwrap();
        assert_eq!(field.strategy, Strategy::Merge, "{place}");
        assert_eq!(field.merge_key.unwrap_or_default(), key, "{place}");
    }
}

#[test]
fn lists_are_replaced_where_the_contract_says_so() {
    for place in [
        "core.v1.PodSpec tolerations",
        "core.v1.PodSpec readinessGates",
        "core.v1.PodStatus containerStatuses",
        "core.v1.PodStatus initContainerStatuses",
        "core.v1.PodStatus ephemeralContainerStatuses",
        "core.v1.Container args",
        "core.v1.Container command",
        "core.v1.Container envFrom",
        "core.v1.Container resizePolicy",
        "core.v1.NodeSpec taints",
        "core.v1.NodeStatus images",
        "core.v1.NodeStatus volumesAttached",
        "core.v1.NodeStatus volumesInUse",
        "core.v1.ServiceSpec clusterIPs",
        "core.v1.ServiceSpec externalIPs",
        "core.v1.ServiceSpec ipFamilies",
        "core.v1.NodeSelector nodeSelectorTerms",
        "core.v1.Endpoints subsets",
        "discovery.v1.EndpointSlice endpoints",
        "discovery.v1.EndpointSlice ports",
        "rbac.v1.ClusterRole rules",
        "rbac.v1.ClusterRoleBinding subjects",
        "core.v1.ServiceAccount imagePullSecrets",
        "core.v1.ProjectedVolumeSource sources",
        "core.v1.ConfigMapVolumeSource items",
    ] {
        let (name, field) = place.split_once(' ').unwrap();
        let field = ty(name).field(field).unwrap();
        assert_eq!(field.strategy, Strategy::Default, "{place}");
    }
    let selector = ty("policy.v1.PodDisruptionBudgetSpec")
        .field("selector")
        .unwrap();
    assert_eq!(selector.strategy, Strategy::Replace);
    for name in ["volumes", "resourceClaims"] {
        assert!(ty("core.v1.PodSpec").field(name).unwrap().retains_keys);
    }
}
