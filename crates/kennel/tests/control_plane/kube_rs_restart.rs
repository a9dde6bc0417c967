//! kube-rs goes on when the server comes back: its watcher in both ways of listing, and a controller.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, StreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kennel_server::api::Exemptions;
use kennel_server::audit::Options;
use kennel_server::limits::Timeouts;
use kennel_server::server::{Config, Server};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::controller::{Action, Controller};
use kube::runtime::watcher::{self, Event, watcher};
use serde_json::json;
use tempfile::TempDir;

/// Only a broken server makes a test wait this long.
const TIMEOUT: Duration = Duration::from_mins(1);

/// A server that can be started again at its address.
struct Fixture {
    dir: TempDir,
    server: Server,
}

impl Fixture {
    async fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let server = start(&dir, "127.0.0.1:0".parse().unwrap()).await;
        Self { dir, server }
    }

    async fn restart(self) -> Self {
        let address = self.server.address;
        self.server.stop().await;
        let server = start(&self.dir, address).await;
        Self {
            dir: self.dir,
            server,
        }
    }

    async fn maps(&self) -> Api<ConfigMap> {
        let kubeconfig = Kubeconfig::read_from(&self.server.kubeconfig).unwrap();
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await;
        let client = kube::Client::try_from(config.unwrap()).unwrap();
        Api::namespaced(client, "default")
    }
}

async fn start(dir: &TempDir, listen: SocketAddr) -> Server {
    let config = Config {
        data_dir: dir.path().to_owned(),
        listen,
        advertised: kennel_server::server::Advertised::default(),
        tls_san: Vec::new(),
        service_cidr: "10.96.0.0/16".parse().unwrap(),
        token_file: None,
        token_key_days: kennel_server::pki::keys::DAYS_DEFAULT,
        event_ttl: kennel_server::expire::TTL_DEFAULT,
        timeouts: Timeouts::default(),
        audit: Options::off(),
        store: None,
        encryption_key_file: None,
        storage_quota: kennel_server::quota::QUOTA_DEFAULT,
        backups: None,
        clock: kennel_server::pki::Clock::default(),
        pod_security: Exemptions::default(),
    };
    Server::start(config).await.expect("the server starts")
}

async fn create(maps: &Api<ConfigMap>, name: &str) {
    let map = serde_json::from_value(json!({
        "metadata": {"name": name, "labels": {"mine": "yes"}}, "data": {"k": "1"},
    }));
    maps.create(&PostParams::default(), &map.unwrap())
        .await
        .unwrap();
}

async fn change(maps: &Api<ConfigMap>, name: &str, value: &str) {
    let patch = Patch::Merge(json!({"data": {"k": value}}));
    maps.patch(name, &PatchParams::default(), &patch)
        .await
        .unwrap();
}

/// The next thing that is no error, in few words. Errors are what a restart looks like.
async fn next<S>(stream: &mut S) -> String
where
    S: Stream<Item = watcher::Result<Event<ConfigMap>>> + Unpin,
{
    loop {
        let item = tokio::time::timeout(TIMEOUT, stream.next()).await;
        let named = |word: &str, map: &ConfigMap| {
            let name = map.metadata.name.as_deref().unwrap_or_default();
            let value = map.data.as_ref().and_then(|data| data.get("k"));
            format!("{word} {name}={}", value.map_or("", String::as_str))
        };
        match item
            .expect("something happens in time")
            .expect("watchers do not end")
        {
            Err(_) => {}
            Ok(Event::Init) => return "init".to_owned(),
            Ok(Event::InitApply(map)) => return named("listed", &map),
            Ok(Event::InitDone) => return "listed all".to_owned(),
            Ok(Event::Apply(map)) => return named("applied", &map),
            Ok(Event::Delete(map)) => return named("deleted", &map),
        }
    }
}

async fn watcher_goes_on(config: watcher::Config) {
    let fixture = Fixture::new().await;
    let maps = fixture.maps().await;
    create(&maps, "before").await;
    let mut stream = pin!(watcher(maps.clone(), config.labels("mine")).default_backoff());
    for expected in ["init", "listed before=1", "listed all"] {
        assert_eq!(next(&mut stream).await, expected);
    }
    create(&maps, "a").await;
    assert_eq!(next(&mut stream).await, "applied a=1");
    change(&maps, "a", "2").await;
    assert_eq!(next(&mut stream).await, "applied a=2");
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    assert_eq!(next(&mut stream).await, "deleted a=2");

    let fixture = fixture.restart().await;
    let fresh = fixture.maps().await;
    create(&fresh, "after").await;
    // Listed or applied: that depends on whether the watcher had to begin anew.
    while !next(&mut stream).await.ends_with(" after=1") {}
    change(&fresh, "after", "2").await;
    while !next(&mut stream).await.ends_with("applied after=2") {}
    fixture.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watcher_that_lists_in_pages_goes_on_after_a_restart() {
    watcher_goes_on(watcher::Config::default().page_size(1)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watcher_that_streams_its_list_goes_on_after_a_restart() {
    watcher_goes_on(watcher::Config::default().streaming_lists()).await;
}

/// Copies `data.k` into an annotation.
async fn reconcile(map: Arc<ConfigMap>, maps: Arc<Api<ConfigMap>>) -> kube::Result<Action> {
    let value = map.data.as_ref().and_then(|data| data.get("k"));
    let patch = Patch::Merge(json!({"metadata": {"annotations": {"seen": value}}}));
    let name = map.metadata.name.as_deref().unwrap_or_default();
    maps.patch(name, &PatchParams::default(), &patch).await?;
    Ok(Action::await_change())
}

/// Waits until the controller has copied this value, by watching.
async fn copied(maps: &Api<ConfigMap>, name: &str, value: &str) {
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let objects = watcher(maps.clone(), config)
        .default_backoff()
        .applied_objects();
    let mut seen = pin!(objects.filter_map(async |map| {
        let annotations = map.ok()?.metadata.annotations?;
        (annotations.get("seen").map(String::as_str) == Some(value)).then_some(())
    }));
    let waited = tokio::time::timeout(TIMEOUT, seen.next()).await;
    waited.expect("the controller acts in time");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_goes_on_after_a_restart() {
    let fixture = Fixture::new().await;
    let maps = fixture.maps().await;
    let running = Controller::new(maps.clone(), watcher::Config::default().labels("mine")).run(
        reconcile,
        |_, _, _| Action::requeue(Duration::from_secs(1)),
        Arc::new(maps.clone()),
    );
    let controller = tokio::spawn(running.for_each(async |_| {}));
    create(&maps, "a").await;
    copied(&maps, "a", "1").await;
    change(&maps, "a", "2").await;
    copied(&maps, "a", "2").await;
    let fixture = fixture.restart().await;
    let fresh = fixture.maps().await;
    change(&fresh, "a", "3").await;
    copied(&fresh, "a", "3").await;
    create(&fresh, "b").await;
    copied(&fresh, "b", "1").await;
    controller.abort();
    fixture.server.stop().await;
}
