//! The health of a store's writer: it works, its disk is full, it has ended.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kennel_store::{Opened, Options, Seal, SealError, WriteError, WriterHealth};
use tempfile::TempDir;

use crate::common::{Engine, create, open_with, options};

/// Panics, in the writer's thread, when it is to write one key.
#[derive(Debug)]
struct Trap;

impl Seal for Trap {
    fn name(&self) -> &'static str {
        ""
    }

    fn seal(&self, key: &str, _: &[u8]) -> Option<Vec<u8>> {
        assert_ne!(key, "/a/trap", "on purpose");
        None
    }

    fn open(&self, _: &str, stored: Bytes) -> Result<Opened, SealError> {
        Ok(Opened {
            value: stored,
            is_current: true,
        })
    }
}

#[tokio::test]
async fn a_writer_that_panics_is_noticed() {
    let dir = TempDir::new().unwrap();
    let store = open_with(Options {
        seal: Some(Arc::new(Trap)),
        ..options(dir.path())
    });
    create(&store, "/a/1", "one").await.unwrap();
    assert_eq!(store.health(), WriterHealth::Healthy);
    let ended = tokio::time::timeout(Duration::from_millis(10), store.ended());
    assert!(ended.await.is_err(), "it runs");
    let refused = create(&store, "/a/trap", "x").await;
    assert!(matches!(refused, Err(WriteError::Closed)), "{refused:?}");
    store.ended().await;
    assert_eq!(store.health(), WriterHealth::Ended);
}

/// There is no thread that all writes need.
#[tokio::test]
async fn a_write_to_etcd_that_panics_ends_alone() {
    let Some(engine) = Engine::etcd() else {
        return;
    };
    let store = engine.try_open(Some(Arc::new(Trap))).await.unwrap();
    let refused = create(&store, "/a/trap", "x").await;
    assert!(
        matches!(refused, Err(WriteError::Unknown(_))),
        "{refused:?}"
    );
    assert_eq!(engine.stored("/a/trap"), None);
    create(&store, "/a/1", "one").await.unwrap();
    assert_eq!(store.health(), WriterHealth::Healthy);
    store.close().await;
    assert_eq!(store.health(), WriterHealth::Ended);
}
