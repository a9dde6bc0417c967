//! The fields of every type of the API. Written by `cargo xtask codegen` from `fields.json`:
//! change the facts there, never this file.

use super::types::{Kind, ListType, Type, f, ty};

static APPS_V1_CONTROLLER_REVISION: Type = ty("apps.v1.ControllerRevision", &[
    f("apiVersion", 0, Kind::String),
    f("data", 2, Kind::Raw),
    f("kind", 0, Kind::String),
    f("metadata", 1, Kind::Object(&META_V1_OBJECT_META)),
    f("revision", 3, Kind::Int64).required(),
]).kind();

static APPS_V1_DAEMON_SET: Type = ty("apps.v1.DaemonSet", &[
    f("apiVersion", 0, Kind::String),
    f("kind", 0, Kind::String),
    f("metadata", 1, Kind::Object(&META_V1_OBJECT_META)),
    f("spec", 2, Kind::Object(&APPS_V1_DAEMON_SET_SPEC)),
    f("status", 3, Kind::Object(&APPS_V1_DAEMON_SET_STATUS)),
]).kind();

static APPS_V1_DAEMON_SET_CONDITION: Type = ty("apps.v1.DaemonSetCondition", &[
    f("lastTransitionTime", 3, Kind::Time),
    f("message", 5, Kind::String),
    f("reason", 4, Kind::String),
    f("status", 2, Kind::String).required().go("v1.ConditionStatus"),
    f("type", 1, Kind::String).required().go("v1.DaemonSetConditionType"),
]);

static APPS_V1_DAEMON_SET_SPEC: Type = ty("apps.v1.DaemonSetSpec", &[
    f("minReadySeconds", 4, Kind::Int32),
    f("revisionHistoryLimit", 6, Kind::Int32).pointer(),
    f("selector", 1, Kind::Object(&META_V1_LABEL_SELECTOR)).required(),
    f("template", 2, Kind::Object(&CORE_V1_POD_TEMPLATE_SPEC)).required(),
    f("updateStrategy", 3, Kind::Object(&APPS_V1_DAEMON_SET_UPDATE_STRATEGY)),
]);

static APPS_V1_DAEMON_SET_STATUS: Type = ty("apps.v1.DaemonSetStatus", &[
    f("collisionCount", 9, Kind::Int32).pointer(),
    f("conditions", 10, Kind::Object(&APPS_V1_DAEMON_SET_CONDITION)).list().list_type(ListType::Map, &["type"]).merged().by("type"),
    f("currentNumberScheduled", 1, Kind::Int32).required(),
    f("desiredNumberScheduled", 3, Kind::Int32).required(),
    f("numberAvailable", 7, Kind::Int32),
    f("numberMisscheduled", 2, Kind::Int32).required(),
    f("numberReady", 4, Kind::Int32).required(),
    f("numberUnavailable", 8, Kind::Int32),
    f("observedGeneration", 5, Kind::Int64),
    f("updatedNumberScheduled", 6, Kind::Int32),
]);

static APPS_V1_DAEMON_SET_UPDATE_STRATEGY: Type = ty("apps.v1.DaemonSetUpdateStrategy", &[
    f("rollingUpdate", 2, Kind::Object(&APPS_V1_ROLLING_UPDATE_DAEMON_SET)),
    f("type", 1, Kind::String).go("v1.DaemonSetUpdateStrategyType"),
]);

static APPS_V1_ROLLING_UPDATE_DAEMON_SET: Type = ty("apps.v1.RollingUpdateDaemonSet", &[
    f("maxSurge", 2, Kind::IntOrString),
    f("maxUnavailable", 1, Kind::IntOrString),
]);

static AUTHENTICATION_V1_BOUND_OBJECT_REFERENCE: Type = ty("authentication.v1.BoundObjectReference", &[
    f("apiVersion", 2, Kind::String),
    f("kind", 1, Kind::String),
    f("name", 3, Kind::String),
    f("uid", 4, Kind::String).go("types.UID"),
]);

static AUTHENTICATION_V1_EXTRA_VALUE: Type = ty("authentication.v1.ExtraValue", &[
    f("items", 1, Kind::String).list(),
]);

static AUTHENTICATION_V1_SELF_SUBJECT_REVIEW: Type = ty("authentication.v1.SelfSubjectReview", &[
    f("apiVersion", 0, Kind::String),
    f("kind", 0, Kind::String),
    f("metadata", 1, Kind::Object(&META_V1_OBJECT_META)),
    f("status", 2, Kind::Object(&AUTHENTICATION_V1_SELF_SUBJECT_REVIEW_STATUS)),
]).kind();

static AUTHENTICATION_V1_SELF_SUBJECT_REVIEW_STATUS: Type = ty("authentication.v1.SelfSubjectReviewStatus", &[
    f("userInfo", 1, Kind::Object(&AUTHENTICATION_V1_USER_INFO)),
]);

static AUTHENTICATION_V1_TOKEN_REQUEST: Type = ty("authentication.v1.TokenRequest", &[
    f("apiVersion", 0, Kind::String),
    f("kind", 0, Kind::String),
    f("metadata", 1, Kind::Object(&META_V1_OBJECT_META)),
    f("spec", 2, Kind::Object(&AUTHENTICATION_V1_TOKEN_REQUEST_SPEC)),
    f("status", 3, Kind::Object(&AUTHENTICATION_V1_TOKEN_REQUEST_STATUS)),
]).kind();

static AUTHENTICATION_V1_TOKEN_REQUEST_SPEC: Type = ty("authentication.v1.TokenRequestSpec", &[
    f("audiences", 1, Kind::String).list().list_type(ListType::Atomic, &[]),
    f("boundObjectRef", 3, Kind::Object(&AUTHENTICATION_V1_BOUND_OBJECT_REFERENCE)),
    f("expirationSeconds", 4, Kind::Int64).pointer(),
]);

static AUTHENTICATION_V1_TOKEN_REQUEST_STATUS: Type = ty("authentication.v1.TokenRequestStatus", &[
    f("expirationTimestamp", 2, Kind::Time),
    f("token", 1, Kind::String),
]);

static AUTHENTICATION_V1_TOKEN_REVIEW: Type = ty("authentication.v1.TokenReview", &[
    f("apiVersion", 0, Kind::String),
    f("kind", 0, Kind::String),
    f("metadata", 1, Kind::Object(&META_V1_OBJECT_META)),
    f("spec", 2, Kind::Object(&AUTHENTICATION_V1_TOKEN_REVIEW_SPEC)).required(),
    f("status", 3, Kind::Object(&AUTHENTICATION_V1_TOKEN_REVIEW_STATUS)),
]).kind();

static AUTHENTICATION_V1_TOKEN_REVIEW_SPEC: Type = ty("authentication.v1.TokenReviewSpec", &[
    f("audiences", 2, Kind::String).list().list_type(ListType::Atomic, &[]),
    f("token", 1, Kind::String).required(),
]);

static AUTHENTICATION_V1_TOKEN_REVIEW_STATUS: Type = ty("authentication.v1.TokenReviewStatus", &[
    f("audiences", 4, Kind::String).list().list_type(ListType::Atomic, &[]),
    f("authenticated", 1, Kind::Bool),
    f("error", 3, Kind::String),
    f("user", 2, Kind::Object(&AUTHENTICATION_V1_USER_INFO)),
]);

static AUTHENTICATION_V1_USER_INFO: Type = ty("authentication.v1.UserInfo", &[
    f("extra", 4, Kind::Strings).map(),
    f("groups", 3, Kind::String).list().list_type(ListType::Atomic, &[]),
    f("uid", 2, Kind::String),
    f("username", 1, Kind::String),
]);

static AUTHORIZATION_V1_EXTRA_VALUE: Type = ty("authorization.v1.ExtraValue", &[
    f("items", 1, Kind::String).list(),
]);

static AUTHORIZATION_V1_FIELD_SELECTOR_ATTRIBUTES: Type = ty("authorization.v1.FieldSelectorAttributes", &[
    f("rawSelector", 1, Kind::String),
    f("requirements", 2, Kind::Object(&META_V1_FIELD_SELECTOR_REQUIREMENT)).list().list_type(ListType::Atomic, &[]),
]);

static AUTHORIZATION_V1_LABEL_SELECTOR_ATTRIBUTES: Type = ty("authorization.v1.LabelSelectorAttributes", &[
    f("rawSelector", 1, Kind::String),
    f("requirements", 2, Kind::Object(&META_V1_LABEL_SELECTOR_REQUIREMENT)).list().list_type(ListType::Atomic, &[]),
]);

static AUTHORIZATION_V1_LOCAL_SUBJECT_ACCESS_REVIEW: Type = ty("authorization.v1.LocalSubjectAccessReview", &[
    f("apiVersion", 0, Kind::String),
    f("kind", 0, Kind::String),
    f("metadata", 1, Kind::Object(&META_V1_OBJECT_META)),
    f("spec", 2, Kind::Object(&AUTHORIZATION_V1_SUBJECT_ACCESS_REVIEW_SPEC)).required(),
    f("status", 3, Kind::Object(&AUTHORIZATION_V1_SUBJECT_ACCESS_REVIEW_STATUS)),
]).kind();

static AUTHORIZATION_V1_NON_RESOURCE_ATTRIBUTES: Type = ty("authorization.v1.NonResourceAttributes", &[
    f("path", 1, Kind::String),
    f("verb", 2, Kind::String),
]);

static AUTHORIZATION_V1_NON_RESOURCE_RULE: Type = ty("authorization.v1.NonResourceRule", &[
    f("nonResourceURLs", 2, Kind::String).list().list_type(ListType::Atomic, &[]),
    f("verbs", 1, Kind::String).list().required().list_type(ListType::Atomic, &[]),
]);

static AUTHORIZATION_V1_RESOURCE_ATTRIBUTES: Type = ty("authorization.v1.ResourceAttributes", &[
    f("fieldSelector", 8, Kind::Object(&AUTHORIZATION_V1_FIELD_SELECTOR_ATTRIBUTES)),
    f("group", 3, Kind::String),
    f("labelSelector", 9, Kind::Object(&AUTHORIZATION_V1_LABEL_SELECTOR_ATTRIBUTES)),
    f("name", 7, Kind::String),
    f("namespace", 1, Kind::String),
    f("resource", 5, Kind::String),
    f("subresource", 6, Kind::String),
    f("verb", 2, Kind::String),
    f("version", 4, Kind::String),
]);

static AUTHORIZATION_V1_RESOURCE_RULE: Type = ty("authorization.v1.ResourceRule", &[
    f("apiGroups", 2, Kind::String).list().list_type(ListType::Atomic, &[]),
    f("resourceNames", 4, Kind::String).list().list_type(ListType::Atomic, &[]),
    f("resources", 3, Kind::String).list().list_type(ListType::Atomic, &[]),
    f("verbs", 1, Kind::String).list().required().list_type(ListType::Atomic, &[]),
]);

static AUTHORIZATION_V1_SELF_SUBJECT_ACCESS_REVIEW: Type = ty("authorization.v1.SelfSubjectAccessReview", &[
    f("apiVersion", 0, Kind::String),
    f("kind", 0, Kind::String),
    f("metadata", 1, Kind::Object(&META_V1_OBJECT_META)),
    f("spec", 2, Kind::Object(&AUTHORIZATION_V1_SELF_SUBJECT_ACCESS_REVIEW_SPEC)).required(),
    f("status", 3, Kind::Object(&AUTHORIZATION_V1_SUBJECT_ACCESS_REVIEW_STATUS)),
]).kind();

static AUTHORIZATION_V1_SELF_SUBJECT_ACCESS_REVIEW_SPEC: Type = ty("authorization.v1.SelfSubjectAccessReviewSpec", &[
    f("nonResourceAttributes", 2, Kind::Object(&AUTHORIZATION_V1_NON_RESOURCE_ATTRIBUTES)),
    f("resourceAttributes", 1, Kind::Object(&AUTHORIZATION_V1_RESOURCE_ATTRIBUTES)),
]);

static AUTHORIZATION_V1_SELF_SUBJECT_RULES_REVIEW: Type = ty("authorization.v1.SelfSubjectRulesReview", &[
    f("apiVersion", 0, Kind::String),
    f("kind", 0, Kind::String),
    f("metadata", 1, Kind::Object(&META_V1_OBJECT_META)),
    f("spec", 2, Kind::Object(&AUTHORIZATION_V1_SELF_SUBJECT_RULES_REVIEW_SPEC)).required(),
    f("status", 3, Kind::Object(&AUTHORIZATION_V1_SUBJECT_RULES_REVIEW_STATUS)),
]).kind();

static AUTHORIZATION_V1_SELF_SUBJECT_RULES_REVIEW_SPEC: Type = ty("authorization.v1.SelfSubjectRulesReviewSpec", &[
    f("namespace", 1, Kind::String),
]);

static AUTHORIZATION_V1_SUBJECT_ACCESS_REVIEW: Type = ty("authorization.v1.SubjectAccessReview", &[
    f("apiVersion", 0, Kind::String),
    f("kind", 0, Kind::String),
    f("metadata", 1, Kind::Object(&META_V1_OBJECT_META)),
    f("spec", 2, Kind::Object(&AUTHORIZATION_V1_SUBJECT_ACCESS_REVIEW_SPEC)).required(),
    f("status", 3, Kind::Object(&AUTHORIZATION_V1_SUBJECT_ACCESS_REVIEW_STATUS)),
]).kind();

static AUTHORIZATION_V1_SUBJECT_ACCESS_REVIEW_SPEC: Type = ty("authorization.v1.SubjectAccessReviewSpec", &[
    f("extra", 5, Kind::Strings).map(),
    f("groups", 4, Kind::String).list().list_type(ListType::Atomic, &[]),
    f("nonResourceAttributes", 2, Kind::Object(&AUTHORIZATION_V1_NON_RESOURCE_ATTRIBUTES)),
    f("resourceAttributes", 1, Kind::Object(&AUTHORIZATION_V1_RESOURCE_ATTRIBUTES)),
    f("uid", 6, Kind::String),
    f("user", 3, Kind::String),
]);

static AUTHORIZATION_V1_SUBJECT_ACCESS_REVIEW_STATUS: Type = ty("authorization.v1.SubjectAccessReviewStatus", &[
    f("allowed", 1, Kind::Bool).required(),
    f("denied", 4, Kind::Bool),
    f("evaluationError", 3, Kind::String),
    f("reason", 2, Kind::String),
]);

static AUTHORIZATION_V1_SUBJECT_RULES_REVIEW_STATUS: Type = ty("authorization.v1.SubjectRulesReviewStatus", &[
    f("evaluationError", 4, Kind::String),
    f("incomplete", 3, Kind::Bool).required(),
    f("nonResourceRules", 2, Kind::Object(&AUTHORIZATION_V1_NON_RESOURCE_RULE)).list().required().list_type(ListType::Atomic, &[]),
    f("resourceRules", 1, Kind::Object(&AUTHORIZATION_V1_RESOURCE_RULE)).list().required().list_type(ListType::Atomic, &[]),
]);

static CERTIFICATES_V1_CERTIFICATE_SIGNING_REQUEST: Type = ty("certificates.v1.CertificateSigningRequest", &[
    f("apiVersion", 0, Kind::String),
    f("kind", 0, Kind::String),
    f("metadata", 1, Kind::Object(&META_V1_OBJECT_META)),
    f("spec", 2, Kind::Object(&CERTIFICATES_V1_CERTIFICATE_SIGNING_REQUEST_SPEC)).required(),
    f("status", 3, Kind::Object(&CERTIFICATES_V1_CERTIFICATE_SIGNING_REQUEST_STATUS)),
]).kind();

static CERTIFICATES_V1_CERTIFICATE_SIGNING_REQUEST_CONDITION: Type = ty("certificates.v1.CertificateSigningRequestCondition", &[
    f("lastTransitionTime", 5, Kind::Time),
    f("lastUpdateTime", 4, Kind::Time),
    f("message", 3, Kind::String),
    f("reason", 2, Kind::String),
    f("status", 6, Kind::String).required().go("v1.ConditionStatus"),
    f("type", 1, Kind::String).required().go("v1.RequestConditionType"),
]);

static CERTIFICATES_V1_CERTIFICATE_SIGNING_REQUEST_SPEC: Type = ty("certificates.v1.CertificateSigningRequestSpec", &[
    f("expirationSeconds", 8, Kind::Int32).pointer(),
    f("extra", 6, Kind::Strings).map(),
    f("groups", 4, Kind::String).list().list_type(ListType::Atomic, &[]),
    f("request", 1, Kind::Bytes).required(),
    f("signerName", 7, Kind::String).required(),
    f("uid", 3, Kind::String),
    f("usages", 5, Kind::String).list().list_type(ListType::Atomic, &[]).go("v1.KeyUsage"),
    f("username", 2, Kind::String),
]);

static CERTIFICATES_V1_CERTIFICATE_SIGNING_REQUEST_STATUS: Type = ty("certificates.v1.CertificateSigningRequestStatus", &[
    f("certificate", 2, Kind::Bytes),
    f("conditions", 1, Kind::Object(&CERTIFICATES_V1_CERTIFICATE_SIGNING_REQUEST_CONDITION)).list().list_type(ListType::Map, &["type"]),
]);

static CERTIFICATES_V1_EXTRA_VALUE: Type = ty("certificates.v1.ExtraValue", &[
    f("items", 1, Kind::String).list(),
]);

static COORDINATION_V1_LEASE: Type = ty("coordination.v1.Lease", &[
    f("apiVersion", 0, Kind::String),
    f("kind", 0, Kind::String),
    f("metadata", 1, Kind::Object(&META_V1_OBJECT_META)),
    f("spec", 2, Kind::Object(&COORDINATION_V1_LEASE_SPEC)),
]).kind();

static COORDINATION_V1_LEASE_SPEC: Type = ty("coordination.v1.LeaseSpec", &[
    f("acquireTime", 3, Kind::MicroTime),
    f("holderIdentity", 1, Kind::String).pointer(),
    f("leaseDurationSeconds", 2, Kind::Int32).pointer(),
    f("leaseTransitions", 5, Kind::Int32).pointer(),
    f("preferredHolder", 7, Kind::String).pointer(),
    f("renewTime", 4, Kind::MicroTime),
    f("strategy", 6, Kind::String).pointer().go("v1.CoordinatedLeaseStrategy"),
]);

static CORE_V1_AWSELASTIC_BLOCK_STORE_VOLUME_SOURCE: Type = ty("core.v1.AWSElasticBlockStoreVolumeSource", &[
    f("fsType", 2, Kind::String),
    f("partition", 3, Kind::Int32),
    f("readOnly", 4, Kind::Bool),
    f("volumeID", 1, Kind::String).required(),
]);

static CORE_V1_AFFINITY: Type = ty("core.v1.Affinity", &[
    f("nodeAffinity", 1, Kind::Object(&CORE_V1_NODE_AFFINITY)),
    f("podAffinity", 2, Kind::Object(&CORE_V1_POD_AFFINITY)),
    f("podAntiAffinity", 3, Kind::Object(&CORE_V1_POD_ANTI_AFFINITY)),
]);

static CORE_V1_APP_ARMOR_PROFILE: Type = ty("core.v1.AppArmorProfile", &[
    f("localhostProfile", 2, Kind::String).pointer(),
    f("type", 1, Kind::String).required().go("v1.AppArmorProfileType"),
]);

static CORE_V1_ATTACHED_VOLUME: Type = ty("core.v1.AttachedVolume", &[
    f("devicePath", 2, Kind::String).required(),
    f("name", 1, Kind::String).required().go("v1.UniqueVolumeName"),
]);

static CORE_V1_AZURE_DISK_VOLUME_SOURCE: Type = ty("core.v1.AzureDiskVolumeSource", &[
    f("cachingMode", 3, Kind::String).pointer().default("ReadWrite").go("v1.AzureDataDiskCachingMode"),
    f("diskName", 1, Kind::String).required(),
    f("diskURI", 2, Kind::String).required(),
    f("fsType", 4, Kind::String).pointer().default("ext4"),
    f("kind", 6, Kind::String).pointer().default("Shared").go("v1.AzureDataDiskKind"),
    f("readOnly", 5, Kind::Bool).pointer(),
]);

static CORE_V1_AZURE_FILE_PERSISTENT_VOLUME_SOURCE: Type = ty("core.v1.AzureFilePersistentVolumeSource", &[
    f("readOnly", 3, Kind::Bool),
    f("secretName", 1, Kind::String).required(),
    f("secretNamespace", 4, Kind::String).pointer(),
    f("shareName", 2, Kind::String).required(),
]);

static CORE_V1_AZURE_FILE_VOLUME_SOURCE: Type = ty("core.v1.AzureFileVolumeSource", &[
    f("readOnly", 3, Kind::Bool),
    f("secretName", 1, Kind::String).required(),
    f("shareName", 2, Kind::String).required(),
]);

