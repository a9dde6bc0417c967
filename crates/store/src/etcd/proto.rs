//! The messages of etcd's API (v3) that are used here, transcribed from `etcdserverpb/rpc.proto` and `mvccpb/kv.proto` without
//! unused fields. A `oneof` is declared as optional fields, of which one is set: the bytes are the same.

use bytes::Bytes;

/// Declares messages like a proto file: the number, name and type of each field, and how prost encodes it.
macro_rules! messages {
    ($($(#[$attribute:meta])* $name:ident {
        $($tag:tt => $field:ident: $type:ty as $($kind:ident $(= $value:tt)?)+,)*
    })*) => {$(
        $(#[$attribute])*
        #[derive(Clone, PartialEq, prost::Message)]
        pub(super) struct $name {$(
            #[prost($($kind $(= $value)?,)+ tag = $tag)]
            pub(super) $field: $type,
        )*}
    )*};
}

/// A unary call, named by its request.
pub(super) trait Call: prost::Message + Clone + 'static {
    type Response: prost::Message + Default + 'static;
    /// `/service/method`.
    const PATH: &'static str;
    /// Whether a call whose outcome is unclear may be repeated.
    const IS_IDEMPOTENT: bool;
}

macro_rules! calls {
    ($($service:literal $method:ident($request:ty) -> $response:ty, $idempotent:literal;)*) => {$(
        impl Call for $request {
            type Response = $response;
            const PATH: &'static str = concat!("/etcdserverpb.", $service, "/", stringify!($method));
            const IS_IDEMPOTENT: bool = $idempotent;
        }
    )*};
}

/// The path of the bidirectional stream of watches.
pub(super) const WATCH: &str = "/etcdserverpb.Watch/Watch";
/// The path of the bidirectional stream that keeps leases alive.
pub(super) const KEEP_ALIVE: &str = "/etcdserverpb.Lease/LeaseKeepAlive";

calls! {
    "KV" Range(RangeRequest) -> RangeResponse, true;
    "KV" Put(PutRequest) -> PutResponse, true;
    "KV" Txn(TxnRequest) -> TxnResponse, false;
    "KV" Compact(CompactionRequest) -> CompactionResponse, false;
    "Lease" LeaseGrant(LeaseGrantRequest) -> LeaseGrantResponse, true;
    "Lease" LeaseRevoke(LeaseRevokeRequest) -> LeaseRevokeResponse, false;
    "Maintenance" Alarm(AlarmRequest) -> AlarmResponse, true;
    "Auth" Authenticate(AuthenticateRequest) -> AuthenticateResponse, true;
}

/// Values of [`Compare::target`].
pub(super) const TARGET_VERSION: i32 = 0;
pub(super) const TARGET_MOD: i32 = 2;
/// A value of [`WatchEvent::kind`].
pub(super) const DELETE: i32 = 1;
/// A value of [`AlarmMember::alarm`].
pub(super) const NOSPACE: i32 = 1;

