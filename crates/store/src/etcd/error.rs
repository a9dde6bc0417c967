//! Why a store on etcd does not open, and why a call to etcd failed.

use std::error::Error as _;
use std::path::PathBuf;

use tonic::{Code, Status};

use super::connection::NotConnected;
use crate::seal::SealError;

/// Why a store on etcd does not open.
#[derive(Debug, thiserror::Error)]
pub enum EtcdError {
    #[error("{member:?} is not an address of etcd: {reason}")]
    Address { member: String, reason: String },
    #[error(
        "etcd at {0} is on another machine, and the store holds secrets: give the certificate authority of its TLS \
         (--store-ca-file); without TLS, only loopback addresses are used"
    )]
    PlainRemote(String),
    #[error("cannot use {} for TLS to etcd: {reason}", path.display())]
    TlsFile { path: PathBuf, reason: String },
    #[error("etcd does not answer: {0}")]
    Unreachable(String),
    #[error(
        "another server uses this etcd: {holder}; one server at a time is supported. If it has ended without a \
         goodbye, its claim expires within {seconds} seconds"
    )]
    Claimed { holder: String, seconds: u64 },
    /// A stored value cannot be decrypted without a key that is missing. Nothing was changed.
    #[error("cannot read {key}: {reason}")]
    Sealed { key: String, reason: SealError },
    #[error(
        "{count} values cannot be read, the first is {first}; a start sets at most {max} aside: restore a snapshot"
    )]
    TooManyDamaged {
        count: usize,
        max: usize,
        first: String,
    },
    /// A server would see a part of the objects.
    #[error("a migration into this etcd was interrupted, from {from}; repeat `kennel migrate`")]
    HalfMigrated { from: String },
    #[error("etcd compacted its history again and again while it was read")]
    CompactedWhileLoading,
}

/// Why a call failed.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum CallError {
    /// Nothing was done, and a repetition may succeed.
    #[error("{0}")]
    NotDone(String),
    /// The call may have been done, or may still be.
    #[error("{0}")]
    Unclear(String),
    #[error("{0}")]
    Refused(String),
    /// The token is unknown or too old.
    #[error("{0}")]
    Login(String),
    #[error(
        "etcd is out of space (its alarm NOSPACE is active): free some with `etcdctl compact` and `etcdctl defrag` or \
         raise --quota-backend-bytes, and then run `etcdctl alarm disarm`"
    )]
    NoSpace,
    #[error("the request is larger than etcd takes")]
    RequestTooLarge,
    #[error("the response is larger than a message may be")]
    ResponseTooLarge,
    #[error("the requested revision has been compacted")]
    Compacted,
    #[error("the lease has expired")]
    NoLease,
}

impl CallError {
    pub(super) fn of(status: &Status) -> Self {
        let message = status.message();
        let text = describe(status);
        // The latter while another member is made the leader.
        let is_leaderless =
            message.contains("etcdserver: no leader") || message.contains("raft proposal dropped");
        if was_not_sent(status) || is_leaderless {
            return Self::NotDone(text);
        }
        match status.code() {
            Code::ResourceExhausted if message.contains("space exceeded") => Self::NoSpace,
            Code::ResourceExhausted if message.contains("too many requests") => Self::NotDone(text),
            Code::InvalidArgument if message.contains("too large") => Self::RequestTooLarge,
            Code::OutOfRange if message.contains("decoded message length") => {
                Self::ResponseTooLarge
            }
            Code::OutOfRange if message.contains("compacted") => Self::Compacted,
            Code::NotFound if message.contains("lease not found") => Self::NoLease,
            Code::Unauthenticated => Self::Login(text),
            Code::InvalidArgument if message.contains("auth store is old") => Self::Login(text),
            Code::InvalidArgument
            | Code::NotFound
            | Code::AlreadyExists
            | Code::PermissionDenied
            | Code::FailedPrecondition
            | Code::OutOfRange
            | Code::Unimplemented => Self::Refused(text),
            _ => Self::Unclear(text),
        }
    }

    /// Whether another member may do better.
    pub(super) fn is_of_member(&self) -> bool {
        matches!(self, Self::NotDone(_) | Self::Unclear(_))
    }
}

fn causes(status: &Status) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    std::iter::successors(status.source(), |cause| (*cause).source())
}

fn was_not_sent(status: &Status) -> bool {
    causes(status).any(|cause| cause.downcast_ref::<NotConnected>().is_some())
}

/// The message, with the last cause if it does not say that already.
fn describe(status: &Status) -> String {
    let message = status.message();
    match causes(status).last().map(ToString::to_string) {
        Some(cause) if !message.contains(&cause) => format!("{message}: {cause}"),
        _ => message.to_owned(),
    }
}
