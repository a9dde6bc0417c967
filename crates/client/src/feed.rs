//! A watch as a sequence of changes.
//!
//! It tracks which objects exist, so that it can report a deletion that happened while the watch was interrupted, and one
//! that was followed by a new object of the same name. It caches no objects.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, BoxStream, StreamExt};
pub use kennel_types::Identity;
use kube::Resource;
use kube::api::Api;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Config, Event};
use serde::de::DeserializeOwned;

use crate::backoff::{self, Policy};
use crate::connection;

/// What a watch delivers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change<K> {
    /// The object was created or modified, or is part of a list.
    Applied(K),
    /// The object was deleted.
    Gone(Identity),
    /// The first list is complete. Delivered once: later lists, after interruptions, are delivered as ordinary changes.
    Synced,
}

impl<K> Change<K> {
    /// The same change of something made from the object.
    pub fn map<V>(self, make: impl FnOnce(K) -> V) -> Change<V> {
        match self {
            Self::Applied(object) => Change::Applied(make(object)),
            Self::Gone(id) => Change::Gone(id),
            Self::Synced => Change::Synced,
        }
    }
}

/// Whether a watch runs, for those who show it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Link {
    /// Its list is not complete yet.
    #[default]
    Starting,
    Up,
    /// It was interrupted, and why.
    Down(String),
    /// The right to watch is lacking, and this goes on without.
    Refused,
}

/// The links of several watches, by the names that the log has for them.
pub type Links = Arc<tokio::sync::watch::Sender<BTreeMap<&'static str, Link>>>;

/// Watches for ever. Interruptions are retried with backoff, and logged with the name `what`.
pub fn watch<K>(api: Api<K>, config: Config, what: &'static str) -> BoxStream<'static, Change<K>>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    start(api, config, what, None, None)
}

/// As [`watch`], for what a process can do without: while the right to watch is lacking, there are no objects.
/// `consequence` tells people what they miss.
pub fn watch_optional<K>(
    api: Api<K>,
    config: Config,
    what: &'static str,
    consequence: &'static str,
) -> BoxStream<'static, Change<K>>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    start(api, config, what, Some(consequence), None)
}

/// As [`watch`], or with a `consequence` as [`watch_optional`], for those who show whether it runs: `links` has its link.
/// After an interruption it lists again, so that it is known when it runs again: a watch that goes on where it was
/// interrupted says nothing before the next change.
pub fn watch_linked<K>(
    api: Api<K>,
    config: Config,
    what: &'static str,
    consequence: Option<&'static str>,
    links: Links,
) -> BoxStream<'static, Change<K>>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    start(api, config, what, consequence, Some(links))
}

fn start<K>(
    api: Api<K>,
    config: Config,
    what: &'static str,
    consequence: Option<&'static str>,
    links: Option<Links>,
) -> BoxStream<'static, Change<K>>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let begin = move |listing| {
        let mut config = config.clone();
        if listing == Listing::Whole {
            config.page_size = None;
        }
        let events = watcher::watcher(api.clone(), config);
        events.backoff(Restarts::new()).boxed()
    };
    let watch = Watch {
        events: begin(Listing::Paged),
        begin,
        restarts: backoff::Backoff::new(RESTART),
        known: KnownObjects::default(),
        consequence,
        refusals: 0,
        links,
    };
    watch.link(what, Link::Starting);
    stream::unfold(watch, move |mut watch| async move {
        let changes = watch.next(what).await?;
        Some((stream::iter(changes), watch))
    })
    .flatten()
    .boxed()
}

/// How objects are listed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Listing {
    /// In pages, which bounds memory on both sides.
    Paged,
    /// In one response. Under many writes the server compacts the first page's version before the last page is requested,
    /// and a paged list would never complete.
    Whole,
}

