//! The rows of the registry. Their order is the order of discovery.

use kennel_core::quota::Measurement;
use kennel_types::Verb;

use super::{
    Connect, Conversion, CreateOnly, EmptyCollection, Handler, Heartbeat, Measured,
    MeasuredSubject, NameRule, Part, PostHandler, Resource, Scope, Subject, Subresource,
};
use crate::admit::{self, node_restriction};
use crate::kinds;
use crate::projection;
use crate::table::empty as columns;
use crate::table::{Column, printers};

const ALL: &[Verb] = &[
    Verb::Create,
    Verb::Delete,
    Verb::DeleteCollection,
    Verb::Get,
    Verb::List,
    Verb::Patch,
    Verb::Update,
    Verb::Watch,
];
/// Namespaces are deleted one at a time.
const ALL_BUT_DELETE_COLLECTION: &[Verb] = &[
    Verb::Create,
    Verb::Delete,
    Verb::Get,
    Verb::List,
    Verb::Patch,
    Verb::Update,
    Verb::Watch,
];
/// Objects that are computed from others.
const READ: &[Verb] = &[Verb::Get, Verb::List, Verb::Watch];
const READ_WRITE: &[Verb] = &[Verb::Get, Verb::Patch, Verb::Update];
/// Verbs that open a stream: a POST, or a GET that upgrades to a WebSocket.
const STREAM: &[Verb] = &[Verb::Create, Verb::Get];
/// Verbs that a proxy forwards.
const PROXY: &[Verb] = &[
    Verb::Create,
    Verb::Delete,
    Verb::Get,
    Verb::Patch,
    Verb::Update,
];

/// What a row has that does not say otherwise. Every row sets the fields that are empty here.
const DEFAULTS: Resource = Resource {
    group: "",
    version: "v1",
    plural: "",
    kind: "",
    short_names: &[],
    categories: &[],
    scope: Scope::Namespaced,
    verbs: ALL,
    subresources: &[],
    stored_as: None,
    name_rule: NameRule::Subdomain,
    selectable: &[],
    schema: "",
    create_on_update: false,
    unconditional_update: true,
    delete_returns_object: false,
    recreated: false,
    coalesced: false,
    sensitive: false,
    encrypted: false,
    expendable: false,
    heartbeat: None,
    raw_field: None,
    conversion: None,
    projection: None,
    strategy: &kinds::NoRules,
    admission: &admit::NoAdmission,
    measurement: Measurement::Count,
    node_restriction: &node_restriction::Unrestricted,
    printer: &printers::ROLE,
};

const fn subresource(
    name: &'static str,
    kind: &'static str,
    verbs: &'static [Verb<'static>],
    handler: Handler,
) -> Subresource {
    Subresource {
        name,
        group: None,
        version: None,
        kind,
        verbs,
        handler,
    }
}

const fn status(kind: &'static str) -> Subresource {
    subresource("status", kind, READ_WRITE, Handler::Update(Part::Status))
}

