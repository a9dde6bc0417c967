//! What an object uses of quotas.

use std::collections::BTreeSet;

use kennel_types::{PodPhase, ServiceType, Timestamp};
use serde_json::Value;

use crate::pod::qos;
use crate::pod::resources::{
    Amounts, RequestsOrLimits, amounts, has_pod_level, raise_to, total_with_overhead,
};
use crate::quantity::{Format, Quantity};
use crate::tree::{at, int, list, map, number, opt_flag, opt_text, text};

/// The resources that each container must specify where they are limited: upstream's old mistake.
pub(super) const REQUIRED: [&str; 6] = [
    "cpu",
    "limits.cpu",
    "limits.memory",
    "memory",
    "requests.cpu",
    "requests.memory",
];

const STORAGE_CLASS: &str = ".storageclass.storage.k8s.io/";
/// What claims named their class with before `spec.storageClassName`; it still wins.
const STORAGE_CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";
const HUGE_PAGES: &str = "hugepages-";
const REQUESTS: &str = "requests.";

/// How the objects of a resource count for quotas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measurement {
    /// Not at all: events.
    Ignored,
    /// As `count/NAME`.
    Count,
    /// As `count/NAME` and under the plain name.
    PlainCount,
    /// The same, and by requests, limits and scopes.
    Pod,
    /// The same, and by load balancers and node ports.
    Service,
    /// The same, and by requested storage.
    PersistentVolumeClaim,
}

impl Measurement {
    /// That of a resource of any Kubernetes API. The rows of our own server name theirs.
    pub fn of(group: &str, plural: &str) -> Self {
        match (group, plural) {
            (_, "events") => Self::Ignored,
            ("", "pods") => Self::Pod,
            ("", "services") => Self::Service,
            ("", "persistentvolumeclaims") => Self::PersistentVolumeClaim,
            ("", "configmaps" | "replicationcontrollers" | "resourcequotas" | "secrets") => {
                Self::PlainCount
            }
            _ => Self::Count,
        }
    }
}

/// A resource of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind<'a> {
    pub group: &'a str,
    pub plural: &'a str,
    pub measurement: Measurement,
}

impl<'a> Kind<'a> {
    /// A resource of any Kubernetes API.
    pub fn of(group: &'a str, plural: &'a str) -> Self {
        Self {
            group,
            plural,
            measurement: Measurement::of(group, plural),
        }
    }
}

impl Kind<'_> {
    /// Whether quotas count its objects at all.
    pub fn is_counted(self) -> bool {
        self.measurement != Measurement::Ignored
    }

    /// Whether its usage depends on more than the object's existence.
    pub fn is_measured(self) -> bool {
        matches!(
            self.measurement,
            Measurement::Pod | Measurement::Service | Measurement::PersistentVolumeClaim
        )
    }

    /// Whether its objects are also counted under their plain name.
    fn has_plain_name(self) -> bool {
        self.measurement == Measurement::PlainCount || self.is_measured()
    }

    /// `count/pods`, `count/daemonsets.apps`
    fn count_name(self) -> String {
        match self.group {
            "" => format!("count/{}", self.plural),
            group => format!("count/{}.{group}", self.plural),
        }
    }

    /// Whether its objects use the resource of this name.
    pub fn uses(self, name: &str) -> bool {
        if let Some(counted) = name.strip_prefix("count/") {
            let (plural, group) = counted.split_once('.').unwrap_or((counted, ""));
            return self.is_counted() && (plural, group) == (self.plural, self.group);
        }
        if name == self.plural {
            return self.has_plain_name();
        }
        match self.measurement {
            Measurement::Ignored | Measurement::Count | Measurement::PlainCount => false,
            Measurement::Pod => is_of_pods(name),
            Measurement::Service => {
                matches!(name, "services.loadbalancers" | "services.nodeports")
            }
            Measurement::PersistentVolumeClaim => {
                let of_class = name.split_once(STORAGE_CLASS).map(|(_, rest)| rest);
                let name = of_class.unwrap_or(name);
                name == "requests.storage" || of_class == Some("persistentvolumeclaims")
            }
        }
    }
}

