//! Compresses the files of the page and writes the table of them that `src/page.rs` includes.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::{env, fs, io};

use flate2::{Compression, GzBuilder};

/// Extensions of files that are served; others below `page` are not part of it.
const SERVED: [&str; 5] = ["html", "js", "css", "svg", "json"];

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=page");
    let out = env::var("OUT_DIR").map_err(io::Error::other)?;
    let out = Path::new(&out);
    let mut files: Vec<_> = fs::read_dir("page")?.collect::<io::Result<_>>()?;
    files.sort_by_key(fs::DirEntry::file_name);
    let mut table = String::from("&[\n");
    for file in files {
        let name = file.file_name();
        let Some((_, extension)) = name.to_str().and_then(|name| name.rsplit_once('.')) else {
            continue;
        };
        if !SERVED.contains(&extension) {
            continue;
        }
        let name = name.to_string_lossy();
        let packed = out.join(format!("{name}.gz"));
        let path = packed.to_string_lossy();
        fs::write(&packed, compressed(&fs::read(file.path())?)?)?;
        writeln!(
            table,
            "File {{ name: {name:?}, packed: include_bytes!({path:?}) }},"
        )
        .map_err(io::Error::other)?;
    }
    table.push(']');
    fs::write(out.join("page_table.rs"), table)
}

/// The same input gives the same bytes: without a time and a name.
fn compressed(content: &[u8]) -> io::Result<Vec<u8>> {
    let mut writer = GzBuilder::new().write(Vec::new(), Compression::best());
    writer.write_all(content)?;
    writer.finish()
}
