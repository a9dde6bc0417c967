//! Bodies in protobuf, as Go's clients write them, turned into the trees that JSON gives.
//!
//! A body is an [`Envelope`] around one message; [`transcode`] reads the message by the same table
//! that JSON is checked with. What comes out is what Go would write as JSON: members that were sent
//! as zero still stand there, and `schema::conform` takes them out again like those of a JSON body.
//! Nothing is written in protobuf here, and nothing is decided about the objects.

mod envelope;
mod message;
mod value;
mod wire;

pub use envelope::Envelope;
pub use message::{raw_member, transcode};

/// The media type of such bodies.
pub const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";
