//! Compares the imports of every module with the table of levels in `lib.rs`.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

/// The module that may refer upwards, as `lib.rs` says, and what it may name there.
const EXEMPT: (&str, &str) = ("registry", "admit");

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// The level of each module in the table, the lowest having the highest number.
fn levels(lib: &str) -> HashMap<String, usize> {
    let rows = lib
        .lines()
        .filter_map(|line| line.strip_prefix("//! | "))
        .skip(1);
    let mut levels = HashMap::new();
    for (level, row) in rows.enumerate() {
        let (_, modules) = row.trim_end_matches('|').rsplit_once('|').unwrap();
        for module in modules.split(',') {
            let module = module.trim().trim_matches('`').to_owned();
            let earlier = levels.insert(module.clone(), level);
            assert_eq!(earlier, None, "{module} stands twice in the table");
        }
    }
    levels
}

fn declared(lib: &str) -> BTreeSet<String> {
    let lines = lib.lines().filter_map(|line| {
        let line = line.strip_prefix("pub ").unwrap_or(line);
        let module = line.strip_prefix("mod ")?.strip_suffix(';')?;
        Some(module.to_owned())
    });
    let modules = lines.filter(|module| module != "layer_tests");
    modules.chain(["names".to_owned()]).collect()
}

/// The Rust files below a path that are not tests.
fn files(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            files(&entry.unwrap().path(), found);
        }
        return;
    }
    let name = path.file_name().unwrap().to_str().unwrap();
    let is_rust = path.extension().is_some_and(|extension| extension == "rs");
    if is_rust && !name.ends_with("tests.rs") {
        found.push(path.to_owned());
    }
}

/// The modules of this crate that a file names, outside of comments and its tests.
fn named(text: &str) -> BTreeSet<&str> {
    let end = text.find("#[cfg(test)]\nmod tests {");
    let code = text[..end.unwrap_or(text.len())]
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let uses = code.flat_map(|line| line.split("crate::").skip(1));
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    uses.map(|rest| rest.split(|c| !is_name(c)).next().unwrap())
        .collect()
}

#[test]
fn modules_import_from_their_own_level_and_from_those_below() {
    let lib = read(&source().join("lib.rs"));
    let levels = levels(&lib);
    let in_table: BTreeSet<String> = levels.keys().cloned().collect();
    assert_eq!(in_table, declared(&lib), "the table lists every module");
    let mut violations = Vec::new();
    for (module, level) in &levels {
        let mut paths = Vec::new();
        for path in [module.clone(), format!("{module}.rs")] {
            let path = source().join(path);
            if path.exists() {
                files(&path, &mut paths);
            }
        }
        for path in paths {
            let text = read(&path);
            for used in named(&text) {
                let below = levels.get(used).is_some_and(|used| used >= level);
                if !below && (module.as_str(), used) != EXEMPT {
                    violations.push(format!("{} uses crate::{used}", path.display()));
                }
            }
        }
    }
    assert_eq!(violations, [] as [String; 0]);
}
