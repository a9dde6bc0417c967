//! Reads the whole state at one revision, in pages; other threads parse them, which is the more expensive part.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::task::JoinHandle;

use super::client::Client;
use super::error::{CallError, EtcdError};
use super::proto::{KeyValue, RangeRequest, ResponseHeader, keys_under, signed, unsigned};
use super::shared::{Decode, Unreadable};
use crate::DamagedValue;
use crate::record::{Record, Revision};
use crate::seal::{Seal, SealError};

/// Keys per page: 3 MB of pods.
const PAGE_KEYS: i64 = 1_000;
/// How much smaller a page gets whose response was too large.
const PAGE_SHRINK: i64 = 8;
/// How long one page may take.
pub(super) const PAGE_TIMEOUT: Duration = Duration::from_secs(30);
/// Pages that are parsed while the next one is read.
const PARSERS_MAX: usize = 3;
/// How often loading starts over because etcd compacted its history meanwhile.
const ATTEMPTS: usize = 3;
/// How many values a start sets aside; more mean that something else is wrong.
const SET_ASIDE_MAX: usize = 100;

/// Keys that this program uses for itself.
pub(super) const OWN_PREFIX: &str = "/kennel/";
/// The key by which servers agree who compacts etcd's history.
pub(super) const COMPACT_KEY: &str = "compact_rev_key";

/// Opens and parses values.
pub(super) struct Reader<H> {
    pub(super) seal: Option<Arc<dyn Seal>>,
    pub(super) decode: Arc<Decode<H>>,
    pub(super) prefix: Arc<str>,
    pub(super) ignored: Arc<[String]>,
}

impl<H> Clone for Reader<H> {
    fn clone(&self) -> Self {
        Self {
            seal: self.seal.clone(),
            decode: Arc::clone(&self.decode),
            prefix: Arc::clone(&self.prefix),
            ignored: Arc::clone(&self.ignored),
        }
    }
}

/// The key, if it is one of an object: below this prefix, and not another program's.
pub(super) fn object_key<'a>(prefix: &str, ignored: &[String], key: &'a [u8]) -> Option<&'a str> {
    let key = std::str::from_utf8(key).ok()?;
    let is_own = key.starts_with(OWN_PREFIX) || key == COMPACT_KEY;
    let is_ignored = || ignored.iter().any(|prefix| key.starts_with(prefix));
    (key.starts_with(prefix) && !is_own && !is_ignored()).then_some(key)
}

impl<H> Reader<H> {
    /// See [`object_key`].
    pub(super) fn object_key<'a>(&self, key: &'a [u8]) -> Option<&'a str> {
        object_key(&self.prefix, &self.ignored, key)
    }

    /// The record, and whether it is stored in the form of the current seal.
    pub(super) fn record(
        &self,
        key: Arc<str>,
        kv: KeyValue,
    ) -> Result<(Arc<Record<H>>, bool), Unreadable> {
        let stored = Bytes::from(kv.value);
        let (value, is_current) = match &self.seal {
            None => (stored, true),
            Some(seal) => {
                let opened = seal.open(&key, stored).map_err(Unreadable::Sealed)?;
                (opened.value, opened.is_current)
            }
        };
        let head = (self.decode)(&key, &value).map_err(Unreadable::Undecodable)?;
        let record = Record {
            key,
            value,
            created: unsigned(kv.create_revision),
            modified: unsigned(kv.mod_revision),
            head,
        };
        Ok((Arc::new(record), is_current))
    }
}

pub(super) struct Loaded<H> {
    pub(super) cluster: u64,
    pub(super) revision: Revision,
    pub(super) records: Vec<Arc<Record<H>>>,
    /// Those that the current seal would store in another form.
    pub(super) stale: Vec<Arc<Record<H>>>,
    /// Those that cannot be read, with their revisions.
    pub(super) damaged: Vec<(DamagedValue, Revision)>,
}

/// What [`Loaded`] has, of some keys.
pub(super) struct Parsed<H> {
    pub(super) records: Vec<Arc<Record<H>>>,
    pub(super) stale: Vec<Arc<Record<H>>>,
    pub(super) damaged: Vec<(DamagedValue, Revision)>,
}

/// Loads all objects.
pub(super) async fn load<H: Send + Sync + 'static>(
    client: &Client,
    reader: &Reader<H>,
) -> Result<Loaded<H>, EtcdError> {
    for _ in 0..ATTEMPTS {
        let header = newest(client, PAGE_TIMEOUT).await;
        let header = header.map_err(|error| EtcdError::Unreachable(error.to_string()))?;
        if let Some(loaded) = load_at(client, reader, &header).await? {
            return Ok(loaded);
        }
    }
    Err(EtcdError::CompactedWhileLoading)
}

/// The newest revision: a linearizable read of a key that does not exist.
pub(super) async fn newest(client: &Client, within: Duration) -> Result<ResponseHeader, CallError> {
    let request = RangeRequest {
        key: vec![0],
        limit: 1,
        keys_only: true,
        ..RangeRequest::default()
    };
    let response = client.range(request, within).await?;
    response
        .header
        .ok_or_else(|| CallError::Refused("a response has no header".to_owned()))
}

