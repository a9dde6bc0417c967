//! Decodes YAML to a JSON tree. JSON is YAML: it is tried first, since it is what clients mostly send.

use serde_json::Value;
use serde_saphyr::Error;
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::options::DuplicateKeyPolicy;
use thiserror::Error;

use super::decode;
use super::go;
use super::yaml_problem;
use super::yaml_tree::{self, Duplicate, KeyError, Tree};

/// The most nodes that aliases may expand to: a small body must not become a large tree.
const ALIAS_NODES_MAX: usize = 50_000;

/// A decoded body.
#[derive(Clone, Debug)]
pub struct Yaml {
    /// The last value wins for duplicate keys.
    pub value: Value,
    /// The duplicate keys: `line 3: key "x" already set in map`.
    pub duplicates: Vec<String>,
}

/// Why a body is no YAML, in upstream's words.
#[derive(Debug, Error)]
pub enum YamlError {
    #[error("error converting YAML to JSON: yaml: invalid leading UTF-8 octet")]
    Utf8,
    #[error("error converting YAML to JSON: yaml: document contains excessive aliasing")]
    Aliases,
    #[error("error converting YAML to JSON: yaml: {0}")]
    Syntax(String),
    #[error("error converting YAML to JSON: {0}")]
    Key(#[from] KeyError),
    /// A number that JSON does not have, as Go shows it.
    #[error("error converting YAML to JSON: json: unsupported value: {0}")]
    Number(&'static str),
}

/// Decodes a body. An empty one is null.
pub fn parse_yaml(bytes: &[u8]) -> Result<Yaml, YamlError> {
    if let Ok(mut parsed) = decode::parse(bytes)
        && parsed.duplicates.is_empty()
    {
        write_integers(&mut parsed.value);
        return Ok(Yaml {
            value: parsed.value,
            duplicates: Vec::new(),
        });
    }
    let text = std::str::from_utf8(bytes).map_err(|_| YamlError::Utf8)?;
    if text.trim().is_empty() {
        return Ok(Yaml {
            value: Value::Null,
            duplicates: Vec::new(),
        });
    }
    let text = first_document(text);
    let tree = read_document(text)?;
    if let Some(bad_key) = tree.bad_key {
        return Err(bad_key.into());
    }
    let duplicates = tree.duplicates.iter();
    let duplicates = duplicates.map(|duplicate| yaml_problem::duplicate_key(text, duplicate));
    Ok(Yaml {
        value: tree.value,
        duplicates: duplicates.collect(),
    })
}

/// As YAML, JSON has no numbers with a fraction of zero: upstream reads it as YAML.
fn write_integers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(float) = number.as_f64().filter(|_| number.is_f64()) {
                *value = yaml_tree::number(float);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(write_integers),
        Value::Object(members) => members.values_mut().for_each(write_integers),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// Reads the only document of a text, with its duplicate keys.
fn read_document(text: &str) -> Result<Tree, YamlError> {
    let error = match read(text, DuplicateKeyPolicy::Error) {
        Ok(tree) => return Ok(tree),
        Err(error) => error,
    };
    let Error::DuplicateMappingKey { key, location } = error.without_snippet() else {
        return Err(explain(text, &error));
    };
    let mut tree = read(text, DuplicateKeyPolicy::LastWins).map_err(|e| explain(text, &e))?;
    // Of a map with integers as keys the reader shows the last values alone.
    if tree.duplicates.is_empty() {
        let key = key.as_deref().unwrap_or_default();
        let is_integer = key.parse::<i64>().is_ok();
        let key = if is_integer {
            key.to_owned()
        } else {
            go::quote(key)
        };
        tree.duplicates.push(Duplicate {
            key,
            line: location.line(),
            is_null: false,
        });
    }
    Ok(tree)
}

/// The text up to the line that begins a second document, which upstream does not read.
fn first_document(text: &str) -> &str {
    let mut has_content = false;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let bare = line.trim_end();
        let is_marker = ["---", "..."].iter().any(|marker| {
            let rest = line.strip_prefix(marker);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
        });
        if is_marker && has_content {
            return &text[..at];
        }
        let is_blank = bare.is_empty() || bare.starts_with(['#', '%']);
        has_content |= is_marker || !is_blank;
        at += line.len();
    }
    text
}

fn read(text: &str, duplicate_keys: DuplicateKeyPolicy) -> Result<Tree, Error> {
    let options = serde_saphyr::options! {
        duplicate_keys: duplicate_keys,
        legacy_octal_numbers: true,
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: ALIAS_NODES_MAX,
        },
        emit_comments: false,
    };
    serde_saphyr::from_str_with_options(text, options)
}

fn explain(text: &str, error: &Error) -> YamlError {
    let mut error = error.without_snippet();
    while let Error::AliasError { error: cause, .. } = error {
        error = cause;
    }
    match error {
        Error::Budget {
            breach: BudgetBreach::Depth { .. },
            ..
        } => YamlError::Syntax(yaml_problem::too_deep()),
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => YamlError::Aliases,
        Error::UnknownAnchor { location } => {
            let name = yaml_problem::alias(text, location.line(), location.column());
            YamlError::Syntax(format!("unknown anchor '{name}' referenced"))
        }
        Error::RecursiveReferencesRequireWeakTypes { location } => {
            let name = yaml_problem::alias(text, location.line(), location.column());
            YamlError::Syntax(format!("anchor '{name}' value contains itself"))
        }
        Error::MergeValueNotMapOrSeqOfMaps { .. } => {
            let words = "map merge requires map or sequence of maps as the value";
            YamlError::Syntax(words.to_owned())
        }
        Error::InvalidBinaryBase64 { .. } => {
            let words = "!!binary value contains invalid base64 data";
            YamlError::Syntax(words.to_owned())
        }
        Error::NonFiniteFloat { value, .. } => YamlError::Number(yaml_problem::not_finite(value)),
        Error::ExternalMessage { msg, location, .. } => {
            YamlError::Syntax(yaml_problem::describe(text, msg, location.line()))
        }
        other => {
            let message = other.to_string();
            let message = message.lines().next().unwrap_or_default();
            let message = message.split(" at line ").next().unwrap_or_default();
            let line = other.location().map_or(1, |location| location.line());
            YamlError::Syntax(format!("line {line}: {message}"))
        }
    }
}
