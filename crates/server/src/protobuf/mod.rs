//! Decodes protobuf bodies, as Go clients send them, to the trees that JSON bodies decode to.
//!
//! A body is an [`Envelope`] around one message; [`transcode`] reads the message by the schema table
//! that also checks JSON. The tree is what Go would write as JSON; members sent as zero are in it,
//! and `schema::conform` removes them as it does for a JSON body. Nothing is encoded here.

mod envelope;
mod error;
mod message;
mod value;
mod wire;

pub use envelope::{Envelope, PREFIX};
pub use error::ProtobufError;
pub use message::{raw_member, transcode, transcode_noting};

pub const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";