messages! {
    ResponseHeader {
        1 => cluster_id: u64 as uint64,
        3 => revision: i64 as int64,
    }

    KeyValue {
        1 => key: Vec<u8> as bytes = "vec",
        2 => create_revision: i64 as int64,
        3 => mod_revision: i64 as int64,
        4 => version: i64 as int64,
        // Of its own, so that it does not keep the response that it came with.
        5 => value: Vec<u8> as bytes = "vec",
        6 => lease: i64 as int64,
    }

    RangeRequest {
        1 => key: Vec<u8> as bytes = "vec",
        2 => range_end: Vec<u8> as bytes = "vec",
        3 => limit: i64 as int64,
        4 => revision: i64 as int64,
        8 => keys_only: bool as bool,
    }

    RangeResponse {
        1 => header: Option<ResponseHeader> as message optional,
        2 => kvs: Vec<KeyValue> as message repeated,
        3 => more: bool as bool,
    }

    PutRequest {
        1 => key: Vec<u8> as bytes = "vec",
        2 => value: Bytes as bytes = "bytes",
        3 => lease: i64 as int64,
    }

    PutResponse {
        1 => header: Option<ResponseHeader> as message optional,
    }

    DeleteRangeRequest {
        1 => key: Vec<u8> as bytes = "vec",
        2 => range_end: Vec<u8> as bytes = "vec",
        3 => prev_kv: bool as bool,
    }

    DeleteRangeResponse {
        1 => header: Option<ResponseHeader> as message optional,
        3 => prev_kvs: Vec<KeyValue> as message repeated,
    }

    /// One of the fields.
    RequestOp {
        1 => range: Option<RangeRequest> as message optional,
        2 => put: Option<PutRequest> as message optional,
        3 => delete_range: Option<DeleteRangeRequest> as message optional,
    }

    /// One of the fields.
    ResponseOp {
        1 => range: Option<RangeResponse> as message optional,
        2 => put: Option<PutResponse> as message optional,
        3 => delete_range: Option<DeleteRangeResponse> as message optional,
    }

    /// Equality, which is the default of its first field, with one of the revisions.
    Compare {
        2 => target: i32 as int32,
        3 => key: Vec<u8> as bytes = "vec",
        4 => version: Option<i64> as int64 optional,
        6 => mod_revision: Option<i64> as int64 optional,
    }

    TxnRequest {
        1 => compare: Vec<Compare> as message repeated,
        2 => success: Vec<RequestOp> as message repeated,
        3 => failure: Vec<RequestOp> as message repeated,
    }

    TxnResponse {
        1 => header: Option<ResponseHeader> as message optional,
        2 => succeeded: bool as bool,
        3 => responses: Vec<ResponseOp> as message repeated,
    }

    CompactionRequest {
        1 => revision: i64 as int64,
    }

    CompactionResponse {
        1 => header: Option<ResponseHeader> as message optional,
    }

    WatchCreateRequest {
        1 => key: Vec<u8> as bytes = "vec",
        2 => range_end: Vec<u8> as bytes = "vec",
        3 => start_revision: i64 as int64,
        8 => fragment: bool as bool,
    }

    WatchRequest {
        1 => create: Option<WatchCreateRequest> as message optional,
    }

    WatchEvent {
        1 => kind: i32 as int32,
        2 => kv: Option<KeyValue> as message optional,
    }

    WatchResponse {
        1 => header: Option<ResponseHeader> as message optional,
        3 => created: bool as bool,
        4 => canceled: bool as bool,
        5 => compact_revision: i64 as int64,
        6 => cancel_reason: String as string,
        // Events follow in another response.
        7 => fragment: bool as bool,
        11 => events: Vec<WatchEvent> as message repeated,
    }

    LeaseGrantRequest {
        // In seconds.
        1 => ttl: i64 as int64,
    }

    LeaseGrantResponse {
        1 => header: Option<ResponseHeader> as message optional,
        2 => id: i64 as int64,
    }

    LeaseRevokeRequest {
        1 => id: i64 as int64,
    }

    LeaseRevokeResponse {
        1 => header: Option<ResponseHeader> as message optional,
    }

    LeaseKeepAliveRequest {
        1 => id: i64 as int64,
    }

    LeaseKeepAliveResponse {
        1 => header: Option<ResponseHeader> as message optional,
        // In seconds; 0 if there is no such lease.
        3 => ttl: i64 as int64,
    }

    /// Asks for the alarms that are active.
    AlarmRequest {
        1 => action: i32 as int32,
    }

    AlarmMember {
        1 => member_id: u64 as uint64,
        2 => alarm: i32 as int32,
    }

    AlarmResponse {
        1 => header: Option<ResponseHeader> as message optional,
        2 => alarms: Vec<AlarmMember> as message repeated,
    }

    AuthenticateRequest {
        1 => name: String as string,
        2 => password: String as string,
    }

    AuthenticateResponse {
        1 => header: Option<ResponseHeader> as message optional,
        2 => token: String as string,
    }
}

/// etcd's revisions are signed and never negative.
pub(super) fn unsigned(revision: i64) -> u64 {
    u64::try_from(revision).unwrap_or(0)
}

/// The revision for a comparison; no key has that of a revision which etcd cannot have.
pub(super) fn signed(revision: u64) -> i64 {
    i64::try_from(revision).unwrap_or(i64::MAX)
}

/// The key and the end of a range over all keys with a prefix.
pub(super) fn keys_under(prefix: &str) -> (Vec<u8>, Vec<u8>) {
    let mut end = prefix.as_bytes().to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return (prefix.as_bytes().to_vec(), end);
        }
    }
    (vec![0], vec![0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message as _;

    #[test]
    fn a_comparison_with_zero_is_sent() {
        let compare = Compare {
            target: TARGET_MOD,
            key: b"k".to_vec(),
            version: None,
            mod_revision: Some(0),
        };
        // Field 2 is 2, field 3 is "k", field 6 is 0.
        assert_eq!(compare.encode_to_vec(), [0x10, 2, 0x1a, 1, b'k', 0x30, 0]);
    }

    #[test]
    fn a_prefix_is_a_range() {
        assert_eq!(keys_under("/a/"), (b"/a/".to_vec(), b"/a0".to_vec()));
        assert_eq!(keys_under(""), (vec![0], vec![0]));
    }
}
