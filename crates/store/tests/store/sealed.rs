//! Values that are stored otherwise than they are read: what is stored, and how it changes with the seal. Of files, also what is left
//! of earlier forms.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use kennel_store::{OpenError, Opened, Options, Seal, SealError, SqliteStore};
use tempfile::TempDir;

use crate::common::{
    Engine, TestStore, create, decode, delete, keys, on_each_engine, options, renew, update, value,
};

/// Turns every byte below `/a/` around a pivot and writes the pivot before them: enough to tell forms
/// apart. A pivot of zero stores values as they are.
#[derive(Debug)]
struct Turn {
    pivot: u8,
    name: String,
}

const MARK: u8 = 1;

fn turned(bytes: &[u8], pivot: u8) -> Vec<u8> {
    bytes.iter().map(|byte| byte ^ pivot).collect()
}

impl Seal for Turn {
    fn name(&self) -> &str {
        &self.name
    }

    fn seal(&self, key: &str, value: &[u8]) -> Option<Vec<u8>> {
        let is_sealed = key.starts_with("/a/") && self.pivot != 0;
        is_sealed.then(|| [&[MARK, self.pivot], &turned(value, self.pivot)[..]].concat())
    }

    fn open(&self, key: &str, stored: Bytes) -> Result<Opened, SealError> {
        let wanted = if key.starts_with("/a/") {
            self.pivot
        } else {
            0
        };
        match &stored[..] {
            [MARK, 0xff, ..] => Err(SealError::MissingKey(
                "nobody knows how to turn 0xff".into(),
            )),
            [MARK] => Err(SealError::Damaged("there is no pivot".into())),
            [MARK, pivot, rest @ ..] => Ok(Opened {
                value: turned(rest, *pivot).into(),
                is_current: *pivot == wanted,
            }),
            _ => Ok(Opened {
                value: stored,
                is_current: wanted == 0,
            }),
        }
    }
}

fn with(dir: &Path, pivot: u8) -> Options {
    let name = match pivot {
        0 => String::new(),
        pivot => format!("pivot {pivot}"),
    };
    Options {
        seal: Some(Arc::new(Turn { pivot, name })),
        ..options(dir)
    }
}

fn open(dir: &Path, pivot: u8) -> TestStore {
    SqliteStore::open(with(dir, pivot), decode).expect("the store opens")
}

/// The files as they are at this moment, elsewhere.
fn copy(dir: &Path) -> TempDir {
    let copy = TempDir::new().unwrap();
    for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
        std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
    }
    copy
}

/// Whether any file in the directory holds these bytes.
fn on_disk(dir: &Path, needle: &[u8]) -> bool {
    let entries = std::fs::read_dir(dir).unwrap().map(Result::unwrap);
    let mut files = entries.map(|entry| std::fs::read(entry.path()).unwrap());
    files.any(|bytes| bytes.windows(needle.len()).any(|w| w == needle))
}

fn seal(pivot: u8) -> Option<Arc<dyn Seal>> {
    with(Path::new(""), pivot).seal
}

/// What is stored for a secret with this pivot.
fn sealed(pivot: u8, secret: &str) -> Vec<u8> {
    [&[MARK, pivot], &turned(secret.as_bytes(), pivot)[..]].concat()
}