/// A watch, and how to start it again.
struct Watch<K, B> {
    events: BoxStream<'static, Result<Event<K>, watcher::Error>>,
    begin: B,
    restarts: backoff::Backoff,
    known: KnownObjects,
    /// What is missing without the right to watch; `None` if nothing goes without it.
    consequence: Option<&'static str>,
    /// How often the right was found lacking in a row.
    refusals: u32,
    links: Option<Links>,
}

/// How often in a row the right to watch has to be lacking: an API server that has just started may not know its roles yet.
const REFUSALS: u32 = 3;

impl<K, B> Watch<K, B>
where
    K: Resource + 'static,
    B: Fn(Listing) -> BoxStream<'static, Result<Event<K>, watcher::Error>>,
{
    async fn next(&mut self, what: &'static str) -> Option<Vec<Change<K>>> {
        match self.events.next().await? {
            Ok(event) => {
                // Each try to list begins with `Init`, whether it is refused or not.
                if !matches!(event, Event::Init) {
                    self.refusals = 0;
                }
                if matches!(event, Event::InitDone) {
                    self.link(what, Link::Up);
                }
                Some(self.known.apply(event))
            }
            Err(error) if self.consequence.is_some() && has_status(&error, 403) => {
                Some(self.refused(what, &error))
            }
            Err(error) => {
                let reason = connection::describe_watch(&error);
                tracing::warn!(error = %reason, "watching {what} was interrupted");
                let listing = restart(&error);
                let listing = listing.or(self.links.is_some().then_some(Listing::Paged));
                self.link(what, Link::Down(reason));
                if let Some(listing) = listing {
                    self.restarts.sleep().await;
                    self.events = (self.begin)(listing);
                }
                Some(Vec::new())
            }
        }
    }
}

impl<K, B> Watch<K, B> {
    /// The right to watch is lacking. After a while the first list counts as complete; one warning says what follows.
    fn refused(&mut self, what: &'static str, error: &watcher::Error) -> Vec<Change<K>> {
        self.refusals = self.refusals.saturating_add(1);
        if self.refusals != REFUSALS {
            return Vec::new();
        }
        let consequence = self.consequence.unwrap_or_default();
        tracing::warn!(%error, "no right to list and watch {what}: {consequence}");
        self.link(what, Link::Refused);
        let first = !std::mem::replace(&mut self.known.synced, true);
        first.then_some(Change::Synced).into_iter().collect()
    }

    fn link(&self, what: &'static str, link: Link) {
        let Some(links) = &self.links else {
            return;
        };
        links.send_if_modified(|links| {
            let before = links.insert(what, link.clone());
            before != Some(link)
        });
    }
}

fn has_status(error: &watcher::Error, code: u16) -> bool {
    match error {
        watcher::Error::WatchStartFailed(error) | watcher::Error::InitialListFailed(error) => {
            matches!(error, kube::Error::Api(status) if status.code == code)
        }
        watcher::Error::WatchError(status) => status.code == code,
        _ => false,
    }
}

/// How to start again after an error that `kube`'s watcher cannot recover from: the resource version is too old. It would
/// request the same version for ever, or page through the same list.
fn restart(error: &watcher::Error) -> Option<Listing> {
    let (error, listing) = match error {
        watcher::Error::WatchStartFailed(error) => (error, Listing::Paged),
        watcher::Error::InitialListFailed(error) => (error, Listing::Whole),
        _ => return None,
    };
    let expired = matches!(error, kube::Error::Api(status) if status.code == 410);
    expired.then_some(listing)
}

/// How long an interrupted watch waits before it starts again. A controller whose watch is down does nothing, so the
/// bound is short.
const RESTART: Policy =
    Policy::exponential(Duration::from_millis(200), Duration::from_secs(10)).reset_after(CALM);
/// A watch that ran for this long without an interruption starts again at the shortest delay.
const CALM: Duration = Duration::from_secs(30);

/// The delays of an interrupted watch, for `kube`'s watcher.
struct Restarts(backoff::Backoff);