/// Every resource that is stored and watched.
pub static RESOURCES: &[Resource] = &[
    Resource {
        plural: "namespaces",
        kind: "Namespace",
        short_names: &["ns"],
        scope: Scope::Cluster,
        verbs: ALL_BUT_DELETE_COLLECTION,
        subresources: &[
            status("Namespace"),
            subresource(
                "finalize",
                "Namespace",
                &[Verb::Update],
                Handler::Update(Part::Finalize),
            ),
        ],
        name_rule: NameRule::Label,
        selectable: &["status.phase", "name"],
        schema: "core.v1.Namespace",
        delete_returns_object: true,
        strategy: &kinds::namespace::Namespace,
        admission: &admit::namespace::NamespaceAdmission,
        printer: &printers::NAMESPACE,
        ..DEFAULTS
    },
    Resource {
        plural: "nodes",
        kind: "Node",
        short_names: &["no"],
        scope: Scope::Cluster,
        subresources: &[
            status("Node"),
            subresource(
                "proxy",
                "NodeProxyOptions",
                PROXY,
                Handler::Connect(Connect::NodeProxy),
            ),
        ],
        stored_as: Some("minions"),
        selectable: &["spec.unschedulable"],
        schema: "core.v1.Node",
        heartbeat: Some(Heartbeat::Status),
        strategy: &kinds::node::Node,
        admission: &admit::node::NodeAdmission,
        node_restriction: &node_restriction::NodeRule,
        printer: &printers::NODE,
        ..DEFAULTS
    },
    Resource {
        plural: "pods",
        kind: "Pod",
        short_names: &["po"],
        categories: &["all"],
        subresources: &[
            status("Pod"),
            subresource(
                "ephemeralcontainers",
                "Pod",
                READ_WRITE,
                Handler::Update(Part::EphemeralContainers),
            ),
            subresource("binding", "Binding", &[Verb::Create], Handler::Binding),
            Subresource {
                name: "eviction",
                group: Some("policy"),
                version: Some("v1"),
                kind: "Eviction",
                verbs: &[Verb::Create],
                handler: Handler::Eviction,
            },
            subresource("log", "Pod", &[Verb::Get], Handler::Connect(Connect::Log)),
            subresource(
                "exec",
                "PodExecOptions",
                STREAM,
                Handler::Connect(Connect::Exec),
            ),
            subresource(
                "attach",
                "PodAttachOptions",
                STREAM,
                Handler::Connect(Connect::Attach),
            ),
            subresource(
                "portforward",
                "PodPortForwardOptions",
                STREAM,
                Handler::Connect(Connect::PortForward),
            ),
            subresource(
                "proxy",
                "PodProxyOptions",
                PROXY,
                Handler::Connect(Connect::PodProxy),
            ),
        ],
        selectable: &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.podIPs",
            "status.nominatedNodeName",
        ],
        schema: "core.v1.Pod",
        delete_returns_object: true,
        strategy: &kinds::pod::Pod,
        admission: &admit::pod::PodAdmission,
        measurement: Measurement::Pod,
        node_restriction: &node_restriction::PodRule,
        printer: &printers::POD,
        ..DEFAULTS
    },
    Resource {
        plural: "configmaps",
        kind: "ConfigMap",
        short_names: &["cm"],
        schema: "core.v1.ConfigMap",
        strategy: &kinds::configmap::ConfigMap,
        measurement: Measurement::PlainCount,
        printer: &printers::CONFIG_MAP,
        ..DEFAULTS
    },
    Resource {
        plural: "secrets",
        kind: "Secret",
        selectable: &["type"],
        schema: "core.v1.Secret",
        sensitive: true,
        encrypted: true,
        strategy: &kinds::secret::Secret,
        measurement: Measurement::PlainCount,
        printer: &printers::SECRET,
        ..DEFAULTS
    },
    Resource {
        plural: "services",
        kind: "Service",
        short_names: &["svc"],
        categories: &["all"],
        subresources: &[status("Service")],
        stored_as: Some("services/specs"),
        name_rule: NameRule::Label,
        selectable: &["spec.clusterIP", "spec.type"],
        schema: "core.v1.Service",
        create_on_update: true,
        delete_returns_object: true,
        strategy: &kinds::service::Service,
        admission: &admit::service::ServiceAdmission,
        measurement: Measurement::Service,
        printer: &printers::SERVICE,
        ..DEFAULTS
    },
    Resource {
        plural: "endpoints",
        kind: "Endpoints",
        recreated: true,
        short_names: &["ep"],
        stored_as: Some("services/endpoints"),
        schema: "core.v1.Endpoints",
        create_on_update: true,
        strategy: &kinds::endpoints::Endpoints,
        printer: &printers::ENDPOINTS,
        ..DEFAULTS
    },
    Resource {
        plural: "events",
        kind: "Event",
        recreated: true,
        expendable: true,
        short_names: &["ev"],
        selectable: &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        schema: "core.v1.Event",
        create_on_update: true,
        strategy: &kinds::event::CoreEvent,
        measurement: Measurement::Ignored,
        node_restriction: &node_restriction::EventRule,
        printer: &printers::CORE_EVENT,
        ..DEFAULTS
    },
    Resource {
        plural: "serviceaccounts",
        kind: "ServiceAccount",
        short_names: &["sa"],
        subresources: &[Subresource {
            name: "token",
            group: Some("authentication.k8s.io"),
            version: Some("v1"),
            kind: "TokenRequest",
            verbs: &[Verb::Create],
            handler: Handler::Token,
        }],
        schema: "core.v1.ServiceAccount",
        delete_returns_object: true,
        strategy: &kinds::serviceaccount::ServiceAccount,
        printer: &printers::SERVICE_ACCOUNT,
        ..DEFAULTS
    },
    Resource {
        plural: "persistentvolumes",
        kind: "PersistentVolume",
        short_names: &["pv"],
        scope: Scope::Cluster,
        subresources: &[status("PersistentVolume")],
        schema: "core.v1.PersistentVolume",
        delete_returns_object: true,
        strategy: &kinds::persistentvolume::PersistentVolume,
        printer: &printers::PERSISTENT_VOLUME,
        ..DEFAULTS
    },
    Resource {
        plural: "persistentvolumeclaims",
        kind: "PersistentVolumeClaim",
        short_names: &["pvc"],
        subresources: &[status("PersistentVolumeClaim")],
        schema: "core.v1.PersistentVolumeClaim",
        delete_returns_object: true,
        strategy: &kinds::persistentvolumeclaim::PersistentVolumeClaim,
        admission: &admit::limit_range::ClaimAdmission,
        measurement: Measurement::PersistentVolumeClaim,
        node_restriction: &node_restriction::ClaimRule,
        printer: &printers::PERSISTENT_VOLUME_CLAIM,
        ..DEFAULTS
    },
    Resource {
        plural: "resourcequotas",
        kind: "ResourceQuota",
        short_names: &["quota"],
        subresources: &[status("ResourceQuota")],
        schema: "core.v1.ResourceQuota",
        delete_returns_object: true,
        strategy: &kinds::resourcequota::ResourceQuota,
        measurement: Measurement::PlainCount,
        printer: &printers::RESOURCE_QUOTA,
        ..DEFAULTS
    },
    Resource {
        plural: "limitranges",
        kind: "LimitRange",
        short_names: &["limits"],
        schema: "core.v1.LimitRange",
        create_on_update: true,
        strategy: &kinds::limitrange::LimitRange,
        printer: &printers::LIMIT_RANGE,
        ..DEFAULTS
    },
    Resource {
        group: "apps",
        plural: "daemonsets",
        kind: "DaemonSet",
        short_names: &["ds"],
        categories: &["all"],
        subresources: &[status("DaemonSet")],
        schema: "apps.v1.DaemonSet",
        strategy: &kinds::daemonset::DaemonSet,
        admission: &admit::pod_security::TemplateAdmission,
        printer: &printers::DAEMON_SET,
        ..DEFAULTS
    },
    Resource {
        group: "apps",
        plural: "controllerrevisions",
        kind: "ControllerRevision",
        schema: "apps.v1.ControllerRevision",
        strategy: &kinds::controllerrevision::ControllerRevision,
        raw_field: Some("data"),
        printer: &printers::CONTROLLER_REVISION,
        ..DEFAULTS
    },
    Resource {
        group: "discovery.k8s.io",
        plural: "endpointslices",
        kind: "EndpointSlice",
        recreated: true,
        coalesced: true,
        schema: "discovery.v1.EndpointSlice",
        strategy: &kinds::endpointslice::EndpointSlice,
        printer: &printers::ENDPOINT_SLICE,
        ..DEFAULTS
    },
    Resource {
        group: "coordination.k8s.io",
        plural: "leases",
        kind: "Lease",
        recreated: true,
        schema: "coordination.v1.Lease",
        heartbeat: Some(Heartbeat::Lease),
        create_on_update: true,
        unconditional_update: false,
        strategy: &kinds::lease::Lease,
        node_restriction: &node_restriction::LeaseRule,
        printer: &printers::LEASE,
        ..DEFAULTS
    },
    Resource {
        group: "events.k8s.io",
        plural: "events",
        kind: "Event",
        recreated: true,
        expendable: true,
        short_names: &["ev"],
        selectable: &[
            "regarding.kind",
            "regarding.namespace",
            "regarding.name",
            "regarding.uid",
            "regarding.apiVersion",
            "regarding.resourceVersion",
            "regarding.fieldPath",
            "reason",
            "reportingController",
            "type",
        ],
        schema: "events.v1.Event",
        create_on_update: true,
        strategy: &kinds::event::Event,
        measurement: Measurement::Ignored,
        node_restriction: &node_restriction::EventRule,
        conversion: Some(Conversion {
            from_stored: kinds::event::from_core,
            to_stored: kinds::event::to_core,
        }),
        printer: &printers::EVENT,
        ..DEFAULTS
    },
    Resource {
        group: "scheduling.k8s.io",
        plural: "priorityclasses",
        kind: "PriorityClass",
        short_names: &["pc"],
        scope: Scope::Cluster,
        schema: "scheduling.v1.PriorityClass",
        strategy: &kinds::priorityclass::PriorityClass,
        admission: &admit::priority::PriorityClassAdmission,
        printer: &printers::PRIORITY_CLASS,
        ..DEFAULTS
    },
    Resource {
        group: "networking.k8s.io",
        plural: "networkpolicies",
        kind: "NetworkPolicy",
        short_names: &["netpol"],
        schema: "networking.v1.NetworkPolicy",
        strategy: &kinds::networkpolicy::NetworkPolicy,
        printer: &printers::NETWORK_POLICY,
        ..DEFAULTS
    },
    Resource {
        group: "networking.k8s.io",
        plural: "servicecidrs",
        kind: "ServiceCIDR",
        scope: Scope::Cluster,
        verbs: READ,
        schema: "networking.v1.ServiceCIDR",
        projection: Some(&projection::ServiceCidrs),
        printer: &printers::SERVICE_CIDR,
        ..DEFAULTS
    },
    Resource {
        group: "networking.k8s.io",
        plural: "ipaddresses",
        kind: "IPAddress",
        short_names: &["ip"],
        scope: Scope::Cluster,
        verbs: READ,
        schema: "networking.v1.IPAddress",
        projection: Some(&projection::IpAddresses),
        printer: &printers::IP_ADDRESS,
        ..DEFAULTS
    },
    Resource {
        group: "policy",
        plural: "poddisruptionbudgets",
        kind: "PodDisruptionBudget",
        short_names: &["pdb"],
        subresources: &[status("PodDisruptionBudget")],
        schema: "policy.v1.PodDisruptionBudget",
        unconditional_update: false,
        strategy: &kinds::poddisruptionbudget::PodDisruptionBudget,
        printer: &printers::DISRUPTION_BUDGET,
        ..DEFAULTS
    },
    // For kubectl before 1.21 and the clients of its time.
    Resource {
        group: "policy",
        version: "v1beta1",
        plural: "poddisruptionbudgets",
        kind: "PodDisruptionBudget",
        short_names: &["pdb"],
        subresources: &[status("PodDisruptionBudget")],
        schema: "policy.v1beta1.PodDisruptionBudget",
        unconditional_update: false,
        strategy: &kinds::poddisruptionbudget::PodDisruptionBudget,
        conversion: Some(Conversion {
            from_stored: kinds::poddisruptionbudget::to_v1beta1,
            to_stored: kinds::poddisruptionbudget::from_v1beta1,
        }),
        printer: &printers::DISRUPTION_BUDGET,
        ..DEFAULTS
    },
    Resource {
        group: "rbac.authorization.k8s.io",
        plural: "roles",
        kind: "Role",
        name_rule: NameRule::PathSegment,
        schema: "rbac.v1.Role",
        create_on_update: true,
        strategy: &kinds::rbac::Role,
        admission: &admit::escalation::RoleAdmission,
        printer: &printers::ROLE,
        ..DEFAULTS
    },
    Resource {
        group: "rbac.authorization.k8s.io",
        plural: "rolebindings",
        kind: "RoleBinding",
        name_rule: NameRule::PathSegment,
        schema: "rbac.v1.RoleBinding",
        create_on_update: true,
        strategy: &kinds::rbac::ROLE_BINDING,
        admission: &admit::escalation::BindingAdmission,
        printer: &printers::ROLE_BINDING,
        ..DEFAULTS
    },
    Resource {
        group: "rbac.authorization.k8s.io",
        plural: "clusterroles",
        kind: "ClusterRole",
        scope: Scope::Cluster,
        name_rule: NameRule::PathSegment,
        schema: "rbac.v1.ClusterRole",
        create_on_update: true,
        strategy: &kinds::rbac::ClusterRole,
        admission: &admit::escalation::RoleAdmission,
        printer: &printers::ROLE,
        ..DEFAULTS
    },
    Resource {
        group: "rbac.authorization.k8s.io",
        plural: "clusterrolebindings",
        kind: "ClusterRoleBinding",
        scope: Scope::Cluster,
        name_rule: NameRule::PathSegment,
        schema: "rbac.v1.ClusterRoleBinding",
        create_on_update: true,
        strategy: &kinds::rbac::CLUSTER_ROLE_BINDING,
        admission: &admit::escalation::BindingAdmission,
        printer: &printers::ROLE_BINDING,
        ..DEFAULTS
    },
    Resource {
        group: "node.k8s.io",
        plural: "runtimeclasses",
        kind: "RuntimeClass",
        scope: Scope::Cluster,
        schema: "node.v1.RuntimeClass",
        create_on_update: true,
        unconditional_update: false,
        strategy: &kinds::runtimeclass::RuntimeClass,
        printer: &printers::RUNTIME_CLASS,
        ..DEFAULTS
    },
    Resource {
        group: "storage.k8s.io",
        plural: "storageclasses",
        kind: "StorageClass",
        short_names: &["sc"],
        scope: Scope::Cluster,
        schema: "storage.v1.StorageClass",
        delete_returns_object: true,
        strategy: &kinds::storageclass::StorageClass,
        printer: &printers::STORAGE_CLASS,
        ..DEFAULTS
    },
    Resource {
        group: "storage.k8s.io",
        plural: "csinodes",
        kind: "CSINode",
        scope: Scope::Cluster,
        schema: "storage.v1.CSINode",
        unconditional_update: false,
        delete_returns_object: true,
        strategy: &kinds::csi::CsiNode,
        node_restriction: &node_restriction::CsiNodeRule,
        printer: &printers::CSI_NODE,
        ..DEFAULTS
    },
    Resource {
        group: "storage.k8s.io",
        plural: "csidrivers",
        kind: "CSIDriver",
        scope: Scope::Cluster,
        schema: "storage.v1.CSIDriver",
        unconditional_update: false,
        delete_returns_object: true,
        strategy: &kinds::csi::CsiDriver,
        printer: &printers::CSI_DRIVER,
        ..DEFAULTS
    },
    Resource {
        group: "certificates.k8s.io",
        plural: "certificatesigningrequests",
        kind: "CertificateSigningRequest",
        short_names: &["csr"],
        scope: Scope::Cluster,
        subresources: &[
            subresource(
                "approval",
                "CertificateSigningRequest",
                READ_WRITE,
                Handler::Update(Part::Approval),
            ),
            status("CertificateSigningRequest"),
        ],
        selectable: &["spec.signerName"],
        schema: "certificates.v1.CertificateSigningRequest",
        strategy: &kinds::csr::CertificateSigningRequest,
        admission: &admit::signing::SigningAdmission,
        node_restriction: &node_restriction::SigningRule,
        printer: &printers::SIGNING_REQUEST,
        ..DEFAULTS
    },
];

