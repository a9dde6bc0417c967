//! Collects the descriptions of the API's types and fields (`descriptions.txt`) for the OpenAPI documents.
//!
//! They are the documentation comments of the crate `k8s-openapi`, which has them from the OpenAPI document of
//! Kubernetes. One line is one description: the definition, the field (empty for the definition itself) and the text,
//! separated by tabs, with `\n` for a new line.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// The module of `k8s-openapi` that the feature in the workspace's `Cargo.toml` selects.
const VERSION: &str = "v1_36";

/// The descriptions of `metrics.k8s.io`, in the same form: that API is metrics-server's, and not in `k8s-openapi`.
const METRICS: &str = include_str!("metrics.txt");

/// The descriptions of the types that `known` accepts by their short names, such as `apps.v1.DaemonSet`.
pub(super) fn collect(known: impl Fn(&str) -> bool) -> Result<String> {
    let mut lines = Vec::new();
    for source in sources()? {
        if let Some(source) = Definition::read(&source)
            && known(short_name(source.name))
        {
            lines.extend(source.descriptions());
        }
    }
    lines.extend(METRICS.split_inclusive('\n').map(str::to_owned));
    lines.sort();
    Ok(lines.concat())
}

/// The source files of `k8s-openapi`, each of which has at most one definition.
pub(super) fn sources() -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut directories = vec![k8s_openapi()?.join("src").join(VERSION)];
    while let Some(directory) = directories.pop() {
        let entries = fs::read_dir(&directory);
        for entry in entries.with_context(|| directory.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() {
                directories.push(path);
            } else {
                found.push(fs::read_to_string(&path)?);
            }
        }
    }
    Ok(found)
}

/// Adds the types of a version that `k8s-openapi` no longer has: their descriptions are those of `v1`, except those that
/// the facts have.
pub(super) fn with_old_versions(lines: &str, facts: &super::Facts) -> Result<String> {
    let mut all: Vec<String> = lines.lines().map(|line| format!("{line}\n")).collect();
    for (name, ty) in facts.iter().filter(|(name, _)| name.contains(OLD)) {
        let (old, new) = (format!("io.k8s.api.{name}"), name.replace(OLD, ".v1."));
        let own = |field: &str| {
            let mut fields = super::list(&ty["fields"]).into_iter().flatten();
            let field = fields.find(|fact| fact["name"] == field)?;
            field["description"].as_str()
        };
        for line in lines.lines() {
            let mut parts = line.splitn(3, '\t');
            let mut part = || parts.next().context("a line without a description");
            let (definition, field, text) = (part()?, part()?, part()?);
            if definition.strip_prefix("io.k8s.api.") == Some(&*new) {
                let text = own(field).unwrap_or(text);
                all.push(format!("{old}\t{field}\t{text}\n"));
            }
        }
    }
    all.sort();
    Ok(all.concat())
}

/// The version of types that are served for old clients.
const OLD: &str = ".v1beta1.";

/// The directory of the sources of `k8s-openapi`, wherever cargo keeps them.
fn k8s_openapi() -> Result<PathBuf> {
    let metadata = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--locked"])
        .output()
        .context("running cargo metadata")?;
    ensure!(
        metadata.status.success(),
        "cargo metadata: {}",
        String::from_utf8_lossy(&metadata.stderr)
    );
    let metadata: Value = serde_json::from_slice(&metadata.stdout)?;
    let packages = super::list(&metadata["packages"])?;
    let mut packages = packages.iter();
    let package = packages.find(|package| package["name"] == "k8s-openapi");
    let package = package.context("k8s-openapi is no dependency of the workspace")?;
    let manifest = Path::new(super::text(&package["manifest_path"])?);
    Ok(manifest.with_file_name(""))
}

/// `io.k8s.api.apps.v1.DaemonSet` as `fields.json` names it: `apps.v1.DaemonSet`.
pub(super) fn short_name(definition: &str) -> &str {
    const PREFIXES: [&str; 5] = [
        "io.k8s.api.",
        "io.k8s.apimachinery.pkg.apis.",
        "io.k8s.apimachinery.pkg.api.",
        "io.k8s.apimachinery.pkg.util.",
        "io.k8s.apimachinery.pkg.",
    ];
    let mut prefixes = PREFIXES.iter();
    let stripped = prefixes.find_map(|prefix| definition.strip_prefix(prefix));
    stripped.unwrap_or(definition)
}