impl Restarts {
    fn new() -> Self {
        Self(backoff::Backoff::new(RESTART))
    }
}

impl Iterator for Restarts {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(self.0.next_delay())
    }
}

impl kube::runtime::utils::Backoff for Restarts {
    /// Does nothing: `kube` resets after one event, which is no sign that the watch is stable.
    fn reset(&mut self) {}
}

type Names = BTreeMap<(Arc<str>, Arc<str>), Arc<str>>;

/// How many names of namespaces are kept for sharing: clusters have fewer, and deleted ones must not pile up.
const NAMESPACES_MAX: usize = 10_000;

/// The objects that exist, as far as observed.
#[derive(Default)]
struct KnownObjects {
    uids: Names,
    /// Shared by their objects, to save memory.
    namespaces: BTreeSet<Arc<str>>,
    /// Those in the list that is being received.
    listed: Option<Names>,
    /// The first list is complete.
    synced: bool,
}

impl KnownObjects {
    fn apply<K: Resource>(&mut self, event: Event<K>) -> Vec<Change<K>> {
        match event {
            Event::Init => {
                self.listed = Some(Names::new());
                Vec::new()
            }
            Event::InitApply(object) | Event::Apply(object) => self.applied(object),
            Event::InitDone => self.list_complete(),
            Event::Delete(object) => {
                let id = Identity::of(object.meta());
                self.uids.remove(&(id.namespace.clone(), id.name.clone()));
                vec![Change::Gone(id)]
            }
        }
    }

    fn applied<K: Resource>(&mut self, object: K) -> Vec<Change<K>> {
        let mut id = Identity::of(object.meta());
        id.namespace = self.shared(id.namespace);
        let key = (id.namespace.clone(), id.name.clone());
        if let Some(listed) = &mut self.listed {
            listed.insert(key.clone(), id.uid.clone());
        }
        let before = self.uids.insert(key, id.uid.clone());
        let replaced = before.filter(|old| *old != id.uid);
        let gone = replaced.map(|uid| Change::Gone(Identity { uid, ..id }));
        gone.into_iter().chain([Change::Applied(object)]).collect()
    }

    fn shared(&mut self, namespace: Arc<str>) -> Arc<str> {
        if let Some(known) = self.namespaces.get(&namespace) {
            return known.clone();
        }
        if self.namespaces.len() == NAMESPACES_MAX {
            self.namespaces.clear();
        }
        self.namespaces.insert(namespace.clone());
        namespace
    }