/// A collection of namespaced objects.
const fn empty(
    group: &'static str,
    plural: &'static str,
    kind: &'static str,
    columns: &'static [Column],
) -> EmptyCollection {
    EmptyCollection {
        group,
        version: "v1",
        plural,
        kind,
        scope: Scope::Namespaced,
        columns,
    }
}

const fn empty_cluster(
    group: &'static str,
    plural: &'static str,
    kind: &'static str,
    columns: &'static [Column],
) -> EmptyCollection {
    EmptyCollection {
        scope: Scope::Cluster,
        ..empty(group, plural, kind, columns)
    }
}

/// Collections that are served empty, not advertised, and refuse writes.
pub static EMPTY: &[EmptyCollection] = &[
    empty(
        "",
        "replicationcontrollers",
        "ReplicationController",
        columns::REPLICAS,
    ),
    empty("apps", "replicasets", "ReplicaSet", columns::REPLICAS),
    empty("apps", "statefulsets", "StatefulSet", columns::STATEFUL_SET),
    empty("apps", "deployments", "Deployment", columns::DEPLOYMENT),
    empty_cluster(
        "storage.k8s.io",
        "volumeattachments",
        "VolumeAttachment",
        columns::VOLUME_ATTACHMENT,
    ),
    empty(
        "storage.k8s.io",
        "csistoragecapacities",
        "CSIStorageCapacity",
        columns::STORAGE_CAPACITY,
    ),
    empty_cluster(
        "resource.k8s.io",
        "resourceslices",
        "ResourceSlice",
        columns::RESOURCE_SLICE,
    ),
    empty_cluster(
        "resource.k8s.io",
        "deviceclasses",
        "DeviceClass",
        columns::DEVICE_CLASS,
    ),
    empty(
        "resource.k8s.io",
        "resourceclaims",
        "ResourceClaim",
        columns::RESOURCE_CLAIM,
    ),
    // kubectl asks for it before it says that a kind is unknown.
    empty_cluster(
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        "CustomResourceDefinition",
        columns::OTHER,
    ),
];

