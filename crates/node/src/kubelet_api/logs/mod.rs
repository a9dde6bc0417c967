//! Logs of containers: files in the format that container runtimes share (CRI), one per run.
//!
//! ```text
//!   <logs>/pods/<namespace>_<name>_<uid>/<container>/0.log                   the run that goes on
//!   <logs>/pods/<namespace>_<name>_<uid>/<container>/0.log.20260102-030405   what it wrote before
//!   <logs>/containers/<pod>_<namespace>_<container>-<id>.log ─▶ the first of these
//! ```
//!
//! Runtimes write them, and workers take them away with their pods; here they are read and cut.

mod files;
mod follow;
mod line;
mod options;
mod printer;
mod rotate;
mod tail;
mod which;

pub use self::rotate::rotate;

pub(super) use self::files::log as path;
pub(super) use self::follow::Log;
pub(super) use self::options::Options;
pub(super) use self::which::which;
