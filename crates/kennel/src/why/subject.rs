//! Finds the DaemonSets that the command line names.

use anyhow::Context as _;
use kennel_client::api;
use kennel_core::daemonset::DaemonSetView;
use kennel_core::natural;
use kennel_inspect::lists::{get, list};
use kennel_inspect::{Error, snapshot};
use kennel_types::Pod;
use kennel_types::meta::controller;
use kube::Client;
use serde::de::{Deserialize as _, IgnoredAny};
use serde_json::Value;

use super::targets::{Target, Targets};

/// Where to look.
#[derive(Clone, Debug)]
pub(super) enum Scope {
    Namespace(String),
    AllNamespaces,
}

/// A DaemonSet to explain.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) daemon_set: DaemonSetView,
    /// The pod that it was asked for by.
    pub(super) pod: Option<String>,
    /// The node of that pod.
    pub(super) node: Option<String>,
}

#[derive(Debug, thiserror::Error)]
enum SubjectError {
    #[error("there is no DaemonSet {0} in any namespace")]
    NoDaemonSet(String),
    #[error("there is no pod {name}{place}")]
    NoPod { name: String, place: String },
    #[error("pod {pod} belongs to {owner}, not to a DaemonSet")]
    OtherOwner { pod: String, owner: String },
    #[error("pod {0} does not belong to a DaemonSet: it has no controller")]
    NoOwner(String),
    #[error("pod {pod} belongs to a DaemonSet {set} that was deleted")]
    OwnerGone { pod: String, set: String },
    #[error("cannot decode pod {0}")]
    Undecodable(String),
}

/// The objects found, and errors about the rest.
pub(super) async fn find(
    client: &Client,
    scope: &Scope,
    targets: &Targets,
) -> (Vec<Subject>, Vec<anyhow::Error>) {
    let found = match targets {
        Targets::All => vec![all(client, scope, None).await],
        Targets::Named(targets) => {
            let mut found = Vec::new();
            for target in targets {
                found.push(named(client, scope, target).await);
            }
            found
        }
    };
    let (mut subjects, mut errors) = (Vec::new(), Vec::new());
    for found in found {
        match found {
            Ok(more) => subjects.extend(more),
            Err(error) => errors.push(error),
        }
    }
    (subjects, errors)
}

async fn named(client: &Client, scope: &Scope, target: &Target) -> anyhow::Result<Vec<Subject>> {
    match target {
        Target::DaemonSet(name) => daemon_set(client, scope, name).await,
        Target::Pod(name) => pod(client, scope, name).await,
        Target::Name(name) => match daemon_set(client, scope, name).await {
            Err(error) if is_not_found(&error) => {
                let of_pod = pod(client, scope, name).await;
                // The first error is about what was probably meant, unless there is such a pod.
                of_pod.map_err(|of_pod| {
                    let no_pod = matches!(of_pod.downcast_ref(), Some(SubjectError::NoPod { .. }));
                    if no_pod || of_pod.is::<kube::Error>() {
                        error
                    } else {
                        of_pod
                    }
                })
            }
            found => found,
        },
    }
}

fn is_not_found(error: &anyhow::Error) -> bool {
    let in_all = matches!(error.downcast_ref(), Some(SubjectError::NoDaemonSet(_)));
    in_all || error.downcast_ref().is_some_and(Error::is_not_found)
}

fn subject(daemon_set: DaemonSetView) -> Subject {
    Subject {
        daemon_set,
        pod: None,
        node: None,
    }
}

/// All DaemonSets, or those of one name, in the natural order of names.
async fn all(client: &Client, scope: &Scope, fields: Option<&str>) -> anyhow::Result<Vec<Subject>> {
    let path = match scope {
        Scope::AllNamespaces => snapshot::ALL_DAEMON_SETS.to_owned(),
        Scope::Namespace(namespace) => snapshot::daemon_sets(namespace),
    };
    let sets = list(client, &path, None, fields).await;
    let sets = sets.context("cannot list DaemonSets")?.into_iter();
    let sets = sets.map(snapshot::daemon_set_view);
    let mut sets = sets.collect::<Result<Vec<_>, _>>()?;
    sets.sort_by(|a, b| {
        natural::compare(&a.namespace, &b.namespace)
            .then_with(|| natural::compare(&a.name, &b.name))
    });
    Ok(sets.into_iter().map(subject).collect())
}

