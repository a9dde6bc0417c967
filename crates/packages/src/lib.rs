//! Builds the Debian package and the OCI image of a `kennel` binary.
//!
//! ```text
//!   deb     units, scripts, pages, control ─▶ dpkg-deb ─▶ kennel_0.2.0-1_amd64.deb
//!   image   binary, loader, shared libraries ─┐
//!                             test images ────┴▶ oci (config, manifest, index) over file_tree ─▶ kennel.tar
//! ```
//!
//! Builds are reproducible: the same input gives the same bytes, and time stamps come from `SOURCE_DATE_EPOCH` or the
//! last commit. Nothing is compiled, downloaded or installed. Used by `xtask package` and by tests.

mod command;
pub mod deb;
pub mod file_tree;
pub mod image;
pub mod oci;
mod shared_libraries;

pub use shared_libraries::libraries;

/// The version of the workspace.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