/// A line without the backslashes that keep rustdoc from reading a link or a tag. Those before a backslash stay: a text
/// with `\\n` means a new line.
fn unescaped(line: &str) -> String {
    ["\\[", "\\]", "\\<", "\\>"]
        .iter()
        .fold(line.to_owned(), |line, escaped| {
            line.replace(escaped, &escaped[1..])
        })
}

/// What one file of `k8s-openapi` says of a definition and its fields.
struct Definition<'a> {
    name: &'a str,
    text: String,
    /// The texts of its fields, by their names in Rust.
    fields: BTreeMap<&'a str, String>,
    /// The names of its fields in JSON, by those in Rust.
    in_json: BTreeMap<&'a str, &'a str>,
}

impl<'a> Definition<'a> {
    /// `None` for a file without a definition.
    fn read(source: &'a str) -> Option<Self> {
        let mut lines = source.lines();
        let mut found = Self {
            name: lines
                .next()?
                .strip_prefix("// Generated from definition ")?,
            text: String::new(),
            fields: BTreeMap::new(),
            in_json: BTreeMap::new(),
        };
        let mut comment = Vec::new();
        for line in lines {
            if let Some(text) = line.trim_start().strip_prefix("///") {
                comment.push(unescaped(text.strip_prefix(' ').unwrap_or(text)));
            } else if !line.starts_with("#[") {
                found.take(line, &comment.join("\\n"));
                comment.clear();
            }
        }
        Some(found)
    }

    /// Takes one line of code and the comment above it.
    fn take(&mut self, line: &'a str, comment: &str) {
        if line.starts_with("pub struct ") || line.starts_with("pub enum ") {
            comment.clone_into(&mut self.text);
        } else if let Some(field) = line.strip_prefix("    pub ")
            && let Some((name, _)) = field.split_once(": ")
        {
            self.fields.insert(name, comment.to_owned());
        } else if let Some((json, rust)) = line.split_once(" => Field::Key_") {
            let json = json.trim().trim_matches('"');
            self.in_json.insert(rust.trim_end_matches(','), json);
        }
    }

    fn descriptions(&self) -> Vec<String> {
        let fields = self.fields.iter().map(|(rust, text)| {
            let json = self.in_json.get(rust).unwrap_or(rust);
            (*json, text)
        });
        std::iter::once(("", &self.text))
            .chain(fields)
            .filter(|(_, text)| !text.is_empty())
            .map(|(field, text)| format!("{}\t{field}\t{text}\n", self.name))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_version_has_the_descriptions_of_the_new_but_for_its_own() {
        let facts = serde_json::json!({"policy.v1beta1.Thing": {"fields": [
            {"name": "a"}, {"name": "b", "description": "Own."},
        ]}});
        let lines = "io.k8s.api.policy.v1.Thing\t\tA thing.\n\
                     io.k8s.api.policy.v1.Thing\ta\tA.\n\
                     io.k8s.api.policy.v1.Thing\tb\tB.\n";
        let all = with_old_versions(lines, facts.as_object().unwrap()).unwrap();
        let old = "io.k8s.api.policy.v1beta1.Thing";
        let added = format!("{old}\t\tA thing.\n{old}\ta\tA.\n{old}\tb\tOwn.\n");
        assert_eq!(all, format!("{lines}{added}"));
    }

    #[test]
    fn a_definition_is_read_with_its_fields_under_their_names_in_json() {
        let source = "\
// Generated from definition io.k8s.api.core.v1.Thing

/// A thing.
///
/// More of it.
#[derive(Clone)]
pub struct Thing {
    /// How often.
    pub how_often: Option<i32>,

    pub silent: bool,
}
                            \"howOften\" => Field::Key_how_often,
";
        let lines = Definition::read(source).unwrap().descriptions();
        let name = "io.k8s.api.core.v1.Thing";
        assert_eq!(
            lines,
            [
                format!("{name}\t\tA thing.\\n\\nMore of it.\n"),
                format!("{name}\thowOften\tHow often.\n")
            ]
        );
        assert_eq!(short_name(name), "core.v1.Thing");
    }
}