async fn daemon_set(client: &Client, scope: &Scope, name: &str) -> anyhow::Result<Vec<Subject>> {
    if let Scope::Namespace(namespace) = scope {
        let set = snapshot::daemon_set(client, namespace, name).await?;
        return Ok(vec![subject(set)]);
    }
    let found = all(client, scope, Some(&format!("metadata.name={name}"))).await?;
    if found.is_empty() {
        return Err(SubjectError::NoDaemonSet(name.to_owned()).into());
    }
    Ok(found)
}

/// The DaemonSets of the pods of this name.
async fn pod(client: &Client, scope: &Scope, name: &str) -> anyhow::Result<Vec<Subject>> {
    let mut subjects = Vec::new();
    for object in pods(client, scope, name).await? {
        subjects.push(owner(client, &object).await?);
    }
    Ok(subjects)
}

async fn pods(client: &Client, scope: &Scope, name: &str) -> anyhow::Result<Vec<Value>> {
    let named = format!("metadata.name={name}");
    let elsewhere = || list(client, "/api/v1/pods", None, Some(&named));
    let Scope::Namespace(namespace) = scope else {
        let found = elsewhere().await.context("cannot list pods")?;
        if found.is_empty() {
            let (name, place) = (name.to_owned(), " in any namespace".to_owned());
            return Err(SubjectError::NoPod { name, place }.into());
        }
        return Ok(found);
    };
    match get(
        client,
        &format!("/api/v1/namespaces/{namespace}/pods"),
        name,
    )
    .await
    {
        Ok(object) => Ok(vec![object]),
        Err(error) if api::code(&error) == Some(404) => {
            let found = elsewhere().await.unwrap_or_default();
            let others = found
                .iter()
                .filter_map(|pod| pod["metadata"]["namespace"].as_str());
            let others: Vec<String> = others.map(|n| format!("-n {n}")).collect();
            let hint = match others.as_slice() {
                [] => String::new(),
                others => format!("; there is one with {}", others.join(" and ")),
            };
            let place = format!(" in namespace {namespace}{hint}");
            let name = name.to_owned();
            Err(SubjectError::NoPod { name, place }.into())
        }
        Err(error) => Err(error).context(format!("cannot read pod {namespace}/{name}")),
    }
}

/// The DaemonSet that a pod belongs to.
async fn owner(client: &Client, object: &Value) -> anyhow::Result<Subject> {
    let metadata = &object["metadata"];
    let text = |field: &str| metadata[field].as_str().unwrap_or_default();
    let (namespace, name) = (text("namespace"), text("name"));
    let pod = format!("{namespace}/{name}");
    let Ok(decoded) = Pod::<IgnoredAny>::deserialize(object) else {
        return Err(SubjectError::Undecodable(pod).into());
    };
    let Some(owner) = controller(&decoded.metadata) else {
        return Err(SubjectError::NoOwner(pod).into());
    };
    if owner.kind != kennel_types::daemonset::KIND {
        let owner = format!("{} {}", owner.kind, owner.name);
        return Err(SubjectError::OtherOwner { pod, owner }.into());
    }
    let gone = || SubjectError::OwnerGone {
        pod: pod.clone(),
        set: owner.name.clone(),
    };
    match snapshot::daemon_set(client, namespace, &owner.name).await {
        Ok(set) if *set.uid != *owner.uid => Err(gone().into()),
        Err(error) if error.is_not_found() => Err(gone().into()),
        Err(error) => Err(error.into()),
        Ok(daemon_set) => Ok(Subject {
            daemon_set,
            pod: Some(name.to_owned()),
            node: snapshot::pod(object).and_then(|pod| pod.view.target().map(ToString::to_string)),
        }),
    }
}