    fn list_complete<K>(&mut self) -> Vec<Change<K>> {
        let listed = self.listed.take().unwrap_or_default();
        let before = std::mem::take(&mut self.uids);
        let gone = before
            .into_iter()
            .filter(|(key, _)| !listed.contains_key(key));
        let gone = gone.map(|((namespace, name), uid)| {
            Change::Gone(Identity {
                namespace,
                name,
                uid,
            })
        });
        let first = !std::mem::replace(&mut self.synced, true);
        let synced = first.then_some(Change::Synced);
        let changes = gone.chain(synced).collect();
        self.uids = listed;
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::Pod;
    use kube::ResourceExt as _;
    use serde_json::json;
    use std::sync::atomic::{AtomicU32, Ordering};

    fn pod(name: &str, uid: &str) -> Pod {
        let object = json!({"metadata": {"namespace": "ns", "name": name, "uid": uid}});
        serde_json::from_value(object).unwrap()
    }

    fn apply(known: &mut KnownObjects, event: Event<Pod>) -> Vec<String> {
        let show = |change: Change<Pod>| match change {
            Change::Applied(pod) => format!("+{}", pod.uid().unwrap()),
            Change::Gone(id) => format!("-{}", id.uid),
            Change::Synced => "synced".to_owned(),
        };
        known.apply(event).into_iter().map(show).collect()
    }

    #[test]
    fn objects_deleted_during_an_interruption_are_reported_gone() {
        let mut known = KnownObjects::default();
        assert!(apply(&mut known, Event::Init).is_empty());
        assert_eq!(apply(&mut known, Event::InitApply(pod("a", "1"))), ["+1"]);
        assert_eq!(apply(&mut known, Event::InitApply(pod("b", "2"))), ["+2"]);
        assert_eq!(apply(&mut known, Event::InitDone), ["synced"]);
        assert_eq!(apply(&mut known, Event::Apply(pod("c", "3"))), ["+3"]);
        assert_eq!(apply(&mut known, Event::Delete(pod("c", "3"))), ["-3"]);
        assert!(apply(&mut known, Event::Init).is_empty());
        assert_eq!(apply(&mut known, Event::InitApply(pod("b", "2"))), ["+2"]);
        // `Synced` is not repeated: controllers count the watches that are synced.
        assert_eq!(apply(&mut known, Event::InitDone), ["-1"]);
    }

    #[tokio::test(start_paused = true)]
    async fn delays_grow_up_to_a_bound_and_start_over_after_a_calm_time() {
        let (shortest, longest) = (Duration::from_millis(200), Duration::from_secs(10));
        let mut delays = Restarts::new();
        let first = delays.next().unwrap();
        assert!(first >= shortest / 2 && first <= shortest * 2, "{first:?}");
        let last = delays.by_ref().take(40).last().unwrap();
        assert!(last >= longest / 2 && last <= longest * 2, "{last:?}");
        kube::runtime::utils::Backoff::reset(&mut delays);
        assert!(delays.next().unwrap() > shortest * 2);
        tokio::time::advance(CALM + shortest).await;
        assert!(delays.next().unwrap() <= shortest * 2);
    }

    #[test]
    fn objects_of_a_namespace_share_its_name() {
        let mut known = KnownObjects::default();
        for name in ["a", "b"] {
            apply(&mut known, Event::Apply(pod(name, name)));
        }
        let names: Vec<&Arc<str>> = known.uids.keys().map(|(namespace, _)| namespace).collect();
        assert_eq!(names.len(), 2);
        assert!(Arc::ptr_eq(names[0], names[1]));
    }

    #[test]
    fn a_recreated_object_is_first_reported_gone() {
        let mut known = KnownObjects::default();
        assert_eq!(apply(&mut known, Event::Apply(pod("a", "1"))), ["+1"]);
        assert_eq!(apply(&mut known, Event::Apply(pod("a", "1"))), ["+1"]);
        assert_eq!(apply(&mut known, Event::Apply(pod("a", "2"))), ["-1", "+2"]);
    }

    type Answer = (u16, serde_json::Value);

    /// An API that answers queries with `answer`; never, if that returns nothing.
    fn api(answer: impl Fn(String) -> Option<Answer> + Clone + Send + 'static) -> Api<Pod> {
        use http::{Request, Response};
        use kube::client::Body;
        let service = tower::service_fn(move |request: Request<Body>| {
            let answered = answer(request.uri().query().unwrap_or_default().to_owned());
            async move {
                let Some((code, body)) = answered else {
                    return std::future::pending().await;
                };
                let answer = Response::builder().status(code);
                let answer = answer.body(Body::from(body.to_string().into_bytes()));
                Ok::<_, std::convert::Infallible>(answer.unwrap())
            }
        });
        Api::all(kube::Client::new(service, "default"))
    }

    fn list(uids: &[&str], version: u32, rest: &str) -> Answer {
        let pods: Vec<Pod> = uids.iter().map(|uid| pod("a", uid)).collect();
        let list = json!({"apiVersion": "v1", "kind": "PodList", "items": pods,
            "metadata": {"resourceVersion": version.to_string(), "continue": rest}});
        (200, list)
    }

    fn expired() -> Answer {
        let status = json!({"kind": "Status", "status": "Failure", "code": 410,
            "reason": "Expired", "message": "too old resource version: 1 (2)"});
        (410, status)
    }

    async fn check(api: Api<Pod>, expected: &[&str]) {
        let seen = watch(api, Config::default(), "pods").take(expected.len());
        let show = |change: Change<Pod>| match change {
            Change::Applied(pod) => format!("+{}", pod.uid().unwrap()),
            Change::Gone(id) => format!("-{}", id.uid),
            Change::Synced => "synced".to_owned(),
        };
        let seen: Vec<String> = seen.map(show).collect().await;
        assert_eq!(seen, expected);
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_is_refused_as_too_late_restart() {
        let lists = Arc::new(AtomicU32::new(0));
        let forgetful = api(move |query| {
            if query.contains("watch=true") {
                return query.contains("resourceVersion=1").then(expired);
            }
            let version = lists.fetch_add(1, Ordering::SeqCst) + 1;
            Some(list(&[&version.to_string()], version, ""))
        });
        check(forgetful, &["+1", "synced", "-1", "+2"]).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_linked_watch_lists_again_after_an_interruption_and_says_so() {
        let lists = Arc::new(AtomicU32::new(0));
        let broken = || {
            let status =
                json!({"kind": "Status", "status": "Failure", "code": 500, "message": "no disk"});
            (500, status)
        };
        let interrupted = api(move |query| {
            if query.contains("watch=true") {
                return query.contains("resourceVersion=1").then(broken);
            }
            let version = lists.fetch_add(1, Ordering::SeqCst) + 1;
            Some(list(&[&version.to_string()], version, ""))
        });
        let links = Links::default();
        let mut changes = links.subscribe();
        let seen = tokio::spawn(async move {
            let mut seen = Vec::new();
            while seen.len() < 3 && changes.changed().await.is_ok() {
                let link = changes.borrow_and_update()["pods"].clone();
                seen.extend(Some(link).filter(|link| *link != Link::Starting));
            }
            seen
        });
        let config = Config::default();
        let mut watch = watch_linked(interrupted, config, "pods", None, links.clone());
        assert_eq!(links.borrow()["pods"], Link::Starting);
        // It runs until the last link has been seen.
        let seen = tokio::select! {
            seen = seen => seen.unwrap(),
            () = async { while watch.next().await.is_some() {} } => panic!("the watch ended"),
        };
        assert_eq!(seen, [Link::Up, Link::Down("no disk".to_owned()), Link::Up]);
    }

    fn forbidden() -> Answer {
        let status = json!({"kind": "Status", "status": "Failure", "code": 403,
            "reason": "Forbidden", "message": "pods is forbidden"});
        (403, status)
    }

    #[tokio::test(start_paused = true)]
    async fn without_the_right_to_an_optional_watch_there_are_no_objects_until_it_is_given() {
        let lists = Arc::new(AtomicU32::new(0));
        let refusing = {
            let lists = lists.clone();
            api(move |query| {
                if query.contains("watch=true") {
                    return None;
                }
                let refused = lists.fetch_add(1, Ordering::SeqCst) < 6;
                Some(if refused {
                    forbidden()
                } else {
                    list(&["1"], 1, "")
                })
            })
        };
        let mut changes = watch_optional(refusing, Config::default(), "pods", "x");
        assert_eq!(changes.next().await, Some(Change::Synced));
        // Not at the first refusal.
        assert_eq!(lists.load(Ordering::SeqCst), REFUSALS);
        let next = changes.next().await;
        assert!(matches!(next, Some(Change::Applied(_))), "{next:?}");
        assert_eq!(lists.load(Ordering::SeqCst), 7);
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_whose_pages_expire_is_requested_without_pages() {
        let busy = api(|query| match query {
            query if query.contains("watch=true") => None,
            query if query.contains("continue=") => Some(expired()),
            query if query.contains("limit=") => Some(list(&["1"], 1, "more")),
            _ => Some(list(&["1"], 2, "")),
        });
        check(busy, &["+1", "+1", "synced"]).await;
    }
}
