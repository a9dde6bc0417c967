//! What somebody gets who has no business here: over real sockets, against the real binary. Every
//! attempt is refused with the right code, and no refusal tells more than another.

mod certificates;
mod credentials;
mod fixture;
mod http;
