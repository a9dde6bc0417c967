//! What managed fields do, as tables.

mod apply;
mod formats;
mod updates;
mod walks;