static CORE_V1_BINDING: Type = ty("core.v1.Binding", &[
    f("apiVersion", 0, Kind::String),
    f("kind", 0, Kind::String),
    f("metadata", 1, Kind::Object(&META_V1_OBJECT_META)),
    f("target", 2, Kind::Object(&CORE_V1_OBJECT_REFERENCE)).required(),
]).kind();

static CORE_V1_CSIPERSISTENT_VOLUME_SOURCE: Type = ty("core.v1.CSIPersistentVolumeSource", &[
    f("controllerExpandSecretRef", 9, Kind::Object(&CORE_V1_SECRET_REFERENCE)),
    f("controllerPublishSecretRef", 6, Kind::Object(&CORE_V1_SECRET_REFERENCE)),
    f("driver", 1, Kind::String).required(),
    f("fsType", 4, Kind::String),
    f("nodeExpandSecretRef", 10, Kind::Object(&CORE_V1_SECRET_REFERENCE)),
    f("nodePublishSecretRef", 8, Kind::Object(&CORE_V1_SECRET_REFERENCE)),
    f("nodeStageSecretRef", 7, Kind::Object(&CORE_V1_SECRET_REFERENCE)),
    f("readOnly", 3, Kind::Bool),
    f("volumeAttributes", 5, Kind::String).map(),
    f("volumeHandle", 2, Kind::String).required(),
]);

static CORE_V1_CSIVOLUME_SOURCE: Type = ty("core.v1.CSIVolumeSource", &[
    f("driver", 1, Kind::String).required(),
    f("fsType", 3, Kind::String).pointer(),
    f("nodePublishSecretRef", 5, Kind::Object(&CORE_V1_LOCAL_OBJECT_REFERENCE)),
    f("readOnly", 2, Kind::Bool).pointer(),
    f("volumeAttributes", 4, Kind::String).map(),
]);

static CORE_V1_CAPABILITIES: Type = ty("core.v1.Capabilities", &[
    f("add", 1, Kind::String).list().list_type(ListType::Atomic, &[]).go("v1.Capability"),
    f("drop", 2, Kind::String).list().list_type(ListType::Atomic, &[]).go("v1.Capability"),
]);

static CORE_V1_CEPH_FSPERSISTENT_VOLUME_SOURCE: Type = ty("core.v1.CephFSPersistentVolumeSource", &[
    f("monitors", 1, Kind::String).list().required().list_type(ListType::Atomic, &[]),
    f("path", 2, Kind::String),
    f("readOnly", 6, Kind::Bool),
    f("secretFile", 4, Kind::String),
    f("secretRef", 5, Kind::Object(&CORE_V1_SECRET_REFERENCE)),
    f("user", 3, Kind::String),
]);

static CORE_V1_CEPH_FSVOLUME_SOURCE: Type = ty("core.v1.CephFSVolumeSource", &[
    f("monitors", 1, Kind::String).list().required().list_type(ListType::Atomic, &[]),
    f("path", 2, Kind::String),
    f("readOnly", 6, Kind::Bool),
    f("secretFile", 4, Kind::String),
    f("secretRef", 5, Kind::Object(&CORE_V1_LOCAL_OBJECT_REFERENCE)),
    f("user", 3, Kind::String),
]);

static CORE_V1_CINDER_PERSISTENT_VOLUME_SOURCE: Type = ty("core.v1.CinderPersistentVolumeSource", &[
    f("fsType", 2, Kind::String),
    f("readOnly", 3, Kind::Bool),
    f("secretRef", 4, Kind::Object(&CORE_V1_SECRET_REFERENCE)),
    f("volumeID", 1, Kind::String).required(),
]);

static CORE_V1_CINDER_VOLUME_SOURCE: Type = ty("core.v1.CinderVolumeSource", &[
    f("fsType", 2, Kind::String),
    f("readOnly", 3, Kind::Bool),
    f("secretRef", 4, Kind::Object(&CORE_V1_LOCAL_OBJECT_REFERENCE)),
    f("volumeID", 1, Kind::String).required(),
]);

static CORE_V1_CLIENT_IPCONFIG: Type = ty("core.v1.ClientIPConfig", &[
    f("timeoutSeconds", 1, Kind::Int32).pointer(),
]);

static CORE_V1_CLUSTER_TRUST_BUNDLE_PROJECTION: Type = ty("core.v1.ClusterTrustBundleProjection", &[
    f("labelSelector", 3, Kind::Object(&META_V1_LABEL_SELECTOR)),
    f("name", 1, Kind::String).pointer(),
    f("optional", 5, Kind::Bool).pointer(),
    f("path", 4, Kind::String).required(),
    f("signerName", 2, Kind::String).pointer(),
]);

static CORE_V1_CONFIG_MAP: Type = ty("core.v1.ConfigMap", &[
    f("apiVersion", 0, Kind::String),
    f("binaryData", 3, Kind::Bytes).map(),
    f("data", 2, Kind::String).map(),
    f("immutable", 4, Kind::Bool).pointer(),
    f("kind", 0, Kind::String),
    f("metadata", 1, Kind::Object(&META_V1_OBJECT_META)),
]).kind();

static CORE_V1_CONFIG_MAP_ENV_SOURCE: Type = ty("core.v1.ConfigMapEnvSource", &[
    f("name", 1, Kind::String).within(1),
    f("optional", 2, Kind::Bool).pointer(),
]).inlining(&[f("localObjectReference", 1, Kind::Object(&CORE_V1_LOCAL_OBJECT_REFERENCE))]);

static CORE_V1_CONFIG_MAP_KEY_SELECTOR: Type = ty("core.v1.ConfigMapKeySelector", &[
    f("key", 2, Kind::String).required(),
    f("name", 1, Kind::String).within(1),
    f("optional", 3, Kind::Bool).pointer(),
]).inlining(&[f("localObjectReference", 1, Kind::Object(&CORE_V1_LOCAL_OBJECT_REFERENCE))]).atomic();

static CORE_V1_CONFIG_MAP_NODE_CONFIG_SOURCE: Type = ty("core.v1.ConfigMapNodeConfigSource", &[
    f("kubeletConfigKey", 5, Kind::String).required(),
    f("name", 2, Kind::String).required(),
    f("namespace", 1, Kind::String).required(),
    f("resourceVersion", 4, Kind::String),
    f("uid", 3, Kind::String),
]);

static CORE_V1_CONFIG_MAP_PROJECTION: Type = ty("core.v1.ConfigMapProjection", &[
    f("items", 2, Kind::Object(&CORE_V1_KEY_TO_PATH)).list().list_type(ListType::Atomic, &[]),
    f("name", 1, Kind::String).within(1),
    f("optional", 4, Kind::Bool).pointer(),
]).inlining(&[f("localObjectReference", 1, Kind::Object(&CORE_V1_LOCAL_OBJECT_REFERENCE))]);

static CORE_V1_CONFIG_MAP_VOLUME_SOURCE: Type = ty("core.v1.ConfigMapVolumeSource", &[
    f("defaultMode", 3, Kind::Int32).pointer(),
    f("items", 2, Kind::Object(&CORE_V1_KEY_TO_PATH)).list().list_type(ListType::Atomic, &[]),
    f("name", 1, Kind::String).within(1),
    f("optional", 4, Kind::Bool).pointer(),
]).inlining(&[f("localObjectReference", 1, Kind::Object(&CORE_V1_LOCAL_OBJECT_REFERENCE))]);

static CORE_V1_CONTAINER: Type = ty("core.v1.Container", &[
    f("args", 4, Kind::String).list().list_type(ListType::Atomic, &[]),
    f("command", 3, Kind::String).list().list_type(ListType::Atomic, &[]),
    f("env", 7, Kind::Object(&CORE_V1_ENV_VAR)).list().list_type(ListType::Map, &["name"]).merged().by("name"),
    f("envFrom", 19, Kind::Object(&CORE_V1_ENV_FROM_SOURCE)).list().list_type(ListType::Atomic, &[]),
    f("image", 2, Kind::String),
    f("imagePullPolicy", 14, Kind::String).go("v1.PullPolicy"),
    f("lifecycle", 12, Kind::Object(&CORE_V1_LIFECYCLE)),
    f("livenessProbe", 10, Kind::Object(&CORE_V1_PROBE)),
    f("name", 1, Kind::String).required(),
    f("ports", 6, Kind::Object(&CORE_V1_CONTAINER_PORT)).list().list_type(ListType::Map, &["containerPort", "protocol"]).merged().by("containerPort"),
    f("readinessProbe", 11, Kind::Object(&CORE_V1_PROBE)),
    f("resizePolicy", 23, Kind::Object(&CORE_V1_CONTAINER_RESIZE_POLICY)).list().list_type(ListType::Atomic, &[]),
    f("resources", 8, Kind::Object(&CORE_V1_RESOURCE_REQUIREMENTS)),
    f("restartPolicy", 24, Kind::String).pointer().go("v1.ContainerRestartPolicy"),
    f("restartPolicyRules", 25, Kind::Object(&CORE_V1_CONTAINER_RESTART_RULE)).list().list_type(ListType::Atomic, &[]),
    f("securityContext", 15, Kind::Object(&CORE_V1_SECURITY_CONTEXT)),
    f("startupProbe", 22, Kind::Object(&CORE_V1_PROBE)),
    f("stdin", 16, Kind::Bool),
    f("stdinOnce", 17, Kind::Bool),
    f("terminationMessagePath", 13, Kind::String),
    f("terminationMessagePolicy", 20, Kind::String).go("v1.TerminationMessagePolicy"),
    f("tty", 18, Kind::Bool),
    f("volumeDevices", 21, Kind::Object(&CORE_V1_VOLUME_DEVICE)).list().list_type(ListType::Map, &["devicePath"]).merged().by("devicePath"),
    f("volumeMounts", 9, Kind::Object(&CORE_V1_VOLUME_MOUNT)).list().list_type(ListType::Map, &["mountPath"]).merged().by("mountPath"),
    f("workingDir", 5, Kind::String),
]);

static CORE_V1_CONTAINER_EXTENDED_RESOURCE_REQUEST: Type = ty("core.v1.ContainerExtendedResourceRequest", &[
    f("containerName", 1, Kind::String).required(),
    f("requestName", 3, Kind::String).required(),
    f("resourceName", 2, Kind::String).required(),
]);

static CORE_V1_CONTAINER_IMAGE: Type = ty("core.v1.ContainerImage", &[
    f("names", 1, Kind::String).list().list_type(ListType::Atomic, &[]),
    f("sizeBytes", 2, Kind::Int64),
]);

static CORE_V1_CONTAINER_PORT: Type = ty("core.v1.ContainerPort", &[
    f("containerPort", 3, Kind::Int32).required(),
    f("hostIP", 5, Kind::String),
    f("hostPort", 2, Kind::Int32),
    f("name", 1, Kind::String),
    f("protocol", 4, Kind::String).default("TCP").go("v1.Protocol"),
]);

static CORE_V1_CONTAINER_RESIZE_POLICY: Type = ty("core.v1.ContainerResizePolicy", &[
    f("resourceName", 1, Kind::String).required().go("v1.ResourceName"),
    f("restartPolicy", 2, Kind::String).required().go("v1.ResourceResizeRestartPolicy"),
]);

static CORE_V1_CONTAINER_RESTART_RULE: Type = ty("core.v1.ContainerRestartRule", &[
    f("action", 1, Kind::String).required(),
    f("exitCodes", 2, Kind::Object(&CORE_V1_CONTAINER_RESTART_RULE_ON_EXIT_CODES)),
]);

static CORE_V1_CONTAINER_RESTART_RULE_ON_EXIT_CODES: Type = ty("core.v1.ContainerRestartRuleOnExitCodes", &[
    f("operator", 1, Kind::String).required(),
    f("values", 2, Kind::Int32).list().list_type(ListType::Set, &[]),
]);

static CORE_V1_CONTAINER_STATE: Type = ty("core.v1.ContainerState", &[
    f("running", 2, Kind::Object(&CORE_V1_CONTAINER_STATE_RUNNING)),
    f("terminated", 3, Kind::Object(&CORE_V1_CONTAINER_STATE_TERMINATED)),
    f("waiting", 1, Kind::Object(&CORE_V1_CONTAINER_STATE_WAITING)),
]);

static CORE_V1_CONTAINER_STATE_RUNNING: Type = ty("core.v1.ContainerStateRunning", &[
    f("startedAt", 1, Kind::Time),
]);

static CORE_V1_CONTAINER_STATE_TERMINATED: Type = ty("core.v1.ContainerStateTerminated", &[
    f("containerID", 7, Kind::String),
    f("exitCode", 1, Kind::Int32).required(),
    f("finishedAt", 6, Kind::Time),
    f("message", 4, Kind::String),
    f("reason", 3, Kind::String),
    f("signal", 2, Kind::Int32),
    f("startedAt", 5, Kind::Time),
]);

static CORE_V1_CONTAINER_STATE_WAITING: Type = ty("core.v1.ContainerStateWaiting", &[
    f("message", 2, Kind::String),
    f("reason", 1, Kind::String),
]);

static CORE_V1_CONTAINER_STATUS: Type = ty("core.v1.ContainerStatus", &[
    f("allocatedResources", 10, Kind::Quantity).map(),
    f("allocatedResourcesStatus", 14, Kind::Object(&CORE_V1_RESOURCE_STATUS)).list().list_type(ListType::Map, &["name"]).merged().by("name"),
    f("containerID", 8, Kind::String),
    f("image", 6, Kind::String).required(),
    f("imageID", 7, Kind::String).required(),
    f("lastState", 3, Kind::Object(&CORE_V1_CONTAINER_STATE)),
    f("name", 1, Kind::String).required(),
    f("ready", 4, Kind::Bool).required(),
    f("resources", 11, Kind::Object(&CORE_V1_RESOURCE_REQUIREMENTS)),
    f("restartCount", 5, Kind::Int32).required(),
    f("started", 9, Kind::Bool).pointer(),
    f("state", 2, Kind::Object(&CORE_V1_CONTAINER_STATE)),
    f("stopSignal", 15, Kind::String).pointer().go("v1.Signal"),
    f("user", 13, Kind::Object(&CORE_V1_CONTAINER_USER)),
    f("volumeMounts", 12, Kind::Object(&CORE_V1_VOLUME_MOUNT_STATUS)).list().list_type(ListType::Map, &["mountPath"]).merged().by("mountPath"),
]);

static CORE_V1_CONTAINER_USER: Type = ty("core.v1.ContainerUser", &[
    f("linux", 1, Kind::Object(&CORE_V1_LINUX_CONTAINER_USER)),
]);

static CORE_V1_DAEMON_ENDPOINT: Type = ty("core.v1.DaemonEndpoint", &[
    f("Port", 1, Kind::Int32).required(),
]);

static CORE_V1_DOWNWARD_APIPROJECTION: Type = ty("core.v1.DownwardAPIProjection", &[
    f("items", 1, Kind::Object(&CORE_V1_DOWNWARD_APIVOLUME_FILE)).list().list_type(ListType::Atomic, &[]),
]);

static CORE_V1_DOWNWARD_APIVOLUME_FILE: Type = ty("core.v1.DownwardAPIVolumeFile", &[
    f("fieldRef", 2, Kind::Object(&CORE_V1_OBJECT_FIELD_SELECTOR)),
    f("mode", 4, Kind::Int32).pointer(),
    f("path", 1, Kind::String).required(),
    f("resourceFieldRef", 3, Kind::Object(&CORE_V1_RESOURCE_FIELD_SELECTOR)),
]);

static CORE_V1_DOWNWARD_APIVOLUME_SOURCE: Type = ty("core.v1.DownwardAPIVolumeSource", &[
    f("defaultMode", 2, Kind::Int32).pointer(),
    f("items", 1, Kind::Object(&CORE_V1_DOWNWARD_APIVOLUME_FILE)).list().list_type(ListType::Atomic, &[]),
]);

static CORE_V1_EMPTY_DIR_VOLUME_SOURCE: Type = ty("core.v1.EmptyDirVolumeSource", &[
    f("medium", 1, Kind::String).go("v1.StorageMedium"),
    f("sizeLimit", 2, Kind::Quantity),
]);

static CORE_V1_ENDPOINT_ADDRESS: Type = ty("core.v1.EndpointAddress", &[
    f("hostname", 3, Kind::String),
    f("ip", 1, Kind::String).required(),
    f("nodeName", 4, Kind::String).pointer(),
    f("targetRef", 2, Kind::Object(&CORE_V1_OBJECT_REFERENCE)),
]).atomic();

static CORE_V1_ENDPOINT_PORT: Type = ty("core.v1.EndpointPort", &[
    f("appProtocol", 4, Kind::String).pointer(),
    f("name", 1, Kind::String),
    f("port", 2, Kind::Int32).required(),
    f("protocol", 3, Kind::String).go("v1.Protocol"),
]).atomic();

static CORE_V1_ENDPOINT_SUBSET: Type = ty("core.v1.EndpointSubset", &[
    f("addresses", 1, Kind::Object(&CORE_V1_ENDPOINT_ADDRESS)).list().list_type(ListType::Atomic, &[]),
    f("notReadyAddresses", 2, Kind::Object(&CORE_V1_ENDPOINT_ADDRESS)).list().list_type(ListType::Atomic, &[]),
    f("ports", 3, Kind::Object(&CORE_V1_ENDPOINT_PORT)).list().list_type(ListType::Atomic, &[]),
]);

static CORE_V1_ENDPOINTS: Type = ty("core.v1.Endpoints", &[
    f("apiVersion", 0, Kind::String),
    f("kind", 0, Kind::String),
    f("metadata", 1, Kind::Object(&META_V1_OBJECT_META)),
    f("subsets", 2, Kind::Object(&CORE_V1_ENDPOINT_SUBSET)).list().list_type(ListType::Atomic, &[]),
]).kind();

static CORE_V1_ENV_FROM_SOURCE: Type = ty("core.v1.EnvFromSource", &[
    f("configMapRef", 2, Kind::Object(&CORE_V1_CONFIG_MAP_ENV_SOURCE)),
    f("prefix", 1, Kind::String),
    f("secretRef", 3, Kind::Object(&CORE_V1_SECRET_ENV_SOURCE)),
]);

static CORE_V1_ENV_VAR: Type = ty("core.v1.EnvVar", &[
    f("name", 1, Kind::String).required(),
    f("value", 2, Kind::String),
    f("valueFrom", 3, Kind::Object(&CORE_V1_ENV_VAR_SOURCE)),
]);

static CORE_V1_ENV_VAR_SOURCE: Type = ty("core.v1.EnvVarSource", &[
    f("configMapKeyRef", 3, Kind::Object(&CORE_V1_CONFIG_MAP_KEY_SELECTOR)),
    f("fieldRef", 1, Kind::Object(&CORE_V1_OBJECT_FIELD_SELECTOR)),
    f("fileKeyRef", 5, Kind::Object(&CORE_V1_FILE_KEY_SELECTOR)),
    f("resourceFieldRef", 2, Kind::Object(&CORE_V1_RESOURCE_FIELD_SELECTOR)),
    f("secretKeyRef", 4, Kind::Object(&CORE_V1_SECRET_KEY_SELECTOR)),
]);

static CORE_V1_EPHEMERAL_CONTAINER: Type = ty("core.v1.EphemeralContainer", &[
    f("args", 4, Kind::String).list().within(1),
    f("command", 3, Kind::String).list().within(1),
    f("env", 7, Kind::Object(&CORE_V1_ENV_VAR)).list().list_type(ListType::Map, &["name"]).merged().by("name").within(1),
    f("envFrom", 19, Kind::Object(&CORE_V1_ENV_FROM_SOURCE)).list().within(1),
    f("image", 2, Kind::String).within(1),
    f("imagePullPolicy", 14, Kind::String).go("v1.PullPolicy").within(1),
    f("lifecycle", 12, Kind::Object(&CORE_V1_LIFECYCLE)).within(1),
    f("livenessProbe", 10, Kind::Object(&CORE_V1_PROBE)).within(1),
    f("name", 1, Kind::String).within(1),
    f("ports", 6, Kind::Object(&CORE_V1_CONTAINER_PORT)).list().list_type(ListType::Map, &["containerPort", "protocol"]).merged().by("containerPort").within(1),
    f("readinessProbe", 11, Kind::Object(&CORE_V1_PROBE)).within(1),
    f("resizePolicy", 23, Kind::Object(&CORE_V1_CONTAINER_RESIZE_POLICY)).list().within(1),
    f("resources", 8, Kind::Object(&CORE_V1_RESOURCE_REQUIREMENTS)).within(1),
    f("restartPolicy", 24, Kind::String).pointer().go("v1.ContainerRestartPolicy").within(1),
    f("restartPolicyRules", 25, Kind::Object(&CORE_V1_CONTAINER_RESTART_RULE)).list().within(1),
    f("securityContext", 15, Kind::Object(&CORE_V1_SECURITY_CONTEXT)).within(1),
    f("startupProbe", 22, Kind::Object(&CORE_V1_PROBE)).within(1),
    f("stdin", 16, Kind::Bool).within(1),
    f("stdinOnce", 17, Kind::Bool).within(1),
    f("targetContainerName", 2, Kind::String),
    f("terminationMessagePath", 13, Kind::String).within(1),
    f("terminationMessagePolicy", 20, Kind::String).go("v1.TerminationMessagePolicy").within(1),
    f("tty", 18, Kind::Bool).within(1),
    f("volumeDevices", 21, Kind::Object(&CORE_V1_VOLUME_DEVICE)).list().list_type(ListType::Map, &["devicePath"]).merged().by("devicePath").within(1),
    f("volumeMounts", 9, Kind::Object(&CORE_V1_VOLUME_MOUNT)).list().list_type(ListType::Map, &["mountPath"]).merged().by("mountPath").within(1),
    f("workingDir", 5, Kind::String).within(1),
]).inlining(&[f("ephemeralContainerCommon", 1, Kind::Object(&CORE_V1_EPHEMERAL_CONTAINER_COMMON))]);

