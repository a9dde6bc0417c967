//! Container logs: files in the CRI log format, one per run of a container.
//!
//! ```text
//!   <logs>/pods/<namespace>_<name>_<uid>/<container>/0.log                   the current file
//!   <logs>/pods/<namespace>_<name>_<uid>/<container>/0.log.20260102-030405   a rotated file
//!   <logs>/containers/<pod>_<namespace>_<container>-<id>.log ─▶ the first of these
//! ```
//!
//! Runtimes write them, pod workers remove them with their pods; this module reads and rotates them. The symbolic
//! links are made in `crate::pods`.

mod files;
mod follow;
mod line;
mod options;
mod printer;
mod rotate;
mod select;
mod tail;

pub use self::rotate::rotate;

pub(super) use self::files::log_path;
pub(super) use self::follow::Log;
pub(super) use self::options::Options;
pub(super) use self::rotate::{FILES_MAX, LOG_BYTES_MAX};
pub(super) use self::select::select_run;