fn is_of_pods(name: &str) -> bool {
    let plain = name
        .strip_prefix(REQUESTS)
        .or_else(|| name.strip_prefix("limits."))
        .unwrap_or(name);
    let requested = name.strip_prefix(REQUESTS);
    matches!(plain, "cpu" | "memory" | "ephemeral-storage")
        || name.starts_with(HUGE_PAGES)
        || requested.is_some_and(|name| name.starts_with(HUGE_PAGES) || is_extended(name))
}

/// Whether it is a resource of a device plugin.
fn is_extended(name: &str) -> bool {
    name.contains('/') && !name.contains("kubernetes.io/")
}

/// All that quotas read of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    pub(super) usage: Amounts,
    /// Only of pods; each container with the resources in [`REQUIRED`] that it specifies. Empty if the pod as a whole
    /// does.
    pub(super) containers: Vec<(String, BTreeSet<&'static str>)>,
    /// Only of pods.
    pub(super) pod: Option<PodFacts>,
    /// When a deleted pod stops counting: a lost node must not keep its users from new pods.
    ends: Option<Timestamp>,
}

/// What the scopes of quotas select pods by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PodFacts {
    pub(super) has_deadline: bool,
    pub(super) is_best_effort: bool,
    pub(super) priority_class: String,
    pub(super) crosses_namespaces: bool,
}

impl Measured {
    /// Measures an object.
    pub fn of(kind: Kind<'_>, object: &Value) -> Self {
        let mut measured = Self::counted(kind);
        match kind.measurement {
            Measurement::Ignored | Measurement::Count | Measurement::PlainCount => {}
            Measurement::Pod => measured.measure_pod(object),
            Measurement::Service => measured.measure_service(&object["spec"]),
            Measurement::PersistentVolumeClaim => measured.measure_claim(object),
        }
        measured
    }

    /// When its usage changes though the object does not.
    pub fn ends(&self) -> Option<Timestamp> {
        self.ends
    }

    /// What it uses of one resource. A pod whose end is over is an object and no more.
    pub fn amount(&self, name: &str, now: Timestamp) -> Option<Quantity> {
        let ended = self.ends.is_some_and(|end| now > end);
        if ended && !name.starts_with("count/") {
            return None;
        }
        self.usage.get(name).copied()
    }

    /// Raises its usage to at least the other's.
    pub fn raise_to(&mut self, other: &Self) {
        raise_to(&mut self.usage, &other.usage);
    }

    /// An object that is one, and no more.
    pub fn counted(kind: Kind<'_>) -> Self {
        let mut usage = Amounts::from([(kind.count_name(), one())]);
        if kind.has_plain_name() {
            usage.insert(kind.plural.to_owned(), one());
        }
        Self {
            usage,
            ..Self::default()
        }
    }

    fn measure_pod(&mut self, pod: &Value) {
        let spec = &pod["spec"];
        self.pod = Some(PodFacts::of(spec));
        let phase = PodPhase::from(text(pod, "status.phase"));
        if phase.is_terminal() {
            self.usage.remove("pods");
            return;
        }
        self.ends = end(&pod["metadata"]);
        let requests = total_with_overhead(spec, RequestsOrLimits::Requests);
        let limits = total_with_overhead(spec, RequestsOrLimits::Limits);
        self.usage.extend(compute_usage(&requests, &limits));
        if has_pod_level(spec) {
            return;
        }
        for field in ["containers", "initContainers"] {
            for container in list(spec, field) {
                let name = text(container, "name").to_owned();
                let resources = &container["resources"];
                let (requests, limits) = (
                    amounts(&resources["requests"]),
                    amounts(&resources["limits"]),
                );
                let usage = compute_usage(&requests, &limits);
                let specified = REQUIRED
                    .into_iter()
                    .filter(|name| usage.contains_key(*name));
                self.containers.push((name, specified.collect()));
            }
        }
    }