static CORE_V1_EPHEMERAL_CONTAINER_COMMON: Type = ty("core.v1.EphemeralContainerCommon", &[
    f("args", 4, Kind::String).list(),
    f("command", 3, Kind::String).list(),
    f("env", 7, Kind::Object(&CORE_V1_ENV_VAR)).list().list_type(ListType::Map, &["name"]).merged().by("name"),
    f("envFrom", 19, Kind::Object(&CORE_V1_ENV_FROM_SOURCE)).list(),
    f("image", 2, Kind::String),
    f("imagePullPolicy", 14, Kind::String).go("v1.PullPolicy"),
    f("lifecycle", 12, Kind::Object(&CORE_V1_LIFECYCLE)),
    f("livenessProbe", 10, Kind::Object(&CORE_V1_PROBE)),
    f("name", 1, Kind::String),
    f("ports", 6, Kind::Object(&CORE_V1_CONTAINER_PORT)).list().list_type(ListType::Map, &["containerPort", "protocol"]).merged().by("containerPort"),
    f("readinessProbe", 11, Kind::Object(&CORE_V1_PROBE)),
    f("resizePolicy", 23, Kind::Object(&CORE_V1_CONTAINER_RESIZE_POLICY)).list(),
    f("resources", 8, Kind::Object(&CORE_V1_RESOURCE_REQUIREMENTS)),
    f("restartPolicy", 24, Kind::String).pointer().go("v1.ContainerRestartPolicy"),
    f("restartPolicyRules", 25, Kind::Object(&CORE_V1_CONTAINER_RESTART_RULE)).list(),
    f("securityContext", 15, Kind::Object(&CORE_V1_SECURITY_CONTEXT)),
    f("startupProbe", 22, Kind::Object(&CORE_V1_PROBE)),
    f("stdin", 16, Kind::Bool),
    f("stdinOnce", 17, Kind::Bool),
    f("terminationMessagePath", 13, Kind::String),
    f("terminationMessagePolicy", 20, Kind::String).go("v1.TerminationMessagePolicy"),
    f("tty", 18, Kind::Bool),
    f("volumeDevices", 21, Kind::Object(&CORE_V1_VOLUME_DEVICE)).list().list_type(ListType::Map, &["devicePath"]).merged().by("devicePath"),
    f("volumeMounts", 9, Kind::Object(&CORE_V1_VOLUME_MOUNT)).list().list_type(ListType::Map, &["mountPath"]).merged().by("mountPath"),
    f("workingDir", 5, Kind::String),
]);

static CORE_V1_EPHEMERAL_VOLUME_SOURCE: Type = ty("core.v1.EphemeralVolumeSource", &[
    f("volumeClaimTemplate", 1, Kind::Object(&CORE_V1_PERSISTENT_VOLUME_CLAIM_TEMPLATE)),
]);

static CORE_V1_EVENT: Type = ty("core.v1.Event", &[
    f("action", 12, Kind::String),
    f("apiVersion", 0, Kind::String),
    f("count", 8, Kind::Int32),
    f("eventTime", 10, Kind::MicroTime),
    f("firstTimestamp", 6, Kind::Time),
    f("involvedObject", 2, Kind::Object(&CORE_V1_OBJECT_REFERENCE)).required(),
    f("kind", 0, Kind::String),
    f("lastTimestamp", 7, Kind::Time),
    f("message", 4, Kind::String),
    f("metadata", 1, Kind::Object(&META_V1_OBJECT_META)).required(),
    f("reason", 3, Kind::String),
    f("related", 13, Kind::Object(&CORE_V1_OBJECT_REFERENCE)),
    f("reportingComponent", 14, Kind::String),
    f("reportingInstance", 15, Kind::String),
    f("series", 11, Kind::Object(&CORE_V1_EVENT_SERIES)),
    f("source", 5, Kind::Object(&CORE_V1_EVENT_SOURCE)),
    f("type", 9, Kind::String),
]).kind();

static CORE_V1_EVENT_SERIES: Type = ty("core.v1.EventSeries", &[
    f("count", 1, Kind::Int32),
    f("lastObservedTime", 2, Kind::MicroTime),
]);

static CORE_V1_EVENT_SOURCE: Type = ty("core.v1.EventSource", &[
    f("component", 1, Kind::String),
    f("host", 2, Kind::String),
]);

static CORE_V1_EXEC_ACTION: Type = ty("core.v1.ExecAction", &[
    f("command", 1, Kind::String).list().list_type(ListType::Atomic, &[]),
]);

static CORE_V1_FCVOLUME_SOURCE: Type = ty("core.v1.FCVolumeSource", &[
    f("fsType", 3, Kind::String),
    f("lun", 2, Kind::Int32).pointer(),
    f("readOnly", 4, Kind::Bool),
    f("targetWWNs", 1, Kind::String).list().list_type(ListType::Atomic, &[]),
    f("wwids", 5, Kind::String).list().list_type(ListType::Atomic, &[]),
]);

static CORE_V1_FILE_KEY_SELECTOR: Type = ty("core.v1.FileKeySelector", &[
    f("key", 3, Kind::String).required(),
    f("optional", 4, Kind::Bool).pointer(),
    f("path", 2, Kind::String).required(),
    f("volumeName", 1, Kind::String).required(),
]).atomic();

static CORE_V1_FLEX_PERSISTENT_VOLUME_SOURCE: Type = ty("core.v1.FlexPersistentVolumeSource", &[
    f("driver", 1, Kind::String).required(),
    f("fsType", 2, Kind::String),
    f("options", 5, Kind::String).map(),
    f("readOnly", 4, Kind::Bool),
    f("secretRef", 3, Kind::Object(&CORE_V1_SECRET_REFERENCE)),
]);

static CORE_V1_FLEX_VOLUME_SOURCE: Type = ty("core.v1.FlexVolumeSource", &[
    f("driver", 1, Kind::String).required(),
    f("fsType", 2, Kind::String),
    f("options", 5, Kind::String).map(),
    f("readOnly", 4, Kind::Bool),
    f("secretRef", 3, Kind::Object(&CORE_V1_LOCAL_OBJECT_REFERENCE)),
]);

static CORE_V1_FLOCKER_VOLUME_SOURCE: Type = ty("core.v1.FlockerVolumeSource", &[
    f("datasetName", 1, Kind::String),
    f("datasetUUID", 2, Kind::String),
]);

static CORE_V1_GCEPERSISTENT_DISK_VOLUME_SOURCE: Type = ty("core.v1.GCEPersistentDiskVolumeSource", &[
    f("fsType", 2, Kind::String),
    f("partition", 3, Kind::Int32),
    f("pdName", 1, Kind::String).required(),
    f("readOnly", 4, Kind::Bool),
]);

static CORE_V1_GRPCACTION: Type = ty("core.v1.GRPCAction", &[
    f("port", 1, Kind::Int32).required(),
    f("service", 2, Kind::String).pointer(),
]);

static CORE_V1_GIT_REPO_VOLUME_SOURCE: Type = ty("core.v1.GitRepoVolumeSource", &[
    f("directory", 3, Kind::String),
    f("repository", 1, Kind::String).required(),
    f("revision", 2, Kind::String),
]);

static CORE_V1_GLUSTERFS_PERSISTENT_VOLUME_SOURCE: Type = ty("core.v1.GlusterfsPersistentVolumeSource", &[
    f("endpoints", 1, Kind::String).required(),
    f("endpointsNamespace", 4, Kind::String).pointer(),
    f("path", 2, Kind::String).required(),
    f("readOnly", 3, Kind::Bool),
]);

static CORE_V1_GLUSTERFS_VOLUME_SOURCE: Type = ty("core.v1.GlusterfsVolumeSource", &[
    f("endpoints", 1, Kind::String).required(),
    f("path", 2, Kind::String).required(),
    f("readOnly", 3, Kind::Bool),
]);

static CORE_V1_HTTPGET_ACTION: Type = ty("core.v1.HTTPGetAction", &[
    f("host", 3, Kind::String),
    f("httpHeaders", 5, Kind::Object(&CORE_V1_HTTPHEADER)).list().list_type(ListType::Atomic, &[]),
    f("path", 1, Kind::String),
    f("port", 2, Kind::IntOrString).required(),
    f("scheme", 4, Kind::String).go("v1.URIScheme"),
]);

static CORE_V1_HTTPHEADER: Type = ty("core.v1.HTTPHeader", &[
    f("name", 1, Kind::String).required(),
    f("value", 2, Kind::String).required(),
]);

static CORE_V1_HOST_ALIAS: Type = ty("core.v1.HostAlias", &[
    f("hostnames", 2, Kind::String).list().list_type(ListType::Atomic, &[]),
    f("ip", 1, Kind::String).required(),
]);

static CORE_V1_HOST_IP: Type = ty("core.v1.HostIP", &[
    f("ip", 1, Kind::String).required(),
]);

static CORE_V1_HOST_PATH_VOLUME_SOURCE: Type = ty("core.v1.HostPathVolumeSource", &[
    f("path", 1, Kind::String).required(),
    f("type", 2, Kind::String).pointer().go("v1.HostPathType"),
]);

static CORE_V1_ISCSIPERSISTENT_VOLUME_SOURCE: Type = ty("core.v1.ISCSIPersistentVolumeSource", &[
    f("chapAuthDiscovery", 8, Kind::Bool),
    f("chapAuthSession", 11, Kind::Bool),
    f("fsType", 5, Kind::String),
    f("initiatorName", 12, Kind::String).pointer(),
    f("iqn", 2, Kind::String).required(),
    f("iscsiInterface", 4, Kind::String).default("default"),
    f("lun", 3, Kind::Int32).required(),
    f("portals", 7, Kind::String).list().list_type(ListType::Atomic, &[]),
    f("readOnly", 6, Kind::Bool),
    f("secretRef", 10, Kind::Object(&CORE_V1_SECRET_REFERENCE)),
    f("targetPortal", 1, Kind::String).required(),
]);

static CORE_V1_ISCSIVOLUME_SOURCE: Type = ty("core.v1.ISCSIVolumeSource", &[
    f("chapAuthDiscovery", 8, Kind::Bool),
    f("chapAuthSession", 11, Kind::Bool),
    f("fsType", 5, Kind::String),
    f("initiatorName", 12, Kind::String).pointer(),
    f("iqn", 2, Kind::String).required(),
    f("iscsiInterface", 4, Kind::String).default("default"),
    f("lun", 3, Kind::Int32).required(),
    f("portals", 7, Kind::String).list().list_type(ListType::Atomic, &[]),
    f("readOnly", 6, Kind::Bool),
    f("secretRef", 10, Kind::Object(&CORE_V1_LOCAL_OBJECT_REFERENCE)),
    f("targetPortal", 1, Kind::String).required(),
]);

static CORE_V1_IMAGE_VOLUME_SOURCE: Type = ty("core.v1.ImageVolumeSource", &[
    f("pullPolicy", 2, Kind::String).go("v1.PullPolicy"),
    f("reference", 1, Kind::String),
]);

static CORE_V1_IMAGE_VOLUME_STATUS: Type = ty("core.v1.ImageVolumeStatus", &[
    f("imageRef", 1, Kind::String).required(),
]);

static CORE_V1_KEY_TO_PATH: Type = ty("core.v1.KeyToPath", &[
    f("key", 1, Kind::String).required(),
    f("mode", 3, Kind::Int32).pointer(),
    f("path", 2, Kind::String).required(),
]);

static CORE_V1_LIFECYCLE: Type = ty("core.v1.Lifecycle", &[
    f("postStart", 1, Kind::Object(&CORE_V1_LIFECYCLE_HANDLER)),
    f("preStop", 2, Kind::Object(&CORE_V1_LIFECYCLE_HANDLER)),
    f("stopSignal", 3, Kind::String).pointer().go("v1.Signal"),
]);

static CORE_V1_LIFECYCLE_HANDLER: Type = ty("core.v1.LifecycleHandler", &[
    f("exec", 1, Kind::Object(&CORE_V1_EXEC_ACTION)),
    f("httpGet", 2, Kind::Object(&CORE_V1_HTTPGET_ACTION)),
    f("sleep", 4, Kind::Object(&CORE_V1_SLEEP_ACTION)),
    f("tcpSocket", 3, Kind::Object(&CORE_V1_TCPSOCKET_ACTION)),
]);

static CORE_V1_LINUX_CONTAINER_USER: Type = ty("core.v1.LinuxContainerUser", &[
    f("gid", 2, Kind::Int64).required(),
    f("supplementalGroups", 3, Kind::Int64).list().list_type(ListType::Atomic, &[]),
    f("uid", 1, Kind::Int64).required(),
]);

static CORE_V1_LOAD_BALANCER_INGRESS: Type = ty("core.v1.LoadBalancerIngress", &[
    f("hostname", 2, Kind::String),
    f("ip", 1, Kind::String),
    f("ipMode", 3, Kind::String).pointer().go("v1.LoadBalancerIPMode"),
    f("ports", 4, Kind::Object(&CORE_V1_PORT_STATUS)).list().list_type(ListType::Atomic, &[]),
]);

static CORE_V1_LOAD_BALANCER_STATUS: Type = ty("core.v1.LoadBalancerStatus", &[
    f("ingress", 1, Kind::Object(&CORE_V1_LOAD_BALANCER_INGRESS)).list().list_type(ListType::Atomic, &[]),
]);

static CORE_V1_LOCAL_OBJECT_REFERENCE: Type = ty("core.v1.LocalObjectReference", &[
    f("name", 1, Kind::String),
]).atomic();

static CORE_V1_LOCAL_VOLUME_SOURCE: Type = ty("core.v1.LocalVolumeSource", &[
    f("fsType", 2, Kind::String).pointer(),
    f("path", 1, Kind::String).required(),
]);

static CORE_V1_MODIFY_VOLUME_STATUS: Type = ty("core.v1.ModifyVolumeStatus", &[
    f("status", 2, Kind::String).required(),
    f("targetVolumeAttributesClassName", 1, Kind::String),
]);

static CORE_V1_NFSVOLUME_SOURCE: Type = ty("core.v1.NFSVolumeSource", &[
    f("path", 2, Kind::String).required(),
    f("readOnly", 3, Kind::Bool),
    f("server", 1, Kind::String).required(),
]);

static CORE_V1_NAMESPACE: Type = ty("core.v1.Namespace", &[
    f("apiVersion", 0, Kind::String),
    f("kind", 0, Kind::String),
    f("metadata", 1, Kind::Object(&META_V1_OBJECT_META)),
    f("spec", 2, Kind::Object(&CORE_V1_NAMESPACE_SPEC)),
    f("status", 3, Kind::Object(&CORE_V1_NAMESPACE_STATUS)),
]).kind();

static CORE_V1_NAMESPACE_CONDITION: Type = ty("core.v1.NamespaceCondition", &[
    f("lastTransitionTime", 4, Kind::Time),
    f("message", 6, Kind::String),
    f("reason", 5, Kind::String),
    f("status", 2, Kind::String).required().go("v1.ConditionStatus"),
    f("type", 1, Kind::String).required().go("v1.NamespaceConditionType"),
]);

static CORE_V1_NAMESPACE_SPEC: Type = ty("core.v1.NamespaceSpec", &[
    f("finalizers", 1, Kind::String).list().list_type(ListType::Atomic, &[]).go("v1.FinalizerName"),
]);

static CORE_V1_NAMESPACE_STATUS: Type = ty("core.v1.NamespaceStatus", &[
    f("conditions", 2, Kind::Object(&CORE_V1_NAMESPACE_CONDITION)).list().list_type(ListType::Map, &["type"]).merged().by("type"),
    f("phase", 1, Kind::String).go("v1.NamespacePhase"),
]);

static CORE_V1_NODE: Type = ty("core.v1.Node", &[
    f("apiVersion", 0, Kind::String),
    f("kind", 0, Kind::String),
    f("metadata", 1, Kind::Object(&META_V1_OBJECT_META)),
    f("spec", 2, Kind::Object(&CORE_V1_NODE_SPEC)),
    f("status", 3, Kind::Object(&CORE_V1_NODE_STATUS)),
]).kind();

static CORE_V1_NODE_ADDRESS: Type = ty("core.v1.NodeAddress", &[
    f("address", 2, Kind::String).required(),
    f("type", 1, Kind::String).required().go("v1.NodeAddressType"),
]);

static CORE_V1_NODE_AFFINITY: Type = ty("core.v1.NodeAffinity", &[
    f("preferredDuringSchedulingIgnoredDuringExecution", 2, Kind::Object(&CORE_V1_PREFERRED_SCHEDULING_TERM)).list().list_type(ListType::Atomic, &[]),
    f("requiredDuringSchedulingIgnoredDuringExecution", 1, Kind::Object(&CORE_V1_NODE_SELECTOR)),
]);

static CORE_V1_NODE_ALLOCATABLE_RESOURCE_CLAIM_STATUS: Type = ty("core.v1.NodeAllocatableResourceClaimStatus", &[
    f("containers", 2, Kind::String).list().list_type(ListType::Set, &[]),
    f("resourceClaimName", 1, Kind::String).required(),
    f("resources", 3, Kind::Quantity).map().required(),
]);

static CORE_V1_NODE_CONDITION: Type = ty("core.v1.NodeCondition", &[
    f("lastHeartbeatTime", 3, Kind::Time),
    f("lastTransitionTime", 4, Kind::Time),
    f("message", 6, Kind::String),
    f("reason", 5, Kind::String),
    f("status", 2, Kind::String).required().go("v1.ConditionStatus"),
    f("type", 1, Kind::String).required().go("v1.NodeConditionType"),
]);

static CORE_V1_NODE_CONFIG_SOURCE: Type = ty("core.v1.NodeConfigSource", &[
    f("configMap", 2, Kind::Object(&CORE_V1_CONFIG_MAP_NODE_CONFIG_SOURCE)),
]);

static CORE_V1_NODE_CONFIG_STATUS: Type = ty("core.v1.NodeConfigStatus", &[
    f("active", 2, Kind::Object(&CORE_V1_NODE_CONFIG_SOURCE)),
    f("assigned", 1, Kind::Object(&CORE_V1_NODE_CONFIG_SOURCE)),
    f("error", 4, Kind::String),
    f("lastKnownGood", 3, Kind::Object(&CORE_V1_NODE_CONFIG_SOURCE)),
]);

static CORE_V1_NODE_DAEMON_ENDPOINTS: Type = ty("core.v1.NodeDaemonEndpoints", &[
    f("kubeletEndpoint", 1, Kind::Object(&CORE_V1_DAEMON_ENDPOINT)),
]);

static CORE_V1_NODE_FEATURES: Type = ty("core.v1.NodeFeatures", &[
    f("supplementalGroupsPolicy", 1, Kind::Bool).pointer(),
]);

static CORE_V1_NODE_RUNTIME_HANDLER: Type = ty("core.v1.NodeRuntimeHandler", &[
    f("features", 2, Kind::Object(&CORE_V1_NODE_RUNTIME_HANDLER_FEATURES)),
    f("name", 1, Kind::String),
]);

static CORE_V1_NODE_RUNTIME_HANDLER_FEATURES: Type = ty("core.v1.NodeRuntimeHandlerFeatures", &[
    f("recursiveReadOnlyMounts", 1, Kind::Bool).pointer(),
    f("userNamespaces", 2, Kind::Bool).pointer(),
]);

static CORE_V1_NODE_SELECTOR: Type = ty("core.v1.NodeSelector", &[
    f("nodeSelectorTerms", 1, Kind::Object(&CORE_V1_NODE_SELECTOR_TERM)).list().required().list_type(ListType::Atomic, &[]),
]).atomic();