/// All keys with a prefix at one revision, page by page.
pub(super) struct Pages {
    /// For the next page; `None` after the last.
    request: Option<RangeRequest>,
}

impl Pages {
    pub(super) fn new(prefix: &str, revision: Revision, keys_only: bool) -> Self {
        let (key, range_end) = keys_under(prefix);
        let request = RangeRequest {
            key,
            range_end,
            limit: PAGE_KEYS,
            revision: signed(revision),
            keys_only,
        };
        Self {
            request: Some(request),
        }
    }

    /// The next page; `None` after the last.
    pub(super) async fn next(
        &mut self,
        client: &Client,
    ) -> Result<Option<Vec<KeyValue>>, CallError> {
        let Some(request) = &mut self.request else {
            return Ok(None);
        };
        let page = loop {
            match client.range(request.clone(), PAGE_TIMEOUT).await {
                Err(CallError::ResponseTooLarge) if request.limit > 1 => {
                    request.limit = (request.limit / PAGE_SHRINK).max(1);
                }
                other => break other?,
            }
        };
        match page.kvs.last() {
            Some(last) if page.more => {
                request.key.clone_from(&last.key);
                request.key.push(0);
            }
            _ => self.request = None,
        }
        Ok(Some(page.kvs))
    }
}

/// `None`: the revision was compacted meanwhile.
async fn load_at<H: Send + Sync + 'static>(
    client: &Client,
    reader: &Reader<H>,
    header: &ResponseHeader,
) -> Result<Option<Loaded<H>>, EtcdError> {
    let revision = unsigned(header.revision);
    let Some(parsed) = range(client, reader, &reader.prefix, revision).await? else {
        return Ok(None);
    };
    check_count(&parsed.damaged)?;
    Ok(Some(Loaded {
        cluster: header.cluster_id,
        revision,
        records: parsed.records,
        stale: parsed.stale,
        damaged: parsed.damaged,
    }))
}

/// All objects whose keys start with a prefix, at one revision, in the order of their keys. `None`: the revision was compacted
/// meanwhile.
pub(super) async fn range<H: Send + Sync + 'static>(
    client: &Client,
    reader: &Reader<H>,
    prefix: &str,
    revision: Revision,
) -> Result<Option<Parsed<H>>, EtcdError> {
    let mut found = Parsed {
        records: Vec::new(),
        stale: Vec::new(),
        damaged: Vec::new(),
    };
    let mut pages = Pages::new(prefix, revision, false);
    let mut parsing = std::collections::VecDeque::new();
    loop {
        let page = match pages.next(client).await {
            Ok(page) => page,
            Err(CallError::Compacted) => return Ok(None),
            Err(error) => return Err(EtcdError::Unreachable(error.to_string())),
        };
        let is_last = page.is_none();
        if let Some(kvs) = page {
            let reader = reader.clone();
            parsing.push_back(tokio::task::spawn_blocking(move || parse(&reader, kvs)));
        }
        while parsing.len() > PARSERS_MAX || (is_last && !parsing.is_empty()) {
            if let Some(first) = parsing.pop_front() {
                found.add(joined(first).await?);
            }
        }
        if is_last {
            break;
        }
    }
    Ok(Some(found))
}

impl<H> Parsed<H> {
    fn add(&mut self, parsed: Self) {
        self.records.extend(parsed.records);
        self.stale.extend(parsed.stale);
        self.damaged.extend(parsed.damaged);
    }
}

async fn joined<H>(task: JoinHandle<Result<Parsed<H>, EtcdError>>) -> Result<Parsed<H>, EtcdError> {
    match task.await {
        Ok(parsed) => parsed,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(EtcdError::Unreachable(
                "the start was interrupted".to_owned(),
            )),
        },
    }
}

/// Fails only if a key of the seal is missing.
fn parse<H>(reader: &Reader<H>, kvs: Vec<KeyValue>) -> Result<Parsed<H>, EtcdError> {
    let mut parsed = Parsed {
        records: Vec::with_capacity(kvs.len()),
        stale: Vec::new(),
        damaged: Vec::new(),
    };
    for kv in kvs {
        let Some(key) = reader.object_key(&kv.key) else {
            continue;
        };
        let key: Arc<str> = key.into();
        let (created, modified) = (kv.create_revision, unsigned(kv.mod_revision));
        match reader.record(Arc::clone(&key), kv) {
            Ok((record, is_current)) => {
                if !is_current {
                    parsed.stale.push(Arc::clone(&record));
                }
                parsed.records.push(record);
            }
            Err(Unreadable::Sealed(reason @ SealError::MissingKey(_))) => {
                let key = key.to_string();
                return Err(EtcdError::Sealed { key, reason });
            }
            Err(reason) => {
                let damaged = DamagedValue {
                    key: key.to_string(),
                    created,
                    reason: reason.to_string(),
                };
                parsed.damaged.push((damaged, modified));
            }
        }
    }
    Ok(parsed)
}

fn check_count(damaged: &[(DamagedValue, Revision)]) -> Result<(), EtcdError> {
    match damaged {
        [(first, _), ..] if damaged.len() > SET_ASIDE_MAX => Err(EtcdError::TooManyDamaged {
            count: damaged.len(),
            max: SET_ASIDE_MAX,
            first: first.key.clone(),
        }),
        _ => Ok(()),
    }
}
