//! Tasks of the repository, run as `cargo xtask <task>`.
//!
//! Nothing here is shipped; a task reads and writes files of this repository and nothing else.

mod codegen;

use std::env;

use anyhow::{Result, bail};

fn main() -> Result<()> {
    let task = env::args().nth(1).unwrap_or_default();
    match task.as_str() {
        "codegen" => codegen::run(),
        _ => bail!("usage: cargo xtask codegen    write the schema table from its facts"),
    }
}