static CORE_V1_NODE_SELECTOR_REQUIREMENT: Type = ty("core.v1.NodeSelectorRequirement", &[
    f("key", 1, Kind::String).required(),
    f("operator", 2, Kind::String).required().go("v1.NodeSelectorOperator"),
    f("values", 3, Kind::String).list().list_type(ListType::Atomic, &[]),
]);

static CORE_V1_NODE_SELECTOR_TERM: Type = ty("core.v1.NodeSelectorTerm", &[
    f("matchExpressions", 1, Kind::Object(&CORE_V1_NODE_SELECTOR_REQUIREMENT)).list().list_type(ListType::Atomic, &[]),
    f("matchFields", 2, Kind::Object(&CORE_V1_NODE_SELECTOR_REQUIREMENT)).list().list_type(ListType::Atomic, &[]),
]).atomic();

static CORE_V1_NODE_SPEC: Type = ty("core.v1.NodeSpec", &[
    f("configSource", 6, Kind::Object(&CORE_V1_NODE_CONFIG_SOURCE)),
    f("externalID", 2, Kind::String),
    f("podCIDR", 1, Kind::String),
    f("podCIDRs", 7, Kind::String).list().list_type(ListType::Set, &[]).merged(),
    f("providerID", 3, Kind::String),
    f("taints", 5, Kind::Object(&CORE_V1_TAINT)).list().list_type(ListType::Atomic, &[]),
    f("unschedulable", 4, Kind::Bool),
]);

static CORE_V1_NODE_STATUS: Type = ty("core.v1.NodeStatus", &[
    f("addresses", 5, Kind::Object(&CORE_V1_NODE_ADDRESS)).list().list_type(ListType::Map, &["type"]).merged().by("type"),
    f("allocatable", 2, Kind::Quantity).map(),
    f("capacity", 1, Kind::Quantity).map(),
    f("conditions", 4, Kind::Object(&CORE_V1_NODE_CONDITION)).list().list_type(ListType::Map, &["type"]).merged().by("type"),
    f("config", 11, Kind::Object(&CORE_V1_NODE_CONFIG_STATUS)),
    f("daemonEndpoints", 6, Kind::Object(&CORE_V1_NODE_DAEMON_ENDPOINTS)),
    f("declaredFeatures", 14, Kind::String).list().list_type(ListType::Atomic, &[]),
    f("features", 13, Kind::Object(&CORE_V1_NODE_FEATURES)),
    f("images", 8, Kind::Object(&CORE_V1_CONTAINER_IMAGE)).list().list_type(ListType::Atomic, &[]),
    f("nodeInfo", 7, Kind::Object(&CORE_V1_NODE_SYSTEM_INFO)),
    f("phase", 3, Kind::String).go("v1.NodePhase"),
    f("runtimeHandlers", 12, Kind::Object(&CORE_V1_NODE_RUNTIME_HANDLER)).list().list_type(ListType::Atomic, &[]),
    f("volumesAttached", 10, Kind::Object(&CORE_V1_ATTACHED_VOLUME)).list().list_type(ListType::Atomic, &[]),
    f("volumesInUse", 9, Kind::String).list().list_type(ListType::Atomic, &[]).go("v1.UniqueVolumeName"),
]);

static CORE_V1_NODE_SWAP_STATUS: Type = ty("core.v1.NodeSwapStatus", &[
    f("capacity", 1, Kind::Int64).pointer(),
]);

static CORE_V1_NODE_SYSTEM_INFO: Type = ty("core.v1.NodeSystemInfo", &[
    f("architecture", 10, Kind::String).required(),
    f("bootID", 3, Kind::String).required(),
    f("containerRuntimeVersion", 6, Kind::String).required(),
    f("kernelVersion", 4, Kind::String).required(),
    f("kubeProxyVersion", 8, Kind::String).required(),
    f("kubeletVersion", 7, Kind::String).required(),
    f("machineID", 1, Kind::String).required(),
    f("operatingSystem", 9, Kind::String).required(),
    f("osImage", 5, Kind::String).required(),
    f("swap", 11, Kind::Object(&CORE_V1_NODE_SWAP_STATUS)),
    f("systemUUID", 2, Kind::String).required(),
]);

static CORE_V1_OBJECT_FIELD_SELECTOR: Type = ty("core.v1.ObjectFieldSelector", &[
    f("apiVersion", 1, Kind::String),
    f("fieldPath", 2, Kind::String).required(),
]).atomic();

static CORE_V1_OBJECT_REFERENCE: Type = ty("core.v1.ObjectReference", &[
    f("apiVersion", 5, Kind::String),
    f("fieldPath", 7, Kind::String),
    f("kind", 1, Kind::String),
    f("name", 3, Kind::String),
    f("namespace", 2, Kind::String),
    f("resourceVersion", 6, Kind::String),
    f("uid", 4, Kind::String).go("types.UID"),
]).atomic();

static CORE_V1_PERSISTENT_VOLUME: Type = ty("core.v1.PersistentVolume", &[
    f("apiVersion", 0, Kind::String),
    f("kind", 0, Kind::String),
    f("metadata", 1, Kind::Object(&META_V1_OBJECT_META)),
    f("spec", 2, Kind::Object(&CORE_V1_PERSISTENT_VOLUME_SPEC)),
    f("status", 3, Kind::Object(&CORE_V1_PERSISTENT_VOLUME_STATUS)),
]).kind();

static CORE_V1_PERSISTENT_VOLUME_CLAIM: Type = ty("core.v1.PersistentVolumeClaim", &[
    f("apiVersion", 0, Kind::String),
    f("kind", 0, Kind::String),
    f("metadata", 1, Kind::Object(&META_V1_OBJECT_META)),
    f("spec", 2, Kind::Object(&CORE_V1_PERSISTENT_VOLUME_CLAIM_SPEC)),
    f("status", 3, Kind::Object(&CORE_V1_PERSISTENT_VOLUME_CLAIM_STATUS)),
]).kind();

static CORE_V1_PERSISTENT_VOLUME_CLAIM_CONDITION: Type = ty("core.v1.PersistentVolumeClaimCondition", &[
    f("lastProbeTime", 3, Kind::Time),
    f("lastTransitionTime", 4, Kind::Time),
    f("message", 6, Kind::String),
    f("reason", 5, Kind::String),
    f("status", 2, Kind::String).required().go("v1.ConditionStatus"),
    f("type", 1, Kind::String).required().go("v1.PersistentVolumeClaimConditionType"),
]);

static CORE_V1_PERSISTENT_VOLUME_CLAIM_SPEC: Type = ty("core.v1.PersistentVolumeClaimSpec", &[
    f("accessModes", 1, Kind::String).list().list_type(ListType::Atomic, &[]).go("v1.PersistentVolumeAccessMode"),
    f("dataSource", 7, Kind::Object(&CORE_V1_TYPED_LOCAL_OBJECT_REFERENCE)),
    f("dataSourceRef", 8, Kind::Object(&CORE_V1_TYPED_OBJECT_REFERENCE)),
    f("resources", 2, Kind::Object(&CORE_V1_VOLUME_RESOURCE_REQUIREMENTS)),
    f("selector", 4, Kind::Object(&META_V1_LABEL_SELECTOR)),
    f("storageClassName", 5, Kind::String).pointer(),
    f("volumeAttributesClassName", 9, Kind::String).pointer(),
    f("volumeMode", 6, Kind::String).pointer().go("v1.PersistentVolumeMode"),
    f("volumeName", 3, Kind::String),
]);

static CORE_V1_PERSISTENT_VOLUME_CLAIM_STATUS: Type = ty("core.v1.PersistentVolumeClaimStatus", &[
    f("accessModes", 2, Kind::String).list().list_type(ListType::Atomic, &[]).go("v1.PersistentVolumeAccessMode"),
    f("allocatedResourceStatuses", 7, Kind::String).map().atomic(),
    f("allocatedResources", 5, Kind::Quantity).map(),
    f("capacity", 3, Kind::Quantity).map(),
    f("conditions", 4, Kind::Object(&CORE_V1_PERSISTENT_VOLUME_CLAIM_CONDITION)).list().list_type(ListType::Map, &["type"]).merged().by("type"),
    f("currentVolumeAttributesClassName", 8, Kind::String).pointer(),
    f("modifyVolumeStatus", 9, Kind::Object(&CORE_V1_MODIFY_VOLUME_STATUS)),
    f("phase", 1, Kind::String).go("v1.PersistentVolumeClaimPhase"),
]);

static CORE_V1_PERSISTENT_VOLUME_CLAIM_TEMPLATE: Type = ty("core.v1.PersistentVolumeClaimTemplate", &[
    f("metadata", 1, Kind::Object(&META_V1_OBJECT_META)),
    f("spec", 2, Kind::Object(&CORE_V1_PERSISTENT_VOLUME_CLAIM_SPEC)).required(),
]);

static CORE_V1_PERSISTENT_VOLUME_CLAIM_VOLUME_SOURCE: Type = ty("core.v1.PersistentVolumeClaimVolumeSource", &[
    f("claimName", 1, Kind::String).required(),
    f("readOnly", 2, Kind::Bool),
]);

static CORE_V1_PERSISTENT_VOLUME_SOURCE: Type = ty("core.v1.PersistentVolumeSource", &[
    f("awsElasticBlockStore", 2, Kind::Object(&CORE_V1_AWSELASTIC_BLOCK_STORE_VOLUME_SOURCE)),
    f("azureDisk", 16, Kind::Object(&CORE_V1_AZURE_DISK_VOLUME_SOURCE)),
    f("azureFile", 13, Kind::Object(&CORE_V1_AZURE_FILE_PERSISTENT_VOLUME_SOURCE)),
    f("cephfs", 9, Kind::Object(&CORE_V1_CEPH_FSPERSISTENT_VOLUME_SOURCE)),
    f("cinder", 8, Kind::Object(&CORE_V1_CINDER_PERSISTENT_VOLUME_SOURCE)),
    f("csi", 22, Kind::Object(&CORE_V1_CSIPERSISTENT_VOLUME_SOURCE)),
    f("fc", 10, Kind::Object(&CORE_V1_FCVOLUME_SOURCE)),
    f("flexVolume", 12, Kind::Object(&CORE_V1_FLEX_PERSISTENT_VOLUME_SOURCE)),
    f("flocker", 11, Kind::Object(&CORE_V1_FLOCKER_VOLUME_SOURCE)),
    f("gcePersistentDisk", 1, Kind::Object(&CORE_V1_GCEPERSISTENT_DISK_VOLUME_SOURCE)),
    f("glusterfs", 4, Kind::Object(&CORE_V1_GLUSTERFS_PERSISTENT_VOLUME_SOURCE)),
    f("hostPath", 3, Kind::Object(&CORE_V1_HOST_PATH_VOLUME_SOURCE)),
    f("iscsi", 7, Kind::Object(&CORE_V1_ISCSIPERSISTENT_VOLUME_SOURCE)),
    f("local", 20, Kind::Object(&CORE_V1_LOCAL_VOLUME_SOURCE)),
    f("nfs", 5, Kind::Object(&CORE_V1_NFSVOLUME_SOURCE)),
    f("photonPersistentDisk", 17, Kind::Object(&CORE_V1_PHOTON_PERSISTENT_DISK_VOLUME_SOURCE)),
    f("portworxVolume", 18, Kind::Object(&CORE_V1_PORTWORX_VOLUME_SOURCE)),
    f("quobyte", 15, Kind::Object(&CORE_V1_QUOBYTE_VOLUME_SOURCE)),
    f("rbd", 6, Kind::Object(&CORE_V1_RBDPERSISTENT_VOLUME_SOURCE)),
    f("scaleIO", 19, Kind::Object(&CORE_V1_SCALE_IOPERSISTENT_VOLUME_SOURCE)),
    f("storageos", 21, Kind::Object(&CORE_V1_STORAGE_OSPERSISTENT_VOLUME_SOURCE)),
    f("vsphereVolume", 14, Kind::Object(&CORE_V1_VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE)),
]);

static CORE_V1_PERSISTENT_VOLUME_SPEC: Type = ty("core.v1.PersistentVolumeSpec", &[
    f("accessModes", 3, Kind::String).list().list_type(ListType::Atomic, &[]).go("v1.PersistentVolumeAccessMode"),
    f("awsElasticBlockStore", 2, Kind::Object(&CORE_V1_AWSELASTIC_BLOCK_STORE_VOLUME_SOURCE)).within(2),
    f("azureDisk", 16, Kind::Object(&CORE_V1_AZURE_DISK_VOLUME_SOURCE)).within(2),
    f("azureFile", 13, Kind::Object(&CORE_V1_AZURE_FILE_PERSISTENT_VOLUME_SOURCE)).within(2),
    f("capacity", 1, Kind::Quantity).map(),
    f("cephfs", 9, Kind::Object(&CORE_V1_CEPH_FSPERSISTENT_VOLUME_SOURCE)).within(2),
    f("cinder", 8, Kind::Object(&CORE_V1_CINDER_PERSISTENT_VOLUME_SOURCE)).within(2),
    f("claimRef", 4, Kind::Object(&CORE_V1_OBJECT_REFERENCE)).atomic(),
    f("csi", 22, Kind::Object(&CORE_V1_CSIPERSISTENT_VOLUME_SOURCE)).within(2),
    f("fc", 10, Kind::Object(&CORE_V1_FCVOLUME_SOURCE)).within(2),
    f("flexVolume", 12, Kind::Object(&CORE_V1_FLEX_PERSISTENT_VOLUME_SOURCE)).within(2),
    f("flocker", 11, Kind::Object(&CORE_V1_FLOCKER_VOLUME_SOURCE)).within(2),
    f("gcePersistentDisk", 1, Kind::Object(&CORE_V1_GCEPERSISTENT_DISK_VOLUME_SOURCE)).within(2),
    f("glusterfs", 4, Kind::Object(&CORE_V1_GLUSTERFS_PERSISTENT_VOLUME_SOURCE)).within(2),
    f("hostPath", 3, Kind::Object(&CORE_V1_HOST_PATH_VOLUME_SOURCE)).within(2),
    f("iscsi", 7, Kind::Object(&CORE_V1_ISCSIPERSISTENT_VOLUME_SOURCE)).within(2),
    f("local", 20, Kind::Object(&CORE_V1_LOCAL_VOLUME_SOURCE)).within(2),
    f("mountOptions", 7, Kind::String).list().list_type(ListType::Atomic, &[]),
    f("nfs", 5, Kind::Object(&CORE_V1_NFSVOLUME_SOURCE)).within(2),
    f("nodeAffinity", 9, Kind::Object(&CORE_V1_VOLUME_NODE_AFFINITY)),
    f("persistentVolumeReclaimPolicy", 5, Kind::String).go("v1.PersistentVolumeReclaimPolicy"),
    f("photonPersistentDisk", 17, Kind::Object(&CORE_V1_PHOTON_PERSISTENT_DISK_VOLUME_SOURCE)).within(2),
    f("portworxVolume", 18, Kind::Object(&CORE_V1_PORTWORX_VOLUME_SOURCE)).within(2),
    f("quobyte", 15, Kind::Object(&CORE_V1_QUOBYTE_VOLUME_SOURCE)).within(2),
    f("rbd", 6, Kind::Object(&CORE_V1_RBDPERSISTENT_VOLUME_SOURCE)).within(2),
    f("scaleIO", 19, Kind::Object(&CORE_V1_SCALE_IOPERSISTENT_VOLUME_SOURCE)).within(2),
    f("storageClassName", 6, Kind::String),
    f("storageos", 21, Kind::Object(&CORE_V1_STORAGE_OSPERSISTENT_VOLUME_SOURCE)).within(2),
    f("volumeAttributesClassName", 10, Kind::String).pointer(),
    f("volumeMode", 8, Kind::String).pointer().go("v1.PersistentVolumeMode"),
    f("vsphereVolume", 14, Kind::Object(&CORE_V1_VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE)).within(2),
]).inlining(&[f("persistentVolumeSource", 2, Kind::Object(&CORE_V1_PERSISTENT_VOLUME_SOURCE))]);

static CORE_V1_PERSISTENT_VOLUME_STATUS: Type = ty("core.v1.PersistentVolumeStatus", &[
    f("lastPhaseTransitionTime", 4, Kind::Time),
    f("message", 2, Kind::String),
    f("phase", 1, Kind::String).go("v1.PersistentVolumePhase"),
    f("reason", 3, Kind::String),
]);

static CORE_V1_PHOTON_PERSISTENT_DISK_VOLUME_SOURCE: Type = ty("core.v1.PhotonPersistentDiskVolumeSource", &[
    f("fsType", 2, Kind::String),
    f("pdID", 1, Kind::String).required(),
]);

static CORE_V1_POD: Type = ty("core.v1.Pod", &[
    f("apiVersion", 0, Kind::String),
    f("kind", 0, Kind::String),
    f("metadata", 1, Kind::Object(&META_V1_OBJECT_META)),
    f("spec", 2, Kind::Object(&CORE_V1_POD_SPEC)),
    f("status", 3, Kind::Object(&CORE_V1_POD_STATUS)),
]).kind();

static CORE_V1_POD_AFFINITY: Type = ty("core.v1.PodAffinity", &[
    f("preferredDuringSchedulingIgnoredDuringExecution", 2, Kind::Object(&CORE_V1_WEIGHTED_POD_AFFINITY_TERM)).list().list_type(ListType::Atomic, &[]),
    f("requiredDuringSchedulingIgnoredDuringExecution", 1, Kind::Object(&CORE_V1_POD_AFFINITY_TERM)).list().list_type(ListType::Atomic, &[]),
]);

static CORE_V1_POD_AFFINITY_TERM: Type = ty("core.v1.PodAffinityTerm", &[
    f("labelSelector", 1, Kind::Object(&META_V1_LABEL_SELECTOR)),
    f("matchLabelKeys", 5, Kind::String).list().list_type(ListType::Atomic, &[]),
    f("mismatchLabelKeys", 6, Kind::String).list().list_type(ListType::Atomic, &[]),
    f("namespaceSelector", 4, Kind::Object(&META_V1_LABEL_SELECTOR)),
    f("namespaces", 2, Kind::String).list().list_type(ListType::Atomic, &[]),
    f("topologyKey", 3, Kind::String).required(),
]);

static CORE_V1_POD_ANTI_AFFINITY: Type = ty("core.v1.PodAntiAffinity", &[
    f("preferredDuringSchedulingIgnoredDuringExecution", 2, Kind::Object(&CORE_V1_WEIGHTED_POD_AFFINITY_TERM)).list().list_type(ListType::Atomic, &[]),
    f("requiredDuringSchedulingIgnoredDuringExecution", 1, Kind::Object(&CORE_V1_POD_AFFINITY_TERM)).list().list_type(ListType::Atomic, &[]),
]);

static CORE_V1_POD_ATTACH_OPTIONS: Type = ty("core.v1.PodAttachOptions", &[
    f("apiVersion", 0, Kind::String),
    f("container", 5, Kind::String),
    f("kind", 0, Kind::String),
    f("stderr", 3, Kind::Bool),
    f("stdin", 1, Kind::Bool),
    f("stdout", 2, Kind::Bool),
    f("tty", 4, Kind::Bool),
]).kind();

static CORE_V1_POD_CERTIFICATE_PROJECTION: Type = ty("core.v1.PodCertificateProjection", &[
    f("certificateChainPath", 6, Kind::String),
    f("credentialBundlePath", 4, Kind::String),
    f("keyPath", 5, Kind::String),
    f("keyType", 2, Kind::String).required(),
    f("maxExpirationSeconds", 3, Kind::Int32).pointer(),
    f("signerName", 1, Kind::String).required(),
    f("userAnnotations", 7, Kind::String).map(),
]);

static CORE_V1_POD_CONDITION: Type = ty("core.v1.PodCondition", &[
    f("lastProbeTime", 3, Kind::Time),
    f("lastTransitionTime", 4, Kind::Time),
    f("message", 6, Kind::String),
    f("observedGeneration", 7, Kind::Int64),
    f("reason", 5, Kind::String),
    f("status", 2, Kind::String).required().go("v1.ConditionStatus"),
    f("type", 1, Kind::String).required().go("v1.PodConditionType"),
]);

static CORE_V1_POD_DNSCONFIG: Type = ty("core.v1.PodDNSConfig", &[
    f("nameservers", 1, Kind::String).list().list_type(ListType::Atomic, &[]),
    f("options", 3, Kind::Object(&CORE_V1_POD_DNSCONFIG_OPTION)).list().list_type(ListType::Atomic, &[]),
    f("searches", 2, Kind::String).list().list_type(ListType::Atomic, &[]),
]);

static CORE_V1_POD_DNSCONFIG_OPTION: Type = ty("core.v1.PodDNSConfigOption", &[
    f("name", 1, Kind::String),
    f("value", 2, Kind::String).pointer(),
]);

