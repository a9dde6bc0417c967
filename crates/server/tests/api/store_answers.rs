//! Answers of a store on etcd that no test can have from a real one at will: over a database, by a store in between.

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use kennel_server::object::{self, Head};
use kennel_store::{
    Compacted, History, Op, Options, Page, RangeAtError, Record, Revision, SqliteStore, Store,
    Unconfirmed, Watch, WriteError, Written,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fixture::{MAPS, TestServer, map, version};

const SERVICES: &str = "/api/v1/namespaces/default/services";

/// What the store in between does.
#[derive(Default)]
struct Faults {
    /// The outcome of writes of keys that end like this is not known; they come later.
    delayed: Option<&'static str>,
    late: Vec<Op<Head>>,
    /// Memory lags: what etcd itself has.
    newest: Option<Page<Head>>,
    /// What was read from it.
    prefixes: Vec<String>,
}

struct Between {
    store: Arc<dyn Store<Head>>,
    faults: Mutex<Faults>,
    _dir: TempDir,
}

impl Between {
    fn new() -> Arc<Self> {
        let dir = TempDir::new().unwrap();
        let options = Options {
            collections: object::collections(),
            ..Options::new(dir.path())
        };
        let store = SqliteStore::open(options, |key, bytes| Ok(object::decode(key, bytes)?));
        Arc::new(Self {
            store: store.unwrap(),
            faults: Mutex::default(),
            _dir: dir,
        })
    }

    /// Performs the writes that are late; returns how many were stored.
    async fn come(&self) -> usize {
        let late = std::mem::take(&mut self.faults.lock().unwrap().late);
        let mut stored = 0;
        for op in late {
            stored += usize::from(self.store.write(op).await.is_ok());
        }
        stored
    }

    fn delay(&self, end: Option<&'static str>) {
        self.faults.lock().unwrap().delayed = end;
    }
}

impl Store<Head> for Between {
    fn revision(&self) -> Revision {
        self.store.revision()
    }

    fn newest(&self, prefix: &str) -> BoxFuture<'static, Result<Option<Page<Head>>, Unconfirmed>> {
        let mut faults = self.faults.lock().unwrap();
        faults.prefixes.push(prefix.to_owned());
        let page = faults.newest.as_ref().map(|page| Page {
            revision: page.revision,
            records: page
                .records
                .iter()
                .filter(|record| record.key.starts_with(prefix))
                .cloned()
                .collect(),
            remaining: 0,
        });
        Box::pin(std::future::ready(Ok(page)))
    }

    fn get(&self, key: &str) -> Option<Arc<Record<Head>>> {
        self.store.get(key)
    }

    fn range(&self, prefix: &str, after: Option<&str>, limit: Option<usize>) -> Page<Head> {
        self.store.range(prefix, after, limit)
    }

    fn range_at(
        &self,
        prefix: &str,
        revision: Revision,
        after: Option<&str>,
        limit: Option<usize>,
    ) -> Result<Page<Head>, RangeAtError> {
        self.store.range_at(prefix, revision, after, limit)
    }

    fn write(&self, op: Op<Head>) -> BoxFuture<'static, Result<Written<Head>, WriteError<Head>>> {
        let mut faults = self.faults.lock().unwrap();
        if faults.delayed.is_some_and(|end| op.key().ends_with(end)) {
            faults.late.push(op);
            let unknown = WriteError::Unknown("no answer".to_owned());
            return Box::pin(std::future::ready(Err(unknown)));
        }
        drop(faults);
        self.store.write(op)
    }

    fn history(&self, prefix: &str, after: Revision) -> Result<History<Head>, Compacted> {
        self.store.history(prefix, after)
    }

    fn watch(&self, prefix: &str, after: Revision) -> Result<Watch<Head>, Compacted> {
        self.store.watch(prefix, after)
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.store.close()
    }

    fn ended(&self) -> BoxFuture<'_, ()> {
        self.store.ended()
    }
}

fn service(name: &str, spec: &Value) -> Value {
    json!({"metadata": {"name": name}, "spec": spec})
}

fn node_port(spec: &Value) -> Value {
    spec["ports"][0]["nodePort"].clone()
}

#[tokio::test]
async fn no_service_gets_what_one_has_whose_outcome_is_not_known() {
    let between = Between::new();
    let server = TestServer::over(Arc::clone(&between) as Arc<dyn Store<Head>>).await;
    let spec = json!({"type": "NodePort", "ports": [{"port": 80}]});
    between.delay(Some("/first"));
    let unknown = server.post(SERVICES, &service("first", &spec)).await;
    unknown.fails(500, "InternalError");
    let second = server
        .post(SERVICES, &service("second", &spec))
        .await
        .is(201);
    between.delay(None);
    assert_eq!(between.come().await, 1);
    let first = server.get(&format!("{SERVICES}/first")).await.ok();
    assert_ne!(first["spec"]["clusterIP"], second["spec"]["clusterIP"]);
    assert_ne!(node_port(&first["spec"]), node_port(&second["spec"]));

    // What is shown is not held any longer than the service lives.
    server.delete(&format!("{SERVICES}/first")).await.ok();
    let asked = json!({"type": "NodePort", "clusterIP": first["spec"]["clusterIP"],
        "ports": [{"port": 80, "nodePort": node_port(&first["spec"])}]});
    server
        .post(SERVICES, &service("third", &asked))
        .await
        .is(201);
}

