//! What the page and the dashboard say to each other: JSON over same-origin `fetch` and server-sent events.
//!
//! | method and path | answer |
//! |---|---|
//! | `GET /api/session` | [`Session`] |
//! | `GET /api/overview` | events `overview` ([`Overview`]), `change` ([`OverviewChange`]), `status` ([`Connection`]) |
//! | `GET /api/daemonsets/NS/NAME/stream?group=LABEL` | events `picture` ([`Picture`]), `delta` ([`Delta`]), `rollout` ([`Rollout`]), `events` ([`Events`]), `status` ([`Connection`]) |
//! | `GET /api/daemonsets/NS/NAME/nodes/NODE/why` | [`Why`] |
//! | `GET /api/daemonsets/NS/NAME/nodes/NODE/logs?container=C&previous=1&tail=100&follow=1` | events `lines` ([`Lines`]), `end` ([`LogEnd`]) |
//! | `GET /api/daemonsets/NS/NAME/history` | `kennel-rollout-history/1`: what `kennel rollout history -o json` prints |
//! | `GET /api/daemonsets/NS/NAME/diff?from=HASH&to=HASH` | [`Diff`] |
//! | `GET /api/daemonsets/NS/NAME/rollout/preview?verb=VERB` | [`Preview`] |
//! | `POST /api/daemonsets/NS/NAME/rollout` with [`Act`] | [`Acted`] |
//! | `GET /api/nodes/NODE` | [`Node`] |
//!
//! Every failure is a [`Failure`] with an HTTP status of 400 or more. Times are RFC 3339; fields that are `null` or empty are
//! left out where the type says so. A stream sends at most ten messages of a kind a second. Names are as the API has them: they are
//! text, whatever they look like.
//!
//! **Streams.** After each connect, also the browser's own reconnect, a stream begins with everything (`overview`; `picture`,
//! `rollout`, `events`) and a `status`. A page that reads slowly gets one `change` or `delta` with everything since its last
//! one instead of a backlog. Whenever an `overview` or `picture` comes, it replaces all that the page has. A stream without
//! other messages sends `alive` (`{}`) every 15 seconds; a page that gets nothing for longer connects again. A stream ends without
//! notice when the dashboard stops, and `EventSource` connects again.

mod answers;
mod daemonset;
mod overview;

pub use answers::*;
pub use daemonset::*;
pub use overview::*;