static CORE_V1_POD_EXEC_OPTIONS: Type = ty("core.v1.PodExecOptions", &[
    f("apiVersion", 0, Kind::String),
    f("command", 6, Kind::String).list(),
    f("container", 5, Kind::String),
    f("kind", 0, Kind::String),
    f("stderr", 3, Kind::Bool),
    f("stdin", 1, Kind::Bool),
    f("stdout", 2, Kind::Bool),
    f("tty", 4, Kind::Bool),
]).kind();

static CORE_V1_POD_EXTENDED_RESOURCE_CLAIM_STATUS: Type = ty("core.v1.PodExtendedResourceClaimStatus", &[
    f("requestMappings", 1, Kind::Object(&CORE_V1_CONTAINER_EXTENDED_RESOURCE_REQUEST)).list().required().list_type(ListType::Atomic, &[]),
    f("resourceClaimName", 2, Kind::String).required(),
]);

static CORE_V1_POD_IP: Type = ty("core.v1.PodIP", &[
    f("ip", 1, Kind::String).required(),
]);

static CORE_V1_POD_LOG_OPTIONS: Type = ty("core.v1.PodLogOptions", &[
    f("apiVersion", 0, Kind::String),
    f("container", 1, Kind::String),
    f("follow", 2, Kind::Bool),
    f("insecureSkipTLSVerifyBackend", 9, Kind::Bool),
    f("kind", 0, Kind::String),
    f("limitBytes", 8, Kind::Int64).pointer(),
    f("previous", 3, Kind::Bool),
    f("sinceSeconds", 4, Kind::Int64).pointer(),
    f("sinceTime", 5, Kind::Time),
    f("stream", 10, Kind::String).pointer(),
    f("tailLines", 7, Kind::Int64).pointer(),
    f("timestamps", 6, Kind::Bool),
]).kind();

static CORE_V1_POD_OS: Type = ty("core.v1.PodOS", &[
    f("name", 1, Kind::String).required().go("v1.OSName"),
]);

static CORE_V1_POD_PORT_FORWARD_OPTIONS: Type = ty("core.v1.PodPortForwardOptions", &[
    f("apiVersion", 0, Kind::String),
    f("kind", 0, Kind::String),
    f("ports", 1, Kind::Int32).list(),
]).kind();

static CORE_V1_POD_READINESS_GATE: Type = ty("core.v1.PodReadinessGate", &[
    f("conditionType", 1, Kind::String).required().go("v1.PodConditionType"),
]);

static CORE_V1_POD_RESOURCE_CLAIM: Type = ty("core.v1.PodResourceClaim", &[
    f("name", 1, Kind::String).required(),
    f("resourceClaimName", 3, Kind::String).pointer(),
    f("resourceClaimTemplateName", 4, Kind::String).pointer(),
]);

static CORE_V1_POD_RESOURCE_CLAIM_STATUS: Type = ty("core.v1.PodResourceClaimStatus", &[
    f("name", 1, Kind::String).required(),
    f("resourceClaimName", 2, Kind::String).pointer(),
]);

static CORE_V1_POD_SCHEDULING_GATE: Type = ty("core.v1.PodSchedulingGate", &[
    f("name", 1, Kind::String).required(),
]);

static CORE_V1_POD_SCHEDULING_GROUP: Type = ty("core.v1.PodSchedulingGroup", &[
    f("podGroupName", 1, Kind::String).pointer(),
]);

static CORE_V1_POD_SECURITY_CONTEXT: Type = ty("core.v1.PodSecurityContext", &[
    f("appArmorProfile", 11, Kind::Object(&CORE_V1_APP_ARMOR_PROFILE)),
    f("fsGroup", 5, Kind::Int64).pointer(),
    f("fsGroupChangePolicy", 9, Kind::String).pointer().go("v1.PodFSGroupChangePolicy"),
    f("runAsGroup", 6, Kind::Int64).pointer(),
    f("runAsNonRoot", 3, Kind::Bool).pointer(),
    f("runAsUser", 2, Kind::Int64).pointer(),
    f("seLinuxChangePolicy", 13, Kind::String).pointer().go("v1.PodSELinuxChangePolicy"),
    f("seLinuxOptions", 1, Kind::Object(&CORE_V1_SELINUX_OPTIONS)),
    f("seccompProfile", 10, Kind::Object(&CORE_V1_SECCOMP_PROFILE)),
    f("supplementalGroups", 4, Kind::Int64).list().list_type(ListType::Atomic, &[]),
    f("supplementalGroupsPolicy", 12, Kind::String).pointer().go("v1.SupplementalGroupsPolicy"),
    f("sysctls", 7, Kind::Object(&CORE_V1_SYSCTL)).list().list_type(ListType::Atomic, &[]),
    f("windowsOptions", 8, Kind::Object(&CORE_V1_WINDOWS_SECURITY_CONTEXT_OPTIONS)),
]);

static CORE_V1_POD_SPEC: Type = ty("core.v1.PodSpec", &[
    f("activeDeadlineSeconds", 5, Kind::Int64).pointer(),
    f("affinity", 18, Kind::Object(&CORE_V1_AFFINITY)),
    f("automountServiceAccountToken", 21, Kind::Bool).pointer(),
    f("containers", 2, Kind::Object(&CORE_V1_CONTAINER)).list().required().list_type(ListType::Map, &["name"]).merged().by("name"),
    f("dnsConfig", 26, Kind::Object(&CORE_V1_POD_DNSCONFIG)),
    f("dnsPolicy", 6, Kind::String).go("v1.DNSPolicy"),
    f("enableServiceLinks", 30, Kind::Bool).pointer(),
    f("ephemeralContainers", 34, Kind::Object(&CORE_V1_EPHEMERAL_CONTAINER)).list().list_type(ListType::Map, &["name"]).merged().by("name"),
    f("hostAliases", 23, Kind::Object(&CORE_V1_HOST_ALIAS)).list().list_type(ListType::Map, &["ip"]).merged().by("ip"),
    f("hostIPC", 13, Kind::Bool),
    f("hostNetwork", 11, Kind::Bool),
    f("hostPID", 12, Kind::Bool),
    f("hostUsers", 37, Kind::Bool).pointer(),
    f("hostname", 16, Kind::String),
    f("hostnameOverride", 41, Kind::String).pointer(),
    f("imagePullSecrets", 15, Kind::Object(&CORE_V1_LOCAL_OBJECT_REFERENCE)).list().list_type(ListType::Map, &["name"]).merged().by("name"),
    f("initContainers", 20, Kind::Object(&CORE_V1_CONTAINER)).list().list_type(ListType::Map, &["name"]).merged().by("name"),
    f("nodeName", 10, Kind::String),
    f("nodeSelector", 7, Kind::String).map().atomic(),
    f("os", 36, Kind::Object(&CORE_V1_POD_OS)),
    f("overhead", 32, Kind::Quantity).map(),
    f("preemptionPolicy", 31, Kind::String).pointer().go("v1.PreemptionPolicy"),
    f("priority", 25, Kind::Int32).pointer(),
    f("priorityClassName", 24, Kind::String),
    f("readinessGates", 28, Kind::Object(&CORE_V1_POD_READINESS_GATE)).list().list_type(ListType::Atomic, &[]),
    f("resourceClaims", 39, Kind::Object(&CORE_V1_POD_RESOURCE_CLAIM)).list().list_type(ListType::Map, &["name"]).merged().retaining_keys().by("name"),
    f("resources", 40, Kind::Object(&CORE_V1_RESOURCE_REQUIREMENTS)),
    f("restartPolicy", 3, Kind::String).go("v1.RestartPolicy"),
    f("runtimeClassName", 29, Kind::String).pointer(),
    f("schedulerName", 19, Kind::String),
    f("schedulingGates", 38, Kind::Object(&CORE_V1_POD_SCHEDULING_GATE)).list().list_type(ListType::Map, &["name"]).merged().by("name"),
    f("schedulingGroup", 43, Kind::Object(&CORE_V1_POD_SCHEDULING_GROUP)),
    f("securityContext", 14, Kind::Object(&CORE_V1_POD_SECURITY_CONTEXT)),
    f("serviceAccount", 9, Kind::String),
    f("serviceAccountName", 8, Kind::String),
    f("setHostnameAsFQDN", 35, Kind::Bool).pointer(),
    f("shareProcessNamespace", 27, Kind::Bool).pointer(),
    f("subdomain", 17, Kind::String),
    f("terminationGracePeriodSeconds", 4, Kind::Int64).pointer(),
    f("tolerations", 22, Kind::Object(&CORE_V1_TOLERATION)).list().list_type(ListType::Atomic, &[]),
    f("topologySpreadConstraints", 33, Kind::Object(&CORE_V1_TOPOLOGY_SPREAD_CONSTRAINT)).list().list_type(ListType::Map, &["topologyKey", "whenUnsatisfiable"]).merged().by("topologyKey"),
    f("volumes", 1, Kind::Object(&CORE_V1_VOLUME)).list().list_type(ListType::Map, &["name"]).merged().retaining_keys().by("name"),
]);

static CORE_V1_POD_STATUS: Type = ty("core.v1.PodStatus", &[
    f("allocatedResources", 19, Kind::Quantity).map(),
    f("conditions", 2, Kind::Object(&CORE_V1_POD_CONDITION)).list().list_type(ListType::Map, &["type"]).merged().by("type"),
    f("containerStatuses", 8, Kind::Object(&CORE_V1_CONTAINER_STATUS)).list().list_type(ListType::Atomic, &[]),
    f("ephemeralContainerStatuses", 13, Kind::Object(&CORE_V1_CONTAINER_STATUS)).list().list_type(ListType::Atomic, &[]),
    f("extendedResourceClaimStatus", 18, Kind::Object(&CORE_V1_POD_EXTENDED_RESOURCE_CLAIM_STATUS)),
    f("hostIP", 5, Kind::String),
    f("hostIPs", 16, Kind::Object(&CORE_V1_HOST_IP)).list().list_type(ListType::Atomic, &[]).merged().by("ip"),
    f("initContainerStatuses", 10, Kind::Object(&CORE_V1_CONTAINER_STATUS)).list().list_type(ListType::Atomic, &[]),
    f("message", 3, Kind::String),
    f("nodeAllocatableResourceClaimStatuses", 21, Kind::Object(&CORE_V1_NODE_ALLOCATABLE_RESOURCE_CLAIM_STATUS)).list().list_type(ListType::Atomic, &[]),
    f("nominatedNodeName", 11, Kind::String),
    f("observedGeneration", 17, Kind::Int64),
    f("phase", 1, Kind::String).go("v1.PodPhase"),
    f("podIP", 6, Kind::String),
    f("podIPs", 12, Kind::Object(&CORE_V1_POD_IP)).list().list_type(ListType::Map, &["ip"]).merged().by("ip"),
    f("qosClass", 9, Kind::String).go("v1.PodQOSClass"),
    f("reason", 4, Kind::String),
    f("resize", 14, Kind::String).go("v1.PodResizeStatus"),
    f("resourceClaimStatuses", 15, Kind::Object(&CORE_V1_POD_RESOURCE_CLAIM_STATUS)).list().list_type(ListType::Map, &["name"]).merged().retaining_keys().by("name"),
    f("resources", 20, Kind::Object(&CORE_V1_RESOURCE_REQUIREMENTS)),
    f("startTime", 7, Kind::Time),
]);

static CORE_V1_POD_TEMPLATE_SPEC: Type = ty("core.v1.PodTemplateSpec", &[
    f("metadata", 1, Kind::Object(&META_V1_OBJECT_META)),
    f("spec", 2, Kind::Object(&CORE_V1_POD_SPEC)),
]);

static CORE_V1_PORT_STATUS: Type = ty("core.v1.PortStatus", &[
    f("error", 3, Kind::String).pointer(),
    f("port", 1, Kind::Int32).required(),
    f("protocol", 2, Kind::String).required().go("v1.Protocol"),
]);

static CORE_V1_PORTWORX_VOLUME_SOURCE: Type = ty("core.v1.PortworxVolumeSource", &[
    f("fsType", 2, Kind::String),
    f("readOnly", 3, Kind::Bool),
    f("volumeID", 1, Kind::String).required(),
]);

static CORE_V1_PREFERRED_SCHEDULING_TERM: Type = ty("core.v1.PreferredSchedulingTerm", &[
    f("preference", 2, Kind::Object(&CORE_V1_NODE_SELECTOR_TERM)).required(),
    f("weight", 1, Kind::Int32).required(),
]);

static CORE_V1_PROBE: Type = ty("core.v1.Probe", &[
    f("exec", 1, Kind::Object(&CORE_V1_EXEC_ACTION)).within(1),
    f("failureThreshold", 6, Kind::Int32),
    f("grpc", 4, Kind::Object(&CORE_V1_GRPCACTION)).within(1),
    f("httpGet", 2, Kind::Object(&CORE_V1_HTTPGET_ACTION)).within(1),
    f("initialDelaySeconds", 2, Kind::Int32),
    f("periodSeconds", 4, Kind::Int32),
    f("successThreshold", 5, Kind::Int32),
    f("tcpSocket", 3, Kind::Object(&CORE_V1_TCPSOCKET_ACTION)).within(1),
    f("terminationGracePeriodSeconds", 7, Kind::Int64).pointer(),
    f("timeoutSeconds", 3, Kind::Int32),
]).inlining(&[f("handler", 1, Kind::Object(&CORE_V1_PROBE_HANDLER))]);

static CORE_V1_PROBE_HANDLER: Type = ty("core.v1.ProbeHandler", &[
    f("exec", 1, Kind::Object(&CORE_V1_EXEC_ACTION)),
    f("grpc", 4, Kind::Object(&CORE_V1_GRPCACTION)),
    f("httpGet", 2, Kind::Object(&CORE_V1_HTTPGET_ACTION)),
    f("tcpSocket", 3, Kind::Object(&CORE_V1_TCPSOCKET_ACTION)),
]);

static CORE_V1_PROJECTED_VOLUME_SOURCE: Type = ty("core.v1.ProjectedVolumeSource", &[
    f("defaultMode", 2, Kind::Int32).pointer(),
    f("sources", 1, Kind::Object(&CORE_V1_VOLUME_PROJECTION)).list().list_type(ListType::Atomic, &[]),
]);

static CORE_V1_QUOBYTE_VOLUME_SOURCE: Type = ty("core.v1.QuobyteVolumeSource", &[
    f("group", 5, Kind::String),
    f("readOnly", 3, Kind::Bool),
    f("registry", 1, Kind::String).required(),
    f("tenant", 6, Kind::String),
    f("user", 4, Kind::String),
    f("volume", 2, Kind::String).required(),
]);

static CORE_V1_RBDPERSISTENT_VOLUME_SOURCE: Type = ty("core.v1.RBDPersistentVolumeSource", &[
    f("fsType", 3, Kind::String),
    f("image", 2, Kind::String).required(),
    f("keyring", 6, Kind::String).default("/etc/ceph/keyring"),
    f("monitors", 1, Kind::String).list().required().list_type(ListType::Atomic, &[]),
    f("pool", 4, Kind::String).default("rbd"),
    f("readOnly", 8, Kind::Bool),
    f("secretRef", 7, Kind::Object(&CORE_V1_SECRET_REFERENCE)),
    f("user", 5, Kind::String).default("admin"),
]);

static CORE_V1_RBDVOLUME_SOURCE: Type = ty("core.v1.RBDVolumeSource", &[
    f("fsType", 3, Kind::String),
    f("image", 2, Kind::String).required(),
    f("keyring", 6, Kind::String).default("/etc/ceph/keyring"),
    f("monitors", 1, Kind::String).list().required().list_type(ListType::Atomic, &[]),
    f("pool", 4, Kind::String).default("rbd"),
    f("readOnly", 8, Kind::Bool),
    f("secretRef", 7, Kind::Object(&CORE_V1_LOCAL_OBJECT_REFERENCE)),
    f("user", 5, Kind::String).default("admin"),
]);

static CORE_V1_RESOURCE_CLAIM: Type = ty("core.v1.ResourceClaim", &[
    f("name", 1, Kind::String).required(),
    f("request", 2, Kind::String),
]);

static CORE_V1_RESOURCE_FIELD_SELECTOR: Type = ty("core.v1.ResourceFieldSelector", &[
    f("containerName", 1, Kind::String),
    f("divisor", 3, Kind::Quantity),
    f("resource", 2, Kind::String).required(),
]).atomic();

static CORE_V1_RESOURCE_HEALTH: Type = ty("core.v1.ResourceHealth", &[
    f("health", 2, Kind::String),
    f("message", 6, Kind::String).pointer(),
    f("resourceID", 1, Kind::String).required(),
]);

static CORE_V1_RESOURCE_REQUIREMENTS: Type = ty("core.v1.ResourceRequirements", &[
    f("claims", 3, Kind::Object(&CORE_V1_RESOURCE_CLAIM)).list().list_type(ListType::Map, &["name"]),
    f("limits", 1, Kind::Quantity).map(),
    f("requests", 2, Kind::Quantity).map(),
]);

static CORE_V1_RESOURCE_STATUS: Type = ty("core.v1.ResourceStatus", &[
    f("name", 1, Kind::String).required(),
    f("resources", 2, Kind::Object(&CORE_V1_RESOURCE_HEALTH)).list().list_type(ListType::Map, &["resourceID"]),
]);

static CORE_V1_SELINUX_OPTIONS: Type = ty("core.v1.SELinuxOptions", &[
    f("level", 4, Kind::String),
    f("role", 2, Kind::String),
    f("type", 3, Kind::String),
    f("user", 1, Kind::String),
]);

static CORE_V1_SCALE_IOPERSISTENT_VOLUME_SOURCE: Type = ty("core.v1.ScaleIOPersistentVolumeSource", &[
    f("fsType", 9, Kind::String).default("xfs"),
    f("gateway", 1, Kind::String).required(),
    f("protectionDomain", 5, Kind::String),
    f("readOnly", 10, Kind::Bool),
    f("secretRef", 3, Kind::Object(&CORE_V1_SECRET_REFERENCE)).required(),
    f("sslEnabled", 4, Kind::Bool),
    f("storageMode", 7, Kind::String).default("ThinProvisioned"),
    f("storagePool", 6, Kind::String),
    f("system", 2, Kind::String).required(),
    f("volumeName", 8, Kind::String),
]);

static CORE_V1_SCALE_IOVOLUME_SOURCE: Type = ty("core.v1.ScaleIOVolumeSource", &[
    f("fsType", 9, Kind::String).default("xfs"),
    f("gateway", 1, Kind::String).required(),
    f("protectionDomain", 5, Kind::String),
    f("readOnly", 10, Kind::Bool),
    f("secretRef", 3, Kind::Object(&CORE_V1_LOCAL_OBJECT_REFERENCE)).required(),
    f("sslEnabled", 4, Kind::Bool),
    f("storageMode", 7, Kind::String).default("ThinProvisioned"),
    f("storagePool", 6, Kind::String),
    f("system", 2, Kind::String).required(),
    f("volumeName", 8, Kind::String),
]);

static CORE_V1_SECCOMP_PROFILE: Type = ty("core.v1.SeccompProfile", &[
    f("localhostProfile", 2, Kind::String).pointer(),
    f("type", 1, Kind::String).required().go("v1.SeccompProfileType"),
]);

static CORE_V1_SECRET: Type = ty("core.v1.Secret", &[
    f("apiVersion", 0, Kind::String),
    f("data", 2, Kind::Bytes).map(),
    f("immutable", 5, Kind::Bool).pointer(),
    f("kind", 0, Kind::String),
    f("metadata", 1, Kind::Object(&META_V1_OBJECT_META)),
    f("stringData", 4, Kind::String).map(),
    f("type", 3, Kind::String).go("v1.SecretType"),
]).kind();

static CORE_V1_SECRET_ENV_SOURCE: Type = ty("core.v1.SecretEnvSource", &[
    f("name", 1, Kind::String).within(1),
    f("optional", 2, Kind::Bool).pointer(),
]).inlining(&[f("localObjectReference", 1, Kind::Object(&CORE_V1_LOCAL_OBJECT_REFERENCE))]);

static CORE_V1_SECRET_KEY_SELECTOR: Type = ty("core.v1.SecretKeySelector", &[
    f("key", 2, Kind::String).required(),
    f("name", 1, Kind::String).within(1),
    f("optional", 3, Kind::Bool).pointer(),
]).inlining(&[f("localObjectReference", 1, Kind::Object(&CORE_V1_LOCAL_OBJECT_REFERENCE))]).atomic();

static CORE_V1_SECRET_PROJECTION: Type = ty("core.v1.SecretProjection", &[
    f("items", 2, Kind::Object(&CORE_V1_KEY_TO_PATH)).list().list_type(ListType::Atomic, &[]),
    f("name", 1, Kind::String).within(1),
    f("optional", 4, Kind::Bool).pointer(),
]).inlining(&[f("localObjectReference", 1, Kind::Object(&CORE_V1_LOCAL_OBJECT_REFERENCE))]);

