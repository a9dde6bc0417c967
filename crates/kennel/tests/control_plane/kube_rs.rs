//! kube-rs, unchanged, as a client over TLS: its `watcher` in both ways of listing, and a `Controller`
//! with what it owns.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kennel_testkit::Kennel;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::Controller;
use kube::runtime::controller::Action;
use kube::runtime::wait::await_condition;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, Config, Resource, ResourceExt};
use serde_json::json;

const BINARY: &str = env!("CARGO_BIN_EXE_kennel");
/// Far more than anything here takes; a passing test never waits for it.
const TIMEOUT: Duration = Duration::from_mins(1);

async fn client(kennel: &Kennel) -> Client {
    let kubeconfig = Kubeconfig::read_from(kennel.kubeconfig()).expect("the kubeconfig is there");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    Client::try_from(config.expect("the kubeconfig is whole")).expect("a client can be made")
}

/// A ConfigMap with the label that these tests watch for; the cluster has others.
fn map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({
        "metadata": {"name": name, "labels": {"watched": "yes"}},
        "data": {"a": "b"},
    }))
    .expect("this is a ConfigMap")
}

async fn in_time<T>(what: &str, future: impl Future<Output = T>) -> T {
    let outcome = tokio::time::timeout(TIMEOUT, future).await;
    outcome.unwrap_or_else(|_| panic!("not in time: {what}"))
}

type Events<'a> = Pin<&'a mut dyn Stream<Item = watcher::Result<Event<ConfigMap>>>>;

/// The next event of a watch, in a word and the name of its object.
async fn next(events: &mut Events<'_>) -> String {
    let event = in_time("the next event", events.next()).await;
    match event
        .expect("a watch does not end")
        .expect("a watch does not fail")
    {
        Event::Init => "init".to_owned(),
        Event::InitApply(map) => format!("was {}", map.name_any()),
        Event::InitDone => "init done".to_owned(),
        Event::Apply(map) => format!("now {}", map.name_any()),
        Event::Delete(map) => format!("gone {}", map.name_any()),
    }
}

async fn check_watcher(config: watcher::Config) {
    let kennel = Kennel::server(BINARY);
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&kennel).await);
    maps.create(&PostParams::default(), &map("early"))
        .await
        .expect("a map can be created");

    let mut events: Events<'_> = pin!(watcher(maps.clone(), config.labels("watched=yes")));
    for expected in ["init", "was early", "init done"] {
        assert_eq!(next(&mut events).await, expected);
    }
    maps.create(&PostParams::default(), &map("late"))
        .await
        .expect("a map can be created");
    assert_eq!(next(&mut events).await, "now late");

    let change = Patch::Merge(json!({"data": {"a": "c"}}));
    maps.patch("early", &PatchParams::default(), &change)
        .await
        .expect("a map can be patched");
    assert_eq!(next(&mut events).await, "now early");

    // An object that no longer matches the selector is a deletion for its watchers.
    let change = Patch::Merge(json!({"metadata": {"labels": {"watched": "no"}}}));
    maps.patch("early", &PatchParams::default(), &change)
        .await
        .expect("a map can be patched");
    assert_eq!(next(&mut events).await, "gone early");

    maps.delete("late", &DeleteParams::default())
        .await
        .expect("a map can be deleted");
    assert_eq!(next(&mut events).await, "gone late");
}

#[tokio::test]
async fn a_watcher_that_lists_in_pages_sees_every_change() {
    check_watcher(watcher::Config::default().page_size(1)).await;
}

#[tokio::test]
async fn a_watcher_that_streams_its_list_sees_every_change() {
    check_watcher(watcher::Config::default().streaming_lists()).await;
}

/// Gives each watched ConfigMap a Secret of its name, which it owns.
async fn reconcile(map: Arc<ConfigMap>, client: Arc<Client>) -> Result<Action, kube::Error> {
    let secrets: Api<Secret> = Api::default_namespaced(Client::clone(&client));
    if secrets.get_opt(&map.name_any()).await?.is_none() {
        let mut secret = Secret::default();
        secret.metadata.name = Some(map.name_any());
        secret.metadata.owner_references = map.controller_owner_ref(&()).map(|owner| vec![owner]);
        secrets.create(&PostParams::default(), &secret).await?;
    }
    Ok(Action::await_change())
}

fn retry(_: Arc<ConfigMap>, _: &kube::Error, _: Arc<Client>) -> Action {
    Action::requeue(Duration::from_millis(100))
}

/// Waits for a Secret of this name that is not the one with this uid, and returns its uid.
async fn other_secret(secrets: &Api<Secret>, name: &str, than: Option<String>) -> Option<String> {
    let is_other = move |secret: Option<&Secret>| {
        secret.is_some_and(|secret| {
            secret.metadata.deletion_timestamp.is_none() && secret.uid() != than
        })
    };
    let secret = in_time("a secret", await_condition(secrets.clone(), name, is_other)).await;
    secret
        .expect("the watch holds")
        .and_then(|secret| secret.uid())
}

#[tokio::test]
async fn a_controller_reconciles_what_it_watches_and_what_it_owns() {
    let kennel = Kennel::server(BINARY);
    let client = client(&kennel).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let secrets: Api<Secret> = Api::default_namespaced(client.clone());
    let controller = Controller::new(
        maps.clone(),
        watcher::Config::default().labels("watched=yes"),
    )
    .owns(secrets.clone(), watcher::Config::default())
    .run(reconcile, retry, Arc::new(client))
    .for_each(|_| std::future::ready(()));
    let controller = tokio::spawn(controller);

    maps.create(&PostParams::default(), &map("lock"))
        .await
        .unwrap();
    let first = other_secret(&secrets, "lock", None).await;
    assert!(first.is_some());
    secrets
        .delete("lock", &DeleteParams::default())
        .await
        .unwrap();
    let second = other_secret(&secrets, "lock", first.clone()).await;
    assert!(second.is_some() && second != first);
    controller.abort();
}

#[tokio::test]
async fn patch_apply_creates_shares_and_conflicts() {
    let kennel = Kennel::server(BINARY);
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&kennel).await);
    let config = |value: &str| {
        Patch::Apply(json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"k": value},
        }))
    };
    let made = maps
        .patch("m", &PatchParams::apply("one"), &config("1"))
        .await;
    let managers = made.expect("an apply creates").metadata.managed_fields;
    let manager = managers.expect("an applied object has managers").remove(0);
    assert_eq!(manager.manager.as_deref(), Some("one"));
    let other = PatchParams::apply("two");
    let refused = maps.patch("m", &other, &config("2")).await;
    let Err(kube::Error::Api(status)) = refused else {
        panic!("another value is a conflict: {refused:?}");
    };
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    let forced = maps.patch("m", &other.force(), &config("2")).await;
    let data = forced.expect("force takes the field").data;
    assert_eq!(data.expect("there is data")["k"], "2");
}