on_each_engine! {
async fn values_are_sealed_where_they_are_stored_and_plain_everywhere_else(engine: &Engine) {
    let store = engine.try_open(seal(7)).await.unwrap();
    let mut watch = store.watch("/", store.revision()).unwrap();
    let written = create(&store, "/a/x", "first secret").await.unwrap();
    assert_eq!(&written.record.value[..], b"first secret");
    update(&store, "/a/x", written.revision, "second secret").await.unwrap();
    let lazy = create(&store, "/a/y", "third secret").await.unwrap();
    renew(&store, "/a/y", lazy.revision, "fourth secret").await.unwrap();
    create(&store, "/open", "no secret").await.unwrap();
    let seen = watch.next().await.unwrap();
    assert_eq!(&seen[0].after.as_ref().unwrap().value[..], b"first secret");
    store.close().await;
    assert_eq!(engine.stored("/a/x"), Some(sealed(7, "second secret")));
    assert_eq!(engine.stored("/a/y"), Some(sealed(7, "fourth secret")));
    assert_eq!(engine.stored("/open"), Some(b"no secret".to_vec()));
    let store = engine.try_open(seal(7)).await.unwrap();
    assert_eq!(value(&store, "/a/x").as_deref(), Some("second secret"));
    assert_eq!(value(&store, "/a/y").as_deref(), Some("fourth secret"));
}

async fn a_new_seal_rewrites_every_value(engine: &Engine) {
    const KEYS: usize = 40;
    let store = engine.try_open(seal(0)).await.unwrap();
    for n in 0..KEYS {
        create(&store, &format!("/a/{n:02}"), &format!("my diary {n}")).await.unwrap();
    }
    create(&store, "/open", "no secret").await.unwrap();
    let mut last = store.revision();
    store.close().await;
    for pivot in [9, 3, 3, 0, 5] {
        let store = engine.try_open(seal(pivot)).await.unwrap();
        let form = |n| match pivot {
            0 => format!("my diary {n}").into_bytes(),
            pivot => sealed(pivot, &format!("my diary {n}")),
        };
        let started = Instant::now();
        for n in 0..KEYS {
            let key = format!("/a/{n:02}");
            // etcd's values are rewritten while the store is open.
            while engine.stored(&key) != Some(form(n)) {
                assert!(engine.is_etcd() && started.elapsed() < Duration::from_mins(1), "{key}");
            }
        }
        store.confirm().await.unwrap();
        for n in 0..KEYS {
            let record = store.get(&format!("/a/{n:02}")).unwrap();
            assert_eq!(&record.value[..], format!("my diary {n}").as_bytes());
            // The version that writers have read is the one to replace.
            let same = format!("my diary {n}");
            let written = update(&store, &record.key, record.modified, &same).await;
            written.unwrap();
        }
        assert_eq!(engine.stored("/open"), Some(b"no secret".to_vec()));
        assert!(store.revision() > last);
        last = store.revision();
        store.close().await;
    }
}

async fn a_value_that_no_key_opens_is_named_and_nothing_is_touched(engine: &Engine) {
    let store = engine.try_open(seal(0xff)).await.unwrap();
    create(&store, "/b/x", "x").await.unwrap();
    create(&store, "/a/x", "secret").await.unwrap();
    store.close().await;
    let before = engine.stored("/a/x");
    let said = engine.try_open(seal(5)).await.err().expect("it does not open");
    assert!(said.contains("cannot read /a/x"), "{said}");
    assert!(said.ends_with("nobody knows how to turn 0xff"), "{said}");
    assert_eq!(engine.stored("/a/x"), before);
    // Nobody else is kept from opening it.
    engine.spoil("/a/x", b"plain");
    engine.try_open(seal(5)).await.unwrap();
}

async fn a_damaged_sealed_value_is_set_aside(engine: &Engine) {
    let store = engine.try_open(seal(5)).await.unwrap();
    create(&store, "/a/x", "secret").await.unwrap();
    create(&store, "/a/y", "secret").await.unwrap();
    store.close().await;
    engine.spoil("/a/y", &[MARK]);
    let store = engine.try_open(seal(5)).await.unwrap();
    assert_eq!(keys(&store.range("/", None, None)), ["/a/x"]);
    assert_eq!(store.damaged()[0].key, "/a/y");
    assert_eq!(store.damaged()[0].reason, "there is no pivot");
    assert!(store.is_set_aside("/a/y"));
}
}

#[tokio::test]
async fn a_new_seal_leaves_no_trace_of_the_old_one_in_the_file() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path(), 0);
    // Long enough to take pages of their own, some of which are freed again.
    let long = "my diary ".repeat(2000);
    let mut revisions = Vec::new();
    for n in 0..40 {
        let key = format!("/a/{n:02}");
        let written = create(&store, &key, &format!("{long}{n}")).await.unwrap();
        let changed = update(&store, &key, written.revision, &format!("my diary {n}")).await;
        revisions.push((key, changed.unwrap().revision));
    }
    let (gone, revision) = revisions.pop().unwrap();
    delete(&store, &gone, revision).await.unwrap();
    let last = store.revision();
    // What a crash would leave: a log that holds everything.
    let dir = copy(dir.path());
    store.close().await;
    assert!(on_disk(dir.path(), b"my diary"));
    for pivot in [9, 3, 3, 0, 5] {
        let store = open(dir.path(), pivot);
        for (n, (key, revision)) in revisions.iter().enumerate() {
            let record = store.get(key).unwrap();
            assert_eq!(&record.value[..], format!("my diary {n}").as_bytes());
            assert_eq!(record.modified, *revision, "a new form is no change");
        }
        assert!(store.revision() >= last);
        for other in [0, 9, 3, 5] {
            let shows = on_disk(dir.path(), &turned(b"my diary", other));
            assert_eq!(shows, other == pivot, "{other} while it is {pivot}");
        }
        store.close().await;
    }
}

/// Nothing is stored any more that is in the old form, but what was deleted is still in free pages.
#[tokio::test]
async fn what_was_deleted_before_leaves_no_trace_either() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path(), 0);
    let written = create(&store, "/a/x", &"my diary ".repeat(2000))
        .await
        .unwrap();
    delete(&store, "/a/x", written.revision).await.unwrap();
    store.close().await;
    assert!(on_disk(dir.path(), b"my diary"));
    open(dir.path(), 4).close().await;
    assert!(!on_disk(dir.path(), b"my diary"));
}

#[tokio::test]
async fn a_value_that_cannot_be_opened_is_named_and_nothing_is_touched() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path(), 0xff);
    for n in 0..2000 {
        create(&store, &format!("/b/{n}"), "x").await.unwrap();
    }
    create(&store, "/a/x", "secret").await.unwrap();
    store.close().await;
    let file = dir.path().join(kennel_store::DATABASE_FILE);
    let before = std::fs::read(&file).unwrap();
    let refused = SqliteStore::open(with(dir.path(), 5), decode);
    let error = refused.err().expect("it does not open");
    assert!(matches!(&error, OpenError::Sealed { key, .. } if key == "/a/x"));
    let words = error.to_string();
    assert!(words.starts_with("cannot read /a/x in "), "{words}");
    assert!(
        words.ends_with("kennel.db: nobody knows how to turn 0xff"),
        "{words}"
    );
    assert_eq!(std::fs::read(&file).unwrap(), before);
}