static CORE_V1_SECRET_REFERENCE: Type = ty("core.v1.SecretReference", &[
    f("name", 1, Kind::String),
    f("namespace", 2, Kind::String),
]).atomic();

static CORE_V1_SECRET_VOLUME_SOURCE: Type = ty("core.v1.SecretVolumeSource", &[
    f("defaultMode", 3, Kind::Int32).pointer(),
    f("items", 2, Kind::Object(&CORE_V1_KEY_TO_PATH)).list().list_type(ListType::Atomic, &[]),
    f("optional", 4, Kind::Bool).pointer(),
    f("secretName", 1, Kind::String),
]);

static CORE_V1_SECURITY_CONTEXT: Type = ty("core.v1.SecurityContext", &[
    f("allowPrivilegeEscalation", 7, Kind::Bool).pointer(),
    f("appArmorProfile", 12, Kind::Object(&CORE_V1_APP_ARMOR_PROFILE)),
    f("capabilities", 1, Kind::Object(&CORE_V1_CAPABILITIES)),
    f("privileged", 2, Kind::Bool).pointer(),
    f("procMount", 9, Kind::String).pointer().go("v1.ProcMountType"),
    f("readOnlyRootFilesystem", 6, Kind::Bool).pointer(),
    f("runAsGroup", 8, Kind::Int64).pointer(),
    f("runAsNonRoot", 5, Kind::Bool).pointer(),
    f("runAsUser", 4, Kind::Int64).pointer(),
    f("seLinuxOptions", 3, Kind::Object(&CORE_V1_SELINUX_OPTIONS)),
    f("seccompProfile", 11, Kind::Object(&CORE_V1_SECCOMP_PROFILE)),
    f("windowsOptions", 10, Kind::Object(&CORE_V1_WINDOWS_SECURITY_CONTEXT_OPTIONS)),
]);

static CORE_V1_SERVICE: Type = ty("core.v1.Service", &[
    f("apiVersion", 0, Kind::String),
    f("kind", 0, Kind::String),
    f("metadata", 1, Kind::Object(&META_V1_OBJECT_META)),
    f("spec", 2, Kind::Object(&CORE_V1_SERVICE_SPEC)),
    f("status", 3, Kind::Object(&CORE_V1_SERVICE_STATUS)),
]).kind();

static CORE_V1_SERVICE_ACCOUNT: Type = ty("core.v1.ServiceAccount", &[
    f("apiVersion", 0, Kind::String),
    f("automountServiceAccountToken", 4, Kind::Bool).pointer(),
    f("imagePullSecrets", 3, Kind::Object(&CORE_V1_LOCAL_OBJECT_REFERENCE)).list().list_type(ListType::Atomic, &[]),
    f("kind", 0, Kind::String),
    f("metadata", 1, Kind::Object(&META_V1_OBJECT_META)),
    f("secrets", 2, Kind::Object(&CORE_V1_OBJECT_REFERENCE)).list().list_type(ListType::Map, &["name"]).merged().by("name"),
]).kind();

static CORE_V1_SERVICE_ACCOUNT_TOKEN_PROJECTION: Type = ty("core.v1.ServiceAccountTokenProjection", &[
    f("audience", 1, Kind::String),
    f("expirationSeconds", 2, Kind::Int64).pointer(),
    f("path", 3, Kind::String).required(),
]);

static CORE_V1_SERVICE_PORT: Type = ty("core.v1.ServicePort", &[
    f("appProtocol", 6, Kind::String).pointer(),
    f("name", 1, Kind::String),
    f("nodePort", 5, Kind::Int32),
    f("port", 3, Kind::Int32).required(),
    f("protocol", 2, Kind::String).default("TCP").go("v1.Protocol"),
    f("targetPort", 4, Kind::IntOrString),
]);

static CORE_V1_SERVICE_SPEC: Type = ty("core.v1.ServiceSpec", &[
    f("allocateLoadBalancerNodePorts", 20, Kind::Bool).pointer(),
    f("clusterIP", 3, Kind::String),
    f("clusterIPs", 18, Kind::String).list().list_type(ListType::Atomic, &[]),
    f("externalIPs", 5, Kind::String).list().list_type(ListType::Atomic, &[]),
    f("externalName", 10, Kind::String),
    f("externalTrafficPolicy", 11, Kind::String).go("v1.ServiceExternalTrafficPolicy"),
    f("healthCheckNodePort", 12, Kind::Int32),
    f("internalTrafficPolicy", 22, Kind::String).pointer().go("v1.ServiceInternalTrafficPolicy"),
    f("ipFamilies", 19, Kind::String).list().list_type(ListType::Atomic, &[]).go("v1.IPFamily"),
    f("ipFamilyPolicy", 17, Kind::String).pointer().go("v1.IPFamilyPolicy"),
    f("loadBalancerClass", 21, Kind::String).pointer(),
    f("loadBalancerIP", 8, Kind::String),
    f("loadBalancerSourceRanges", 9, Kind::String).list().list_type(ListType::Atomic, &[]),
    f("ports", 1, Kind::Object(&CORE_V1_SERVICE_PORT)).list().list_type(ListType::Map, &["port", "protocol"]).merged().by("port"),
    f("publishNotReadyAddresses", 13, Kind::Bool),
    f("selector", 2, Kind::String).map().atomic(),
    f("sessionAffinity", 7, Kind::String).go("v1.ServiceAffinity"),
    f("sessionAffinityConfig", 14, Kind::Object(&CORE_V1_SESSION_AFFINITY_CONFIG)),
    f("trafficDistribution", 23, Kind::String).pointer(),
    f("type", 4, Kind::String).go("v1.ServiceType"),
]);

static CORE_V1_SERVICE_STATUS: Type = ty("core.v1.ServiceStatus", &[
    f("conditions", 2, Kind::Object(&META_V1_CONDITION)).list().list_type(ListType::Map, &["type"]).merged().by("type"),
    f("loadBalancer", 1, Kind::Object(&CORE_V1_LOAD_BALANCER_STATUS)),
]);

static CORE_V1_SESSION_AFFINITY_CONFIG: Type = ty("core.v1.SessionAffinityConfig", &[
    f("clientIP", 1, Kind::Object(&CORE_V1_CLIENT_IPCONFIG)),
]);

static CORE_V1_SLEEP_ACTION: Type = ty("core.v1.SleepAction", &[
    f("seconds", 1, Kind::Int64).required(),
]);

static CORE_V1_STORAGE_OSPERSISTENT_VOLUME_SOURCE: Type = ty("core.v1.StorageOSPersistentVolumeSource", &[
    f("fsType", 3, Kind::String),
    f("readOnly", 4, Kind::Bool),
    f("secretRef", 5, Kind::Object(&CORE_V1_OBJECT_REFERENCE)),
    f("volumeName", 1, Kind::String),
    f("volumeNamespace", 2, Kind::String),
]);

static CORE_V1_STORAGE_OSVOLUME_SOURCE: Type = ty("core.v1.StorageOSVolumeSource", &[
    f("fsType", 3, Kind::String),
    f("readOnly", 4, Kind::Bool),
    f("secretRef", 5, Kind::Object(&CORE_V1_LOCAL_OBJECT_REFERENCE)),
    f("volumeName", 1, Kind::String),
    f("volumeNamespace", 2, Kind::String),
]);

static CORE_V1_SYSCTL: Type = ty("core.v1.Sysctl", &[
    f("name", 1, Kind::String).required(),
    f("value", 2, Kind::String).required(),
]);

static CORE_V1_TCPSOCKET_ACTION: Type = ty("core.v1.TCPSocketAction", &[
    f("host", 2, Kind::String),
    f("port", 1, Kind::IntOrString).required(),
]);

static CORE_V1_TAINT: Type = ty("core.v1.Taint", &[
    f("effect", 3, Kind::String).required().go("v1.TaintEffect"),
    f("key", 1, Kind::String).required(),
    f("timeAdded", 4, Kind::Time),
    f("value", 2, Kind::String),
]);

static CORE_V1_TOLERATION: Type = ty("core.v1.Toleration", &[
    f("effect", 4, Kind::String).go("v1.TaintEffect"),
    f("key", 1, Kind::String),
    f("operator", 2, Kind::String).go("v1.TolerationOperator"),
    f("tolerationSeconds", 5, Kind::Int64).pointer(),
    f("value", 3, Kind::String),
]);

static CORE_V1_TOPOLOGY_SPREAD_CONSTRAINT: Type = ty("core.v1.TopologySpreadConstraint", &[
    f("labelSelector", 4, Kind::Object(&META_V1_LABEL_SELECTOR)),
    f("matchLabelKeys", 8, Kind::String).list().list_type(ListType::Atomic, &[]),
    f("maxSkew", 1, Kind::Int32).required(),
    f("minDomains", 5, Kind::Int32).pointer(),
    f("nodeAffinityPolicy", 6, Kind::String).pointer().go("v1.NodeInclusionPolicy"),
    f("nodeTaintsPolicy", 7, Kind::String).pointer().go("v1.NodeInclusionPolicy"),
    f("topologyKey", 2, Kind::String).required(),
    f("whenUnsatisfiable", 3, Kind::String).required().go("v1.UnsatisfiableConstraintAction"),
]);

static CORE_V1_TYPED_LOCAL_OBJECT_REFERENCE: Type = ty("core.v1.TypedLocalObjectReference", &[
    f("apiGroup", 1, Kind::String).pointer(),
    f("kind", 2, Kind::String).required(),
    f("name", 3, Kind::String).required(),
]).atomic();

static CORE_V1_TYPED_OBJECT_REFERENCE: Type = ty("core.v1.TypedObjectReference", &[
    f("apiGroup", 1, Kind::String).pointer(),
    f("kind", 2, Kind::String).required(),
    f("name", 3, Kind::String).required(),
    f("namespace", 4, Kind::String).pointer(),
]);

static CORE_V1_VOLUME: Type = ty("core.v1.Volume", &[
    f("awsElasticBlockStore", 4, Kind::Object(&CORE_V1_AWSELASTIC_BLOCK_STORE_VOLUME_SOURCE)).within(2),
    f("azureDisk", 22, Kind::Object(&CORE_V1_AZURE_DISK_VOLUME_SOURCE)).within(2),
    f("azureFile", 18, Kind::Object(&CORE_V1_AZURE_FILE_VOLUME_SOURCE)).within(2),
    f("cephfs", 14, Kind::Object(&CORE_V1_CEPH_FSVOLUME_SOURCE)).within(2),
    f("cinder", 13, Kind::Object(&CORE_V1_CINDER_VOLUME_SOURCE)).within(2),
    f("configMap", 19, Kind::Object(&CORE_V1_CONFIG_MAP_VOLUME_SOURCE)).within(2),
    f("csi", 28, Kind::Object(&CORE_V1_CSIVOLUME_SOURCE)).within(2),
    f("downwardAPI", 16, Kind::Object(&CORE_V1_DOWNWARD_APIVOLUME_SOURCE)).within(2),
    f("emptyDir", 2, Kind::Object(&CORE_V1_EMPTY_DIR_VOLUME_SOURCE)).within(2),
    f("ephemeral", 29, Kind::Object(&CORE_V1_EPHEMERAL_VOLUME_SOURCE)).within(2),
    f("fc", 17, Kind::Object(&CORE_V1_FCVOLUME_SOURCE)).within(2),
    f("flexVolume", 12, Kind::Object(&CORE_V1_FLEX_VOLUME_SOURCE)).within(2),
    f("flocker", 15, Kind::Object(&CORE_V1_FLOCKER_VOLUME_SOURCE)).within(2),
    f("gcePersistentDisk", 3, Kind::Object(&CORE_V1_GCEPERSISTENT_DISK_VOLUME_SOURCE)).within(2),
    f("gitRepo", 5, Kind::Object(&CORE_V1_GIT_REPO_VOLUME_SOURCE)).within(2),
    f("glusterfs", 9, Kind::Object(&CORE_V1_GLUSTERFS_VOLUME_SOURCE)).within(2),
    f("hostPath", 1, Kind::Object(&CORE_V1_HOST_PATH_VOLUME_SOURCE)).within(2),
    f("image", 30, Kind::Object(&CORE_V1_IMAGE_VOLUME_SOURCE)).within(2),
    f("iscsi", 8, Kind::Object(&CORE_V1_ISCSIVOLUME_SOURCE)).within(2),
    f("name", 1, Kind::String).required(),
    f("nfs", 7, Kind::Object(&CORE_V1_NFSVOLUME_SOURCE)).within(2),
    f("persistentVolumeClaim", 10, Kind::Object(&CORE_V1_PERSISTENT_VOLUME_CLAIM_VOLUME_SOURCE)).within(2),
    f("photonPersistentDisk", 23, Kind::Object(&CORE_V1_PHOTON_PERSISTENT_DISK_VOLUME_SOURCE)).within(2),
    f("portworxVolume", 24, Kind::Object(&CORE_V1_PORTWORX_VOLUME_SOURCE)).within(2),
    f("projected", 26, Kind::Object(&CORE_V1_PROJECTED_VOLUME_SOURCE)).within(2),
    f("quobyte", 21, Kind::Object(&CORE_V1_QUOBYTE_VOLUME_SOURCE)).within(2),
    f("rbd", 11, Kind::Object(&CORE_V1_RBDVOLUME_SOURCE)).within(2),
    f("scaleIO", 25, Kind::Object(&CORE_V1_SCALE_IOVOLUME_SOURCE)).within(2),
    f("secret", 6, Kind::Object(&CORE_V1_SECRET_VOLUME_SOURCE)).within(2),
    f("storageos", 27, Kind::Object(&CORE_V1_STORAGE_OSVOLUME_SOURCE)).within(2),
    f("vsphereVolume", 20, Kind::Object(&CORE_V1_VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE)).within(2),
]).inlining(&[f("volumeSource", 2, Kind::Object(&CORE_V1_VOLUME_SOURCE))]);

static CORE_V1_VOLUME_DEVICE: Type = ty("core.v1.VolumeDevice", &[
    f("devicePath", 2, Kind::String).required(),
    f("name", 1, Kind::String).required(),
]);

static CORE_V1_VOLUME_MOUNT: Type = ty("core.v1.VolumeMount", &[
    f("mountPath", 3, Kind::String).required(),
    f("mountPropagation", 5, Kind::String).pointer().go("v1.MountPropagationMode"),
    f("name", 1, Kind::String).required(),
    f("readOnly", 2, Kind::Bool),
    f("recursiveReadOnly", 7, Kind::String).pointer().go("v1.RecursiveReadOnlyMode"),
    f("subPath", 4, Kind::String),
    f("subPathExpr", 6, Kind::String),
]);

static CORE_V1_VOLUME_MOUNT_STATUS: Type = ty("core.v1.VolumeMountStatus", &[
    f("mountPath", 2, Kind::String).required(),
    f("name", 1, Kind::String).required(),
    f("readOnly", 3, Kind::Bool),
    f("recursiveReadOnly", 4, Kind::String).pointer().go("v1.RecursiveReadOnlyMode"),
    f("volumeStatus", 5, Kind::Object(&CORE_V1_VOLUME_STATUS)),
]);

static CORE_V1_VOLUME_NODE_AFFINITY: Type = ty("core.v1.VolumeNodeAffinity", &[
    f("required", 1, Kind::Object(&CORE_V1_NODE_SELECTOR)),
]);

static CORE_V1_VOLUME_PROJECTION: Type = ty("core.v1.VolumeProjection", &[
    f("clusterTrustBundle", 5, Kind::Object(&CORE_V1_CLUSTER_TRUST_BUNDLE_PROJECTION)),
    f("configMap", 3, Kind::Object(&CORE_V1_CONFIG_MAP_PROJECTION)),
    f("downwardAPI", 2, Kind::Object(&CORE_V1_DOWNWARD_APIPROJECTION)),
    f("podCertificate", 6, Kind::Object(&CORE_V1_POD_CERTIFICATE_PROJECTION)),
    f("secret", 1, Kind::Object(&CORE_V1_SECRET_PROJECTION)),
    f("serviceAccountToken", 4, Kind::Object(&CORE_V1_SERVICE_ACCOUNT_TOKEN_PROJECTION)),
]);

static CORE_V1_VOLUME_RESOURCE_REQUIREMENTS: Type = ty("core.v1.VolumeResourceRequirements", &[
    f("limits", 1, Kind::Quantity).map(),
    f("requests", 2, Kind::Quantity).map(),
]);

static CORE_V1_VOLUME_SOURCE: Type = ty("core.v1.VolumeSource", &[
    f("awsElasticBlockStore", 4, Kind::Object(&CORE_V1_AWSELASTIC_BLOCK_STORE_VOLUME_SOURCE)),
    f("azureDisk", 22, Kind::Object(&CORE_V1_AZURE_DISK_VOLUME_SOURCE)),
    f("azureFile", 18, Kind::Object(&CORE_V1_AZURE_FILE_VOLUME_SOURCE)),
    f("cephfs", 14, Kind::Object(&CORE_V1_CEPH_FSVOLUME_SOURCE)),
    f("cinder", 13, Kind::Object(&CORE_V1_CINDER_VOLUME_SOURCE)),
    f("configMap", 19, Kind::Object(&CORE_V1_CONFIG_MAP_VOLUME_SOURCE)),
    f("csi", 28, Kind::Object(&CORE_V1_CSIVOLUME_SOURCE)),
    f("downwardAPI", 16, Kind::Object(&CORE_V1_DOWNWARD_APIVOLUME_SOURCE)),
    f("emptyDir", 2, Kind::Object(&CORE_V1_EMPTY_DIR_VOLUME_SOURCE)),
    f("ephemeral", 29, Kind::Object(&CORE_V1_EPHEMERAL_VOLUME_SOURCE)),
    f("fc", 17, Kind::Object(&CORE_V1_FCVOLUME_SOURCE)),
    f("flexVolume", 12, Kind::Object(&CORE_V1_FLEX_VOLUME_SOURCE)),
    f("flocker", 15, Kind::Object(&CORE_V1_FLOCKER_VOLUME_SOURCE)),
    f("gcePersistentDisk", 3, Kind::Object(&CORE_V1_GCEPERSISTENT_DISK_VOLUME_SOURCE)),
    f("gitRepo", 5, Kind::Object(&CORE_V1_GIT_REPO_VOLUME_SOURCE)),
    f("glusterfs", 9, Kind::Object(&CORE_V1_GLUSTERFS_VOLUME_SOURCE)),
    f("hostPath", 1, Kind::Object(&CORE_V1_HOST_PATH_VOLUME_SOURCE)),
    f("image", 30, Kind::Object(&CORE_V1_IMAGE_VOLUME_SOURCE)),
    f("iscsi", 8, Kind::Object(&CORE_V1_ISCSIVOLUME_SOURCE)),
    f("nfs", 7, Kind::Object(&CORE_V1_NFSVOLUME_SOURCE)),
    f("persistentVolumeClaim", 10, Kind::Object(&CORE_V1_PERSISTENT_VOLUME_CLAIM_VOLUME_SOURCE)),
    f("photonPersistentDisk", 23, Kind::Object(&CORE_V1_PHOTON_PERSISTENT_DISK_VOLUME_SOURCE)),
    f("portworxVolume", 24, Kind::Object(&CORE_V1_PORTWORX_VOLUME_SOURCE)),
    f("projected", 26, Kind::Object(&CORE_V1_PROJECTED_VOLUME_SOURCE)),
    f("quobyte", 21, Kind::Object(&CORE_V1_QUOBYTE_VOLUME_SOURCE)),
    f("rbd", 11, Kind::Object(&CORE_V1_RBDVOLUME_SOURCE)),
    f("scaleIO", 25, Kind::Object(&CORE_V1_SCALE_IOVOLUME_SOURCE)),
    f("secret", 6, Kind::Object(&CORE_V1_SECRET_VOLUME_SOURCE)),
    f("storageos", 27, Kind::Object(&CORE_V1_STORAGE_OSVOLUME_SOURCE)),
    f("vsphereVolume", 20, Kind::Object(&CORE_V1_VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE)),
]);

static CORE_V1_VOLUME_STATUS: Type = ty("core.v1.VolumeStatus", &[
    f("image", 1, Kind::Object(&CORE_V1_IMAGE_VOLUME_STATUS)),
]);

static CORE_V1_VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE: Type = ty("core.v1.VsphereVirtualDiskVolumeSource", &[
    f("fsType", 2, Kind::String),
    f("storagePolicyID", 4, Kind::String),
    f("storagePolicyName", 3, Kind::String),
    f("volumePath", 1, Kind::String).required(),
]);