const AUTHENTICATION: &str = "authentication.k8s.io";
const AUTHORIZATION: &str = "authorization.k8s.io";

/// What a row has that does not say otherwise. Every row sets the fields that are empty here.
const CREATE_ONLY_DEFAULTS: CreateOnly = CreateOnly {
    group: "",
    version: "v1",
    plural: "",
    kind: "",
    scope: Scope::Cluster,
    schema: "",
    handler: PostHandler::Binding,
};

/// Every resource that can only be created.
pub static CREATE_ONLY: &[CreateOnly] = &[
    CreateOnly {
        plural: "bindings",
        kind: "Binding",
        scope: Scope::Namespaced,
        schema: "core.v1.Binding",
        handler: PostHandler::Binding,
        ..CREATE_ONLY_DEFAULTS
    },
    CreateOnly {
        group: AUTHENTICATION,
        plural: "selfsubjectreviews",
        kind: "SelfSubjectReview",
        schema: "authentication.v1.SelfSubjectReview",
        handler: PostHandler::SelfSubjectReview,
        ..CREATE_ONLY_DEFAULTS
    },
    CreateOnly {
        group: AUTHENTICATION,
        plural: "tokenreviews",
        kind: "TokenReview",
        schema: "authentication.v1.TokenReview",
        handler: PostHandler::TokenReview,
        ..CREATE_ONLY_DEFAULTS
    },
    CreateOnly {
        group: AUTHORIZATION,
        plural: "localsubjectaccessreviews",
        kind: "LocalSubjectAccessReview",
        scope: Scope::Namespaced,
        schema: "authorization.v1.LocalSubjectAccessReview",
        handler: PostHandler::AccessReview(Subject::InNamespace),
        ..CREATE_ONLY_DEFAULTS
    },
    CreateOnly {
        group: AUTHORIZATION,
        plural: "selfsubjectaccessreviews",
        kind: "SelfSubjectAccessReview",
        schema: "authorization.v1.SelfSubjectAccessReview",
        handler: PostHandler::AccessReview(Subject::Caller),
        ..CREATE_ONLY_DEFAULTS
    },
    CreateOnly {
        group: AUTHORIZATION,
        plural: "selfsubjectrulesreviews",
        kind: "SelfSubjectRulesReview",
        schema: "authorization.v1.SelfSubjectRulesReview",
        handler: PostHandler::RulesReview,
        ..CREATE_ONLY_DEFAULTS
    },
    CreateOnly {
        group: AUTHORIZATION,
        plural: "subjectaccessreviews",
        kind: "SubjectAccessReview",
        schema: "authorization.v1.SubjectAccessReview",
        handler: PostHandler::AccessReview(Subject::Any),
        ..CREATE_ONLY_DEFAULTS
    },
];

/// Every resource that is measured: the API of metrics-server.
pub static MEASURED: &[Measured] = &[
    Measured {
        group: "metrics.k8s.io",
        version: "v1beta1",
        plural: "nodes",
        kind: "NodeMetrics",
        scope: Scope::Cluster,
        schema: "metrics.v1beta1.NodeMetrics",
        subject: MeasuredSubject::Nodes,
    },
    Measured {
        group: "metrics.k8s.io",
        version: "v1beta1",
        plural: "pods",
        kind: "PodMetrics",
        scope: Scope::Namespaced,
        schema: "metrics.v1beta1.PodMetrics",
        subject: MeasuredSubject::Pods,
    },
];
