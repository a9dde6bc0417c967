//! What people install: a Debian package, and an OCI image, of a `kennel` that is built already.
//!
//! ```text
//!   deb     units, scripts, pages, control ─▶ dpkg-deb ─▶ kennel_0.1.0-1_amd64.deb
//!   image   the program, its loader and libraries ─┐
//!                                  tests' images ──┴▶ oci (config, manifest, index) over tar ─▶ kennel.tar
//!   elf     what a program needs of the machine it runs on
//! ```
//!
//! The same input gives the same bytes: times come from `SOURCE_DATE_EPOCH`, or from the last commit. Nothing is
//! built here, nothing fetched, and nothing installed. Used by `xtask package`, and by tests.

pub mod deb;
mod elf;
pub mod image;
pub mod oci;
mod run;
pub mod tar;

pub use elf::libraries;

/// The version of all of it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