static CORE_V1_WEIGHTED_POD_AFFINITY_TERM: Type = ty("core.v1.WeightedPodAffinityTerm", &[
    f("podAffinityTerm", 2, Kind::Object(&CORE_V1_POD_AFFINITY_TERM)).required(),
    f("weight", 1, Kind::Int32).required(),
]);

static CORE_V1_WINDOWS_SECURITY_CONTEXT_OPTIONS: Type = ty("core.v1.WindowsSecurityContextOptions", &[
    f("gmsaCredentialSpec", 2, Kind::String).pointer(),
    f("gmsaCredentialSpecName", 1, Kind::String).pointer(),
    f("hostProcess", 4, Kind::Bool).pointer(),
    f("runAsUserName", 3, Kind::String).pointer(),
]);

static DISCOVERY_V1_ENDPOINT: Type = ty("discovery.v1.Endpoint", &[
    f("addresses", 1, Kind::String).list().required().list_type(ListType::Set, &[]),
    f("conditions", 2, Kind::Object(&DISCOVERY_V1_ENDPOINT_CONDITIONS)),
    f("deprecatedTopology", 5, Kind::String).map(),
    f("hints", 8, Kind::Object(&DISCOVERY_V1_ENDPOINT_HINTS)),
    f("hostname", 3, Kind::String).pointer(),
    f("nodeName", 6, Kind::String).pointer(),
    f("targetRef", 4, Kind::Object(&CORE_V1_OBJECT_REFERENCE)),
    f("zone", 7, Kind::String).pointer(),
]);

static DISCOVERY_V1_ENDPOINT_CONDITIONS: Type = ty("discovery.v1.EndpointConditions", &[
    f("ready", 1, Kind::Bool).pointer(),
    f("serving", 2, Kind::Bool).pointer(),
    f("terminating", 3, Kind::Bool).pointer(),
]);

static DISCOVERY_V1_ENDPOINT_HINTS: Type = ty("discovery.v1.EndpointHints", &[
    f("forNodes", 2, Kind::Object(&DISCOVERY_V1_FOR_NODE)).list().list_type(ListType::Atomic, &[]),
    f("forZones", 1, Kind::Object(&DISCOVERY_V1_FOR_ZONE)).list().list_type(ListType::Atomic, &[]),
]);

static DISCOVERY_V1_ENDPOINT_PORT: Type = ty("discovery.v1.EndpointPort", &[
    f("appProtocol", 4, Kind::String).pointer(),
    f("name", 1, Kind::String).pointer(),
    f("port", 3, Kind::Int32).pointer(),
    f("protocol", 2, Kind::String).pointer().go("v1.Protocol"),
]).atomic();

static DISCOVERY_V1_ENDPOINT_SLICE: Type = ty("discovery.v1.EndpointSlice", &[
    f("addressType", 4, Kind::String).required().go("v1.AddressType"),
    f("apiVersion", 0, Kind::String),
    f("endpoints", 2, Kind::Object(&DISCOVERY_V1_ENDPOINT)).list().keep_empty().list_type(ListType::Atomic, &[]),
    f("kind", 0, Kind::String),
    f("metadata", 1, Kind::Object(&META_V1_OBJECT_META)),
    f("ports", 3, Kind::Object(&DISCOVERY_V1_ENDPOINT_PORT)).list().keep_empty().list_type(ListType::Atomic, &[]),
]).kind();

static DISCOVERY_V1_FOR_NODE: Type = ty("discovery.v1.ForNode", &[
    f("name", 1, Kind::String).required(),
]);

static DISCOVERY_V1_FOR_ZONE: Type = ty("discovery.v1.ForZone", &[
    f("name", 1, Kind::String).required(),
]);

static EVENTS_V1_EVENT: Type = ty("events.v1.Event", &[
    f("action", 6, Kind::String),
    f("apiVersion", 0, Kind::String),
    f("deprecatedCount", 15, Kind::Int32),
    f("deprecatedFirstTimestamp", 13, Kind::Time),
    f("deprecatedLastTimestamp", 14, Kind::Time),
    f("deprecatedSource", 12, Kind::Object(&CORE_V1_EVENT_SOURCE)),
    f("eventTime", 2, Kind::MicroTime).required(),
    f("kind", 0, Kind::String),
    f("metadata", 1, Kind::Object(&META_V1_OBJECT_META)),
    f("note", 10, Kind::String),
    f("reason", 7, Kind::String),
    f("regarding", 8, Kind::Object(&CORE_V1_OBJECT_REFERENCE)),
    f("related", 9, Kind::Object(&CORE_V1_OBJECT_REFERENCE)),
    f("reportingController", 4, Kind::String),
    f("reportingInstance", 5, Kind::String),
    f("series", 3, Kind::Object(&EVENTS_V1_EVENT_SERIES)),
    f("type", 11, Kind::String),
]).kind();

static EVENTS_V1_EVENT_SERIES: Type = ty("events.v1.EventSeries", &[
    f("count", 1, Kind::Int32).required(),
    f("lastObservedTime", 2, Kind::MicroTime).required(),
]);

static INTSTR_INT_OR_STRING: Type = ty("intstr.IntOrString", &[
    f("intVal", 2, Kind::Int32),
    f("strVal", 3, Kind::String),
    f("type", 1, Kind::Int64),
]);

static META_V1_CONDITION: Type = ty("meta.v1.Condition", &[
    f("lastTransitionTime", 4, Kind::Time).required(),
    f("message", 6, Kind::String).required(),
    f("observedGeneration", 3, Kind::Int64),
    f("reason", 5, Kind::String).required(),
    f("status", 2, Kind::String).required().go("v1.ConditionStatus"),
    f("type", 1, Kind::String).required(),
]);

static META_V1_DELETE_OPTIONS: Type = ty("meta.v1.DeleteOptions", &[
    f("apiVersion", 0, Kind::String),
    f("dryRun", 5, Kind::String).list().list_type(ListType::Atomic, &[]),
    f("gracePeriodSeconds", 1, Kind::Int64).pointer(),
    f("ignoreStoreReadErrorWithClusterBreakingPotential", 6, Kind::Bool).pointer(),
    f("kind", 0, Kind::String),
    f("orphanDependents", 3, Kind::Bool).pointer(),
    f("preconditions", 2, Kind::Object(&META_V1_PRECONDITIONS)),
    f("propagationPolicy", 4, Kind::String).pointer().go("v1.DeletionPropagation"),
]).kind();

static META_V1_FIELD_SELECTOR_REQUIREMENT: Type = ty("meta.v1.FieldSelectorRequirement", &[
    f("key", 1, Kind::String).required(),
    f("operator", 2, Kind::String).required().go("v1.FieldSelectorOperator"),
    f("values", 3, Kind::String).list().list_type(ListType::Atomic, &[]),
]);

static META_V1_FIELDS_V1: Type = ty("meta.v1.FieldsV1", &[
    f("Raw", 1, Kind::Bytes),
]);

static META_V1_LABEL_SELECTOR: Type = ty("meta.v1.LabelSelector", &[
    f("matchExpressions", 2, Kind::Object(&META_V1_LABEL_SELECTOR_REQUIREMENT)).list().list_type(ListType::Atomic, &[]),
    f("matchLabels", 1, Kind::String).map(),
]).atomic();

static META_V1_LABEL_SELECTOR_REQUIREMENT: Type = ty("meta.v1.LabelSelectorRequirement", &[
    f("key", 1, Kind::String).required(),
    f("operator", 2, Kind::String).required().go("v1.LabelSelectorOperator"),
    f("values", 3, Kind::String).list().list_type(ListType::Atomic, &[]),
]);

static META_V1_LIST_META: Type = ty("meta.v1.ListMeta", &[
    f("continue", 3, Kind::String),
    f("remainingItemCount", 4, Kind::Int64).pointer(),
    f("resourceVersion", 2, Kind::String),
    f("selfLink", 1, Kind::String),
    f("shardInfo", 5, Kind::Object(&META_V1_SHARD_INFO)),
]);

static META_V1_MANAGED_FIELDS_ENTRY: Type = ty("meta.v1.ManagedFieldsEntry", &[
    f("apiVersion", 3, Kind::String),
    f("fieldsType", 6, Kind::String),
    f("fieldsV1", 7, Kind::Raw),
    f("manager", 1, Kind::String),
    f("operation", 2, Kind::String).go("v1.ManagedFieldsOperationType"),
    f("subresource", 8, Kind::String),
    f("time", 4, Kind::Time),
]);

static META_V1_MICRO_TIME: Type = ty("meta.v1.MicroTime", &[
    f("nanos", 2, Kind::Int32),
    f("seconds", 1, Kind::Int64),
]);

static META_V1_OBJECT_META: Type = ty("meta.v1.ObjectMeta", &[
    f("annotations", 12, Kind::String).map(),
    f("creationTimestamp", 8, Kind::Time),
    f("deletionGracePeriodSeconds", 10, Kind::Int64).pointer(),
    f("deletionTimestamp", 9, Kind::Time),
    f("finalizers", 14, Kind::String).list().list_type(ListType::Set, &[]).merged(),
    f("generateName", 2, Kind::String),
    f("generation", 7, Kind::Int64),
    f("labels", 11, Kind::String).map(),
    f("managedFields", 17, Kind::Object(&META_V1_MANAGED_FIELDS_ENTRY)).list().list_type(ListType::Atomic, &[]),
    f("name", 1, Kind::String),
    f("namespace", 3, Kind::String),
    f("ownerReferences", 13, Kind::Object(&META_V1_OWNER_REFERENCE)).list().list_type(ListType::Map, &["uid"]).merged().by("uid"),
    f("resourceVersion", 6, Kind::String),
    f("selfLink", 4, Kind::String),
    f("uid", 5, Kind::String).go("types.UID"),
]);

static META_V1_OWNER_REFERENCE: Type = ty("meta.v1.OwnerReference", &[
    f("apiVersion", 5, Kind::String).required(),
    f("blockOwnerDeletion", 7, Kind::Bool).pointer(),
    f("controller", 6, Kind::Bool).pointer(),
    f("kind", 1, Kind::String).required(),
    f("name", 3, Kind::String).required(),
    f("uid", 4, Kind::String).required().go("types.UID"),
]).atomic();

static META_V1_PRECONDITIONS: Type = ty("meta.v1.Preconditions", &[
    f("resourceVersion", 2, Kind::String).pointer(),
    f("uid", 1, Kind::String).pointer().go("types.UID"),
]);

static META_V1_SHARD_INFO: Type = ty("meta.v1.ShardInfo", &[
    f("selector", 1, Kind::String).required(),
]);

static META_V1_STATUS: Type = ty("meta.v1.Status", &[
    f("apiVersion", 0, Kind::String),
    f("code", 6, Kind::Int32),
    f("details", 5, Kind::Object(&META_V1_STATUS_DETAILS)),
    f("kind", 0, Kind::String),
    f("message", 3, Kind::String),
    f("metadata", 1, Kind::Object(&META_V1_LIST_META)),
    f("reason", 4, Kind::String).go("v1.StatusReason"),
    f("status", 2, Kind::String),
]).kind();

static META_V1_STATUS_CAUSE: Type = ty("meta.v1.StatusCause", &[
    f("field", 3, Kind::String),
    f("message", 2, Kind::String),
    f("reason", 1, Kind::String).go("v1.CauseType"),
]);

static META_V1_STATUS_DETAILS: Type = ty("meta.v1.StatusDetails", &[
    f("causes", 4, Kind::Object(&META_V1_STATUS_CAUSE)).list().list_type(ListType::Atomic, &[]),
    f("group", 2, Kind::String),
    f("kind", 3, Kind::String),
    f("name", 1, Kind::String),
    f("retryAfterSeconds", 5, Kind::Int32),
    f("uid", 6, Kind::String).go("types.UID"),
]);

static META_V1_TIME: Type = ty("meta.v1.Time", &[
    f("nanos", 2, Kind::Int32),
    f("seconds", 1, Kind::Int64),
]);

static NODE_V1_OVERHEAD: Type = ty("node.v1.Overhead", &[
    f("podFixed", 1, Kind::Quantity).map(),
]);

static NODE_V1_RUNTIME_CLASS: Type = ty("node.v1.RuntimeClass", &[
    f("apiVersion", 0, Kind::String),
    f("handler", 2, Kind::String).required(),
    f("kind", 0, Kind::String),
    f("metadata", 1, Kind::Object(&META_V1_OBJECT_META)),
    f("overhead", 3, Kind::Object(&NODE_V1_OVERHEAD)),
    f("scheduling", 4, Kind::Object(&NODE_V1_SCHEDULING)),
]).kind();

static NODE_V1_SCHEDULING: Type = ty("node.v1.Scheduling", &[
    f("nodeSelector", 1, Kind::String).map().atomic(),
    f("tolerations", 2, Kind::Object(&CORE_V1_TOLERATION)).list().list_type(ListType::Atomic, &[]),
]);

static POLICY_V1_EVICTION: Type = ty("policy.v1.Eviction", &[
    f("apiVersion", 0, Kind::String),
    f("deleteOptions", 2, Kind::Object(&META_V1_DELETE_OPTIONS)),
    f("kind", 0, Kind::String),
    f("metadata", 1, Kind::Object(&META_V1_OBJECT_META)),
]).kind();

static POLICY_V1_POD_DISRUPTION_BUDGET: Type = ty("policy.v1.PodDisruptionBudget", &[
    f("apiVersion", 0, Kind::String),
    f("kind", 0, Kind::String),
    f("metadata", 1, Kind::Object(&META_V1_OBJECT_META)),
    f("spec", 2, Kind::Object(&POLICY_V1_POD_DISRUPTION_BUDGET_SPEC)),
    f("status", 3, Kind::Object(&POLICY_V1_POD_DISRUPTION_BUDGET_STATUS)),
]).kind();

static POLICY_V1_POD_DISRUPTION_BUDGET_SPEC: Type = ty("policy.v1.PodDisruptionBudgetSpec", &[
    f("maxUnavailable", 3, Kind::IntOrString),
    f("minAvailable", 1, Kind::IntOrString),
    f("selector", 2, Kind::Object(&META_V1_LABEL_SELECTOR)).replaced(),
    f("unhealthyPodEvictionPolicy", 4, Kind::String).pointer().go("v1.UnhealthyPodEvictionPolicyType"),
]);

static POLICY_V1_POD_DISRUPTION_BUDGET_STATUS: Type = ty("policy.v1.PodDisruptionBudgetStatus", &[
    f("conditions", 7, Kind::Object(&META_V1_CONDITION)).list().list_type(ListType::Map, &["type"]).merged().by("type"),
    f("currentHealthy", 4, Kind::Int32).keep_empty(),
    f("desiredHealthy", 5, Kind::Int32).keep_empty(),
    f("disruptedPods", 2, Kind::Time).map(),
    f("disruptionsAllowed", 3, Kind::Int32).keep_empty(),
    f("expectedPods", 6, Kind::Int32).keep_empty(),
    f("observedGeneration", 1, Kind::Int64),
]);

static RBAC_V1_AGGREGATION_RULE: Type = ty("rbac.v1.AggregationRule", &[
    f("clusterRoleSelectors", 1, Kind::Object(&META_V1_LABEL_SELECTOR)).list().list_type(ListType::Atomic, &[]),
]);

static RBAC_V1_CLUSTER_ROLE: Type = ty("rbac.v1.ClusterRole", &[
    f("aggregationRule", 3, Kind::Object(&RBAC_V1_AGGREGATION_RULE)),
    f("apiVersion", 0, Kind::String),
    f("kind", 0, Kind::String),
    f("metadata", 1, Kind::Object(&META_V1_OBJECT_META)),
    f("rules", 2, Kind::Object(&RBAC_V1_POLICY_RULE)).list().keep_empty().list_type(ListType::Atomic, &[]),
]).kind();

static RBAC_V1_CLUSTER_ROLE_BINDING: Type = ty("rbac.v1.ClusterRoleBinding", &[
    f("apiVersion", 0, Kind::String),
    f("kind", 0, Kind::String),
    f("metadata", 1, Kind::Object(&META_V1_OBJECT_META)),
    f("roleRef", 3, Kind::Object(&RBAC_V1_ROLE_REF)).required(),
    f("subjects", 2, Kind::Object(&RBAC_V1_SUBJECT)).list().list_type(ListType::Atomic, &[]),
]).kind();

static RBAC_V1_POLICY_RULE: Type = ty("rbac.v1.PolicyRule", &[
    f("apiGroups", 2, Kind::String).list().list_type(ListType::Atomic, &[]),
    f("nonResourceURLs", 5, Kind::String).list().list_type(ListType::Atomic, &[]),
    f("resourceNames", 4, Kind::String).list().list_type(ListType::Atomic, &[]),
    f("resources", 3, Kind::String).list().list_type(ListType::Atomic, &[]),
    f("verbs", 1, Kind::String).list().required().list_type(ListType::Atomic, &[]),
]);

static RBAC_V1_ROLE: Type = ty("rbac.v1.Role", &[
    f("apiVersion", 0, Kind::String),
    f("kind", 0, Kind::String),
    f("metadata", 1, Kind::Object(&META_V1_OBJECT_META)),
    f("rules", 2, Kind::Object(&RBAC_V1_POLICY_RULE)).list().keep_empty().list_type(ListType::Atomic, &[]),
]).kind();

static RBAC_V1_ROLE_BINDING: Type = ty("rbac.v1.RoleBinding", &[
    f("apiVersion", 0, Kind::String),
    f("kind", 0, Kind::String),
    f("metadata", 1, Kind::Object(&META_V1_OBJECT_META)),
    f("roleRef", 3, Kind::Object(&RBAC_V1_ROLE_REF)).required(),
    f("subjects", 2, Kind::Object(&RBAC_V1_SUBJECT)).list().list_type(ListType::Atomic, &[]),
]).kind();

static RBAC_V1_ROLE_REF: Type = ty("rbac.v1.RoleRef", &[
    f("apiGroup", 1, Kind::String),
    f("kind", 2, Kind::String).required(),
    f("name", 3, Kind::String).required(),
]).atomic();

static RBAC_V1_SUBJECT: Type = ty("rbac.v1.Subject", &[
    f("apiGroup", 2, Kind::String),
    f("kind", 1, Kind::String).required(),
    f("name", 3, Kind::String).required(),
    f("namespace", 4, Kind::String),
]).atomic();

static RESOURCE_QUANTITY: Type = ty("resource.Quantity", &[
    f("string", 1, Kind::String),
]);

static RUNTIME_RAW_EXTENSION: Type = ty("runtime.RawExtension", &[
    f("raw", 1, Kind::Bytes),
]);

static RUNTIME_TYPE_META: Type = ty("runtime.TypeMeta", &[
    f("apiVersion", 1, Kind::String),
    f("kind", 2, Kind::String),
]);

static RUNTIME_UNKNOWN: Type = ty("runtime.Unknown", &[
    f("contentEncoding", 3, Kind::String),
    f("contentType", 4, Kind::String),
    f("raw", 2, Kind::Bytes),
    f("typeMeta", 1, Kind::Object(&RUNTIME_TYPE_META)),
]);

static SCHEDULING_V1_PRIORITY_CLASS: Type = ty("scheduling.v1.PriorityClass", &[
    f("apiVersion", 0, Kind::String),
    f("description", 4, Kind::String),
    f("globalDefault", 3, Kind::Bool),
    f("kind", 0, Kind::String),
    f("metadata", 1, Kind::Object(&META_V1_OBJECT_META)),
    f("preemptionPolicy", 5, Kind::String).pointer().go("v1.PreemptionPolicy"),
    f("value", 2, Kind::Int32).keep_empty(),
]).kind();

static STORAGE_V1_CSIDRIVER: Type = ty("storage.v1.CSIDriver", &[
    f("apiVersion", 0, Kind::String),
    f("kind", 0, Kind::String),
    f("metadata", 1, Kind::Object(&META_V1_OBJECT_META)),
    f("spec", 2, Kind::Object(&STORAGE_V1_CSIDRIVER_SPEC)).required(),
]).kind();

static STORAGE_V1_CSIDRIVER_SPEC: Type = ty("storage.v1.CSIDriverSpec", &[
    f("attachRequired", 1, Kind::Bool).pointer(),
    f("fsGroupPolicy", 5, Kind::String).pointer().go("v1.FSGroupPolicy"),
    f("nodeAllocatableUpdatePeriodSeconds", 9, Kind::Int64).pointer(),
    f("podInfoOnMount", 2, Kind::Bool).pointer(),
    f("preventPodSchedulingIfMissing", 11, Kind::Bool).pointer(),
    f("requiresRepublish", 7, Kind::Bool).pointer(),
    f("seLinuxMount", 8, Kind::Bool).pointer(),
    f("serviceAccountTokenInSecrets", 10, Kind::Bool).pointer(),
    f("storageCapacity", 4, Kind::Bool).pointer(),
    f("tokenRequests", 6, Kind::Object(&STORAGE_V1_TOKEN_REQUEST)).list().list_type(ListType::Atomic, &[]),
    f("volumeLifecycleModes", 3, Kind::String).list().list_type(ListType::Set, &[]).go("v1.VolumeLifecycleMode"),
]);