#[tokio::test]
async fn a_service_whose_update_has_no_known_outcome_keeps_both_node_ports() {
    let between = Between::new();
    let server = TestServer::over(Arc::clone(&between) as Arc<dyn Store<Head>>).await;
    let spec = |port: u16| json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": port}]});
    let first = server
        .post(SERVICES, &service("first", &spec(30_100)))
        .await;
    first.is(201);
    between.delay(Some("/first"));
    let path = format!("{SERVICES}/first");
    let change = json!({"spec": {"ports": [{"port": 80, "nodePort": 30_200}]}});
    let unknown = server.patch(crate::fixture::MERGE, &path, &change).await;
    unknown.fails(500, "InternalError");
    for port in [30_100, 30_200] {
        let taken = server.post(SERVICES, &service("other", &spec(port))).await;
        let said = taken.fails(422, "Invalid")["message"].to_string();
        assert!(said.contains("already allocated"), "{port}: {said}");
    }
    between.delay(None);
    assert_eq!(between.come().await, 1);
    let taken = server
        .post(SERVICES, &service("other", &spec(30_100)))
        .await;
    taken.is(201);
}

/// The client asks for the same ports again.
#[tokio::test]
async fn a_service_that_was_not_stored_after_all_can_be_created_again() {
    let between = Between::new();
    let server = TestServer::over(Arc::clone(&between) as Arc<dyn Store<Head>>).await;
    let spec = json!({"type": "NodePort", "clusterIP": "10.96.0.77", "ports": [{"port": 80, "nodePort": 30_100}]});
    between.delay(Some("/first"));
    let unknown = server.post(SERVICES, &service("first", &spec)).await;
    unknown.fails(500, "InternalError");
    between.delay(None);
    server
        .post(SERVICES, &service("first", &spec))
        .await
        .is(201);
    assert_eq!(between.come().await, 0, "the key exists");
}

#[tokio::test]
async fn a_read_of_the_newest_is_from_etcd_if_memory_does_not_catch_up() {
    let between = Between::new();
    let server = TestServer::over(Arc::clone(&between) as Arc<dyn Store<Head>>).await;
    server.map("old", &json!({"v": "old"})).await;
    // Another server's objects, at a revision that memory does not show.
    let elsewhere = Between::new();
    let other = TestServer::over(Arc::clone(&elsewhere) as Arc<dyn Store<Head>>).await;
    for name in ["new", "old"] {
        other
            .post(MAPS, &map(name, &json!({"v": "new"})))
            .await
            .is(201);
    }
    let newest = Page {
        revision: server.revision().await + 1_000,
        ..elsewhere.store.range("/registry/", None, None)
    };
    let revision = newest.revision;
    {
        let mut faults = between.faults.lock().unwrap();
        faults.newest = Some(newest);
        faults.prefixes.clear();
    }
    let old = format!("{MAPS}/old");
    assert_eq!(server.get(&old).await.ok()["data"]["v"], "new");
    server.get(&format!("{MAPS}/new")).await.ok();
    server
        .get(&format!("{MAPS}/none"))
        .await
        .fails(404, "NotFound");
    let all = server.get(&format!("{MAPS}?labelSelector=!x")).await.ok();
    assert_eq!(version(&all), revision);
    let names = crate::fixture::names(&all);
    assert!(names.contains(&"new"), "{names:?}");
    // A list in pages goes on where it began.
    let page = server.get(&format!("{MAPS}?limit=1")).await.ok();
    let token = page["metadata"]["continue"].as_str().unwrap();
    let rest = server.get(&format!("{MAPS}?continue={token}")).await.ok();
    assert_eq!(version(&rest), revision);
    assert!(crate::fixture::names(&rest).contains(&"old"));
    // A computed resource.
    let addresses = "/apis/networking.k8s.io/v1/ipaddresses";
    server.get(addresses).await.ok();
    server.get(&format!("{addresses}/10.96.0.1")).await.ok();
    let asked = between.faults.lock().unwrap().prefixes.clone();
    assert!(
        asked.contains(&"/registry/configmaps/default/old".to_owned()),
        "{asked:?}"
    );
    // Those who take any age get memory.
    let any = server.get(&format!("{old}?resourceVersion=0")).await.ok();
    assert_eq!(any["data"]["v"], "old");
}