    fn measure_service(&mut self, spec: &Value) {
        let ports = list(spec, "ports");
        let given = ports.iter().filter(|port| number(port, "nodePort") > 0);
        let allocates = opt_flag(spec, "allocateLoadBalancerNodePorts") != Some(false);
        let (balancers, node_ports) = match ServiceType::from(text(spec, "type")) {
            ServiceType::NodePort => (0, ports.len()),
            ServiceType::LoadBalancer if allocates => (1, ports.len()),
            ServiceType::LoadBalancer => (1, given.count()),
            ServiceType::ClusterIp | ServiceType::ExternalName => (0, 0),
        };
        let counts = [
            ("services.loadbalancers", balancers),
            ("services.nodeports", node_ports),
        ];
        for (name, count) in counts {
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            let count = Quantity::from_units(count, Format::DecimalSi);
            self.usage.insert(name.to_owned(), count);
        }
    }

    fn measure_claim(&mut self, claim: &Value) {
        let storage = |map: &Value| map.get("storage").map(Quantity::read);
        let asked = storage(at(claim, "spec.resources.requests"));
        let allocated = storage(at(claim, "status.allocatedResources"));
        let storage = asked.map(|asked| asked.max(allocated.unwrap_or_default()));
        // Whole bytes: `value` rounds up.
        let storage = storage.map(|one| Quantity::from_units(one.value(), one.format()));
        let beta = map(claim, "metadata.annotations").get(STORAGE_CLASS_ANNOTATION);
        let class = beta
            .and_then(Value::as_str)
            .or(opt_text(claim, "spec.storageClassName"));
        let mut own = Amounts::from([("persistentvolumeclaims".to_owned(), one())]);
        own.extend(storage.map(|storage| ("requests.storage".to_owned(), storage)));
        if let Some(class) = class.filter(|class| !class.is_empty()) {
            let by_class = own
                .iter()
                .map(|(name, amount)| (format!("{class}{STORAGE_CLASS}{name}"), *amount));
            self.usage.extend(by_class.collect::<Amounts>());
        }
        self.usage.extend(own);
    }
}

fn one() -> Quantity {
    Quantity::from_units(1, Format::DecimalSi)
}

/// When the grace period of a deleted pod has passed once more, as upstream counts it.
fn end(metadata: &Value) -> Option<Timestamp> {
    let deleted = Timestamp::parse(text(metadata, "deletionTimestamp"))?;
    let grace = int(metadata, "deletionGracePeriodSeconds")?;
    Some(deleted.saturating_add_millis(grace.saturating_mul(1000)))
}

/// The names that quotas have for amounts of pods.
fn compute_usage(requests: &Amounts, limits: &Amounts) -> Amounts {
    let mut usage = Amounts::new();
    for name in ["cpu", "memory", "ephemeral-storage"] {
        if let Some(amount) = requests.get(name) {
            let names = [name.to_owned(), format!("{REQUESTS}{name}")];
            usage.extend(names.map(|name| (name, *amount)));
        }
        if let Some(amount) = limits.get(name) {
            usage.insert(format!("limits.{name}"), *amount);
        }
    }
    for (name, amount) in requests {
        if name.starts_with(HUGE_PAGES) {
            usage.insert(name.clone(), *amount);
        }
        if name.starts_with(HUGE_PAGES) || is_extended(name) {
            usage.insert(format!("{REQUESTS}{name}"), *amount);
        }
    }
    usage
}

impl PodFacts {
    fn of(spec: &Value) -> Self {
        let class = text(spec, "priorityClassName");
        Self {
            has_deadline: int(spec, "activeDeadlineSeconds") >= Some(0),
            is_best_effort: qos::class(spec) == qos::Class::BestEffort,
            priority_class: class.to_owned(),
            crosses_namespaces: crosses_namespaces(&spec["affinity"]),
        }
    }
}

/// Whether (anti-)affinity terms look at pods of other namespaces.
fn crosses_namespaces(affinity: &Value) -> bool {
    let crosses = |term: &Value| {
        let names = term["namespaces"].as_array();
        names.is_some_and(|names| !names.is_empty()) || term["namespaceSelector"].is_object()
    };
    let list = |terms: &Value| terms.as_array().cloned().unwrap_or_default();
    ["podAffinity", "podAntiAffinity"].iter().any(|kind| {
        let terms = &affinity[*kind];
        let required = list(&terms["requiredDuringSchedulingIgnoredDuringExecution"]);
        let preferred = list(&terms["preferredDuringSchedulingIgnoredDuringExecution"]);
        required.iter().any(crosses) || preferred.iter().any(|one| crosses(&one["podAffinityTerm"]))
    })
}