static STORAGE_V1_CSINODE: Type = ty("storage.v1.CSINode", &[
    f("apiVersion", 0, Kind::String),
    f("kind", 0, Kind::String),
    f("metadata", 1, Kind::Object(&META_V1_OBJECT_META)),
    f("spec", 2, Kind::Object(&STORAGE_V1_CSINODE_SPEC)).required(),
]).kind();

static STORAGE_V1_CSINODE_DRIVER: Type = ty("storage.v1.CSINodeDriver", &[
    f("allocatable", 4, Kind::Object(&STORAGE_V1_VOLUME_NODE_RESOURCES)),
    f("name", 1, Kind::String).required(),
    f("nodeID", 2, Kind::String).required(),
    f("topologyKeys", 3, Kind::String).list().list_type(ListType::Atomic, &[]),
]);

static STORAGE_V1_CSINODE_SPEC: Type = ty("storage.v1.CSINodeSpec", &[
    f("drivers", 1, Kind::Object(&STORAGE_V1_CSINODE_DRIVER)).list().required().list_type(ListType::Map, &["name"]).merged().by("name"),
]);

static STORAGE_V1_TOKEN_REQUEST: Type = ty("storage.v1.TokenRequest", &[
    f("audience", 1, Kind::String).required(),
    f("expirationSeconds", 2, Kind::Int64).pointer(),
]);

static STORAGE_V1_VOLUME_NODE_RESOURCES: Type = ty("storage.v1.VolumeNodeResources", &[
    f("count", 1, Kind::Int32).pointer(),
]);

/// Every type, sorted by name.
pub(super) static TYPES: &[&Type] = &[
    &APPS_V1_CONTROLLER_REVISION,
    &APPS_V1_DAEMON_SET,
    &APPS_V1_DAEMON_SET_CONDITION,
    &APPS_V1_DAEMON_SET_SPEC,
    &APPS_V1_DAEMON_SET_STATUS,
    &APPS_V1_DAEMON_SET_UPDATE_STRATEGY,
    &APPS_V1_ROLLING_UPDATE_DAEMON_SET,
    &AUTHENTICATION_V1_BOUND_OBJECT_REFERENCE,
    &AUTHENTICATION_V1_EXTRA_VALUE,
    &AUTHENTICATION_V1_SELF_SUBJECT_REVIEW,
    &AUTHENTICATION_V1_SELF_SUBJECT_REVIEW_STATUS,
    &AUTHENTICATION_V1_TOKEN_REQUEST,
    &AUTHENTICATION_V1_TOKEN_REQUEST_SPEC,
    &AUTHENTICATION_V1_TOKEN_REQUEST_STATUS,
    &AUTHENTICATION_V1_TOKEN_REVIEW,
    &AUTHENTICATION_V1_TOKEN_REVIEW_SPEC,
    &AUTHENTICATION_V1_TOKEN_REVIEW_STATUS,
    &AUTHENTICATION_V1_USER_INFO,
    &AUTHORIZATION_V1_EXTRA_VALUE,
    &AUTHORIZATION_V1_FIELD_SELECTOR_ATTRIBUTES,
    &AUTHORIZATION_V1_LABEL_SELECTOR_ATTRIBUTES,
    &AUTHORIZATION_V1_LOCAL_SUBJECT_ACCESS_REVIEW,
    &AUTHORIZATION_V1_NON_RESOURCE_ATTRIBUTES,
    &AUTHORIZATION_V1_NON_RESOURCE_RULE,
    &AUTHORIZATION_V1_RESOURCE_ATTRIBUTES,
    &AUTHORIZATION_V1_RESOURCE_RULE,
    &AUTHORIZATION_V1_SELF_SUBJECT_ACCESS_REVIEW,
    &AUTHORIZATION_V1_SELF_SUBJECT_ACCESS_REVIEW_SPEC,
    &AUTHORIZATION_V1_SELF_SUBJECT_RULES_REVIEW,
    &AUTHORIZATION_V1_SELF_SUBJECT_RULES_REVIEW_SPEC,
    &AUTHORIZATION_V1_SUBJECT_ACCESS_REVIEW,
    &AUTHORIZATION_V1_SUBJECT_ACCESS_REVIEW_SPEC,
    &AUTHORIZATION_V1_SUBJECT_ACCESS_REVIEW_STATUS,
    &AUTHORIZATION_V1_SUBJECT_RULES_REVIEW_STATUS,
    &CERTIFICATES_V1_CERTIFICATE_SIGNING_REQUEST,
    &CERTIFICATES_V1_CERTIFICATE_SIGNING_REQUEST_CONDITION,
    &CERTIFICATES_V1_CERTIFICATE_SIGNING_REQUEST_SPEC,
    &CERTIFICATES_V1_CERTIFICATE_SIGNING_REQUEST_STATUS,
    &CERTIFICATES_V1_EXTRA_VALUE,
    &COORDINATION_V1_LEASE,
    &COORDINATION_V1_LEASE_SPEC,
    &CORE_V1_AWSELASTIC_BLOCK_STORE_VOLUME_SOURCE,
    &CORE_V1_AFFINITY,
    &CORE_V1_APP_ARMOR_PROFILE,
    &CORE_V1_ATTACHED_VOLUME,
    &CORE_V1_AZURE_DISK_VOLUME_SOURCE,
    &CORE_V1_AZURE_FILE_PERSISTENT_VOLUME_SOURCE,
    &CORE_V1_AZURE_FILE_VOLUME_SOURCE,
    &CORE_V1_BINDING,
    &CORE_V1_CSIPERSISTENT_VOLUME_SOURCE,
    &CORE_V1_CSIVOLUME_SOURCE,
    &CORE_V1_CAPABILITIES,
    &CORE_V1_CEPH_FSPERSISTENT_VOLUME_SOURCE,
    &CORE_V1_CEPH_FSVOLUME_SOURCE,
    &CORE_V1_CINDER_PERSISTENT_VOLUME_SOURCE,
    &CORE_V1_CINDER_VOLUME_SOURCE,
    &CORE_V1_CLIENT_IPCONFIG,
    &CORE_V1_CLUSTER_TRUST_BUNDLE_PROJECTION,
    &CORE_V1_CONFIG_MAP,
    &CORE_V1_CONFIG_MAP_ENV_SOURCE,
    &CORE_V1_CONFIG_MAP_KEY_SELECTOR,
    &CORE_V1_CONFIG_MAP_NODE_CONFIG_SOURCE,
    &CORE_V1_CONFIG_MAP_PROJECTION,
    &CORE_V1_CONFIG_MAP_VOLUME_SOURCE,
    &CORE_V1_CONTAINER,
    &CORE_V1_CONTAINER_EXTENDED_RESOURCE_REQUEST,
    &CORE_V1_CONTAINER_IMAGE,
    &CORE_V1_CONTAINER_PORT,
    &CORE_V1_CONTAINER_RESIZE_POLICY,
    &CORE_V1_CONTAINER_RESTART_RULE,
    &CORE_V1_CONTAINER_RESTART_RULE_ON_EXIT_CODES,
    &CORE_V1_CONTAINER_STATE,
    &CORE_V1_CONTAINER_STATE_RUNNING,
    &CORE_V1_CONTAINER_STATE_TERMINATED,
    &CORE_V1_CONTAINER_STATE_WAITING,
    &CORE_V1_CONTAINER_STATUS,
    &CORE_V1_CONTAINER_USER,
    &CORE_V1_DAEMON_ENDPOINT,
    &CORE_V1_DOWNWARD_APIPROJECTION,
    &CORE_V1_DOWNWARD_APIVOLUME_FILE,
    &CORE_V1_DOWNWARD_APIVOLUME_SOURCE,
    &CORE_V1_EMPTY_DIR_VOLUME_SOURCE,
    &CORE_V1_ENDPOINT_ADDRESS,
    &CORE_V1_ENDPOINT_PORT,
    &CORE_V1_ENDPOINT_SUBSET,
    &CORE_V1_ENDPOINTS,
    &CORE_V1_ENV_FROM_SOURCE,
    &CORE_V1_ENV_VAR,
    &CORE_V1_ENV_VAR_SOURCE,
    &CORE_V1_EPHEMERAL_CONTAINER,
    &CORE_V1_EPHEMERAL_CONTAINER_COMMON,
    &CORE_V1_EPHEMERAL_VOLUME_SOURCE,
    &CORE_V1_EVENT,
    &CORE_V1_EVENT_SERIES,
    &CORE_V1_EVENT_SOURCE,
    &CORE_V1_EXEC_ACTION,
    &CORE_V1_FCVOLUME_SOURCE,
    &CORE_V1_FILE_KEY_SELECTOR,
    &CORE_V1_FLEX_PERSISTENT_VOLUME_SOURCE,
    &CORE_V1_FLEX_VOLUME_SOURCE,
    &CORE_V1_FLOCKER_VOLUME_SOURCE,
    &CORE_V1_GCEPERSISTENT_DISK_VOLUME_SOURCE,
    &CORE_V1_GRPCACTION,
    &CORE_V1_GIT_REPO_VOLUME_SOURCE,
    &CORE_V1_GLUSTERFS_PERSISTENT_VOLUME_SOURCE,
    &CORE_V1_GLUSTERFS_VOLUME_SOURCE,
    &CORE_V1_HTTPGET_ACTION,
    &CORE_V1_HTTPHEADER,
    &CORE_V1_HOST_ALIAS,
    &CORE_V1_HOST_IP,
    &CORE_V1_HOST_PATH_VOLUME_SOURCE,
    &CORE_V1_ISCSIPERSISTENT_VOLUME_SOURCE,
    &CORE_V1_ISCSIVOLUME_SOURCE,
    &CORE_V1_IMAGE_VOLUME_SOURCE,
    &CORE_V1_IMAGE_VOLUME_STATUS,
    &CORE_V1_KEY_TO_PATH,
    &CORE_V1_LIFECYCLE,
    &CORE_V1_LIFECYCLE_HANDLER,
    &CORE_V1_LINUX_CONTAINER_USER,
    &CORE_V1_LOAD_BALANCER_INGRESS,
    &CORE_V1_LOAD_BALANCER_STATUS,
    &CORE_V1_LOCAL_OBJECT_REFERENCE,
    &CORE_V1_LOCAL_VOLUME_SOURCE,
    &CORE_V1_MODIFY_VOLUME_STATUS,
    &CORE_V1_NFSVOLUME_SOURCE,
    &CORE_V1_NAMESPACE,
    &CORE_V1_NAMESPACE_CONDITION,
    &CORE_V1_NAMESPACE_SPEC,
    &CORE_V1_NAMESPACE_STATUS,
    &CORE_V1_NODE,
    &CORE_V1_NODE_ADDRESS,
    &CORE_V1_NODE_AFFINITY,
    &CORE_V1_NODE_ALLOCATABLE_RESOURCE_CLAIM_STATUS,
    &CORE_V1_NODE_CONDITION,
    &CORE_V1_NODE_CONFIG_SOURCE,
    &CORE_V1_NODE_CONFIG_STATUS,
    &CORE_V1_NODE_DAEMON_ENDPOINTS,
    &CORE_V1_NODE_FEATURES,
    &CORE_V1_NODE_RUNTIME_HANDLER,
    &CORE_V1_NODE_RUNTIME_HANDLER_FEATURES,
    &CORE_V1_NODE_SELECTOR,
    &CORE_V1_NODE_SELECTOR_REQUIREMENT,
    &CORE_V1_NODE_SELECTOR_TERM,
    &CORE_V1_NODE_SPEC,
    &CORE_V1_NODE_STATUS,
    &CORE_V1_NODE_SWAP_STATUS,
    &CORE_V1_NODE_SYSTEM_INFO,
    &CORE_V1_OBJECT_FIELD_SELECTOR,
    &CORE_V1_OBJECT_REFERENCE,
    &CORE_V1_PERSISTENT_VOLUME,
    &CORE_V1_PERSISTENT_VOLUME_CLAIM,
    &CORE_V1_PERSISTENT_VOLUME_CLAIM_CONDITION,
    &CORE_V1_PERSISTENT_VOLUME_CLAIM_SPEC,
    &CORE_V1_PERSISTENT_VOLUME_CLAIM_STATUS,
    &CORE_V1_PERSISTENT_VOLUME_CLAIM_TEMPLATE,
    &CORE_V1_PERSISTENT_VOLUME_CLAIM_VOLUME_SOURCE,
    &CORE_V1_PERSISTENT_VOLUME_SOURCE,
    &CORE_V1_PERSISTENT_VOLUME_SPEC,
    &CORE_V1_PERSISTENT_VOLUME_STATUS,
    &CORE_V1_PHOTON_PERSISTENT_DISK_VOLUME_SOURCE,
    &CORE_V1_POD,
    &CORE_V1_POD_AFFINITY,
    &CORE_V1_POD_AFFINITY_TERM,
    &CORE_V1_POD_ANTI_AFFINITY,
    &CORE_V1_POD_ATTACH_OPTIONS,
    &CORE_V1_POD_CERTIFICATE_PROJECTION,
    &CORE_V1_POD_CONDITION,
    &CORE_V1_POD_DNSCONFIG,
    &CORE_V1_POD_DNSCONFIG_OPTION,
    &CORE_V1_POD_EXEC_OPTIONS,
    &CORE_V1_POD_EXTENDED_RESOURCE_CLAIM_STATUS,
    &CORE_V1_POD_IP,
    &CORE_V1_POD_LOG_OPTIONS,
    &CORE_V1_POD_OS,
    &CORE_V1_POD_PORT_FORWARD_OPTIONS,
    &CORE_V1_POD_READINESS_GATE,
    &CORE_V1_POD_RESOURCE_CLAIM,
    &CORE_V1_POD_RESOURCE_CLAIM_STATUS,
    &CORE_V1_POD_SCHEDULING_GATE,
    &CORE_V1_POD_SCHEDULING_GROUP,
    &CORE_V1_POD_SECURITY_CONTEXT,
    &CORE_V1_POD_SPEC,
    &CORE_V1_POD_STATUS,
    &CORE_V1_POD_TEMPLATE_SPEC,
    &CORE_V1_PORT_STATUS,
    &CORE_V1_PORTWORX_VOLUME_SOURCE,
    &CORE_V1_PREFERRED_SCHEDULING_TERM,
    &CORE_V1_PROBE,
    &CORE_V1_PROBE_HANDLER,
    &CORE_V1_PROJECTED_VOLUME_SOURCE,
    &CORE_V1_QUOBYTE_VOLUME_SOURCE,
    &CORE_V1_RBDPERSISTENT_VOLUME_SOURCE,
    &CORE_V1_RBDVOLUME_SOURCE,
    &CORE_V1_RESOURCE_CLAIM,
    &CORE_V1_RESOURCE_FIELD_SELECTOR,
    &CORE_V1_RESOURCE_HEALTH,
    &CORE_V1_RESOURCE_REQUIREMENTS,
    &CORE_V1_RESOURCE_STATUS,
    &CORE_V1_SELINUX_OPTIONS,
    &CORE_V1_SCALE_IOPERSISTENT_VOLUME_SOURCE,
    &CORE_V1_SCALE_IOVOLUME_SOURCE,
    &CORE_V1_SECCOMP_PROFILE,
    &CORE_V1_SECRET,
    &CORE_V1_SECRET_ENV_SOURCE,
    &CORE_V1_SECRET_KEY_SELECTOR,
    &CORE_V1_SECRET_PROJECTION,
    &CORE_V1_SECRET_REFERENCE,
    &CORE_V1_SECRET_VOLUME_SOURCE,
    &CORE_V1_SECURITY_CONTEXT,
    &CORE_V1_SERVICE,
    &CORE_V1_SERVICE_ACCOUNT,
    &CORE_V1_SERVICE_ACCOUNT_TOKEN_PROJECTION,
    &CORE_V1_SERVICE_PORT,
    &CORE_V1_SERVICE_SPEC,
    &CORE_V1_SERVICE_STATUS,
    &CORE_V1_SESSION_AFFINITY_CONFIG,
    &CORE_V1_SLEEP_ACTION,
    &CORE_V1_STORAGE_OSPERSISTENT_VOLUME_SOURCE,
    &CORE_V1_STORAGE_OSVOLUME_SOURCE,
    &CORE_V1_SYSCTL,
    &CORE_V1_TCPSOCKET_ACTION,
    &CORE_V1_TAINT,
    &CORE_V1_TOLERATION,
    &CORE_V1_TOPOLOGY_SPREAD_CONSTRAINT,
    &CORE_V1_TYPED_LOCAL_OBJECT_REFERENCE,
    &CORE_V1_TYPED_OBJECT_REFERENCE,
    &CORE_V1_VOLUME,
    &CORE_V1_VOLUME_DEVICE,
    &CORE_V1_VOLUME_MOUNT,
    &CORE_V1_VOLUME_MOUNT_STATUS,
    &CORE_V1_VOLUME_NODE_AFFINITY,
    &CORE_V1_VOLUME_PROJECTION,
    &CORE_V1_VOLUME_RESOURCE_REQUIREMENTS,
    &CORE_V1_VOLUME_SOURCE,
    &CORE_V1_VOLUME_STATUS,
    &CORE_V1_VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE,
    &CORE_V1_WEIGHTED_POD_AFFINITY_TERM,
    &CORE_V1_WINDOWS_SECURITY_CONTEXT_OPTIONS,
    &DISCOVERY_V1_ENDPOINT,
    &DISCOVERY_V1_ENDPOINT_CONDITIONS,
    &DISCOVERY_V1_ENDPOINT_HINTS,
    &DISCOVERY_V1_ENDPOINT_PORT,
    &DISCOVERY_V1_ENDPOINT_SLICE,
    &DISCOVERY_V1_FOR_NODE,
    &DISCOVERY_V1_FOR_ZONE,
    &EVENTS_V1_EVENT,
    &EVENTS_V1_EVENT_SERIES,
    &INTSTR_INT_OR_STRING,
    &META_V1_CONDITION,
    &META_V1_DELETE_OPTIONS,
    &META_V1_FIELD_SELECTOR_REQUIREMENT,
    &META_V1_FIELDS_V1,
    &META_V1_LABEL_SELECTOR,
    &META_V1_LABEL_SELECTOR_REQUIREMENT,
    &META_V1_LIST_META,
    &META_V1_MANAGED_FIELDS_ENTRY,
    &META_V1_MICRO_TIME,
    &META_V1_OBJECT_META,
    &META_V1_OWNER_REFERENCE,
    &META_V1_PRECONDITIONS,
    &META_V1_SHARD_INFO,
    &META_V1_STATUS,
    &META_V1_STATUS_CAUSE,
    &META_V1_STATUS_DETAILS,
    &META_V1_TIME,
    &NODE_V1_OVERHEAD,
    &NODE_V1_RUNTIME_CLASS,
    &NODE_V1_SCHEDULING,
    &POLICY_V1_EVICTION,
    &POLICY_V1_POD_DISRUPTION_BUDGET,
    &POLICY_V1_POD_DISRUPTION_BUDGET_SPEC,
    &POLICY_V1_POD_DISRUPTION_BUDGET_STATUS,
    &RBAC_V1_AGGREGATION_RULE,
    &RBAC_V1_CLUSTER_ROLE,
    &RBAC_V1_CLUSTER_ROLE_BINDING,
    &RBAC_V1_POLICY_RULE,
    &RBAC_V1_ROLE,
    &RBAC_V1_ROLE_BINDING,
    &RBAC_V1_ROLE_REF,
    &RBAC_V1_SUBJECT,
    &RESOURCE_QUANTITY,
    &RUNTIME_RAW_EXTENSION,
    &RUNTIME_TYPE_META,
    &RUNTIME_UNKNOWN,
    &SCHEDULING_V1_PRIORITY_CLASS,
    &STORAGE_V1_CSIDRIVER,
    &STORAGE_V1_CSIDRIVER_SPEC,
    &STORAGE_V1_CSINODE,
    &STORAGE_V1_CSINODE_DRIVER,
    &STORAGE_V1_CSINODE_SPEC,
    &STORAGE_V1_TOKEN_REQUEST,
    &STORAGE_V1_VOLUME_NODE_RESOURCES,
];

/// Names that mean a map of free keys wherever they occur, sorted.
pub(super) static MAP_NAMES: &[&str] = &[
    "allocatedResourceStatuses",
    "allocatedResources",
    "annotations",
    "binaryData",
    "deprecatedTopology",
    "disruptedPods",
    "extra",
    "labels",
    "limits",
    "matchLabels",
    "nodeSelector",
    "podFixed",
    "requests",
    "stringData",
    "userAnnotations",
    "volumeAttributes",
];
