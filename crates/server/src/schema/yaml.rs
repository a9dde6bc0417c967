//! Decodes YAML to a JSON tree. JSON is YAML: it is tried first, since it is what clients mostly send.

use serde_json::Value;
use serde_saphyr::Error;
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::options::DuplicateKeyPolicy;
use thiserror::Error;

use super::decode;
use super::go;
use super::yaml_problem;

/// The most nodes that aliases may expand to: a small body must not become a large tree.
const ALIAS_NODES_MAX: usize = 50_000;

/// A decoded body.
#[derive(Clone, Debug)]
pub struct Yaml {
    /// The last value wins for duplicate keys.
    pub value: Value,
    /// The first duplicate key: `line 3: key "x" already set in map`.
    pub duplicate: Option<String>,
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
}

/// Decodes a body. An empty one is null.
pub fn parse_yaml(bytes: &[u8]) -> Result<Yaml, YamlError> {
    if let Ok(parsed) = decode::parse(bytes)
        && parsed.duplicates.is_empty()
    {
        return Ok(Yaml {
            value: parsed.value,
            duplicate: None,
        });
    }
    let text = std::str::from_utf8(bytes).map_err(|_| YamlError::Utf8)?;
    if text.trim().is_empty() {
        return Ok(Yaml {
            value: Value::Null,
            duplicate: None,
        });
    }
    let text = first_document(text);
    match read(text, DuplicateKeyPolicy::Error) {
        Ok(value) => Ok(Yaml {
            value,
            duplicate: None,
        }),
        Err(error) => match error.without_snippet() {
            Error::DuplicateMappingKey { key, location } => {
                let key = key.clone().unwrap_or_default();
                let line = location.line();
                let duplicate = format!("line {line}: key {} already set in map", go::quote(&key));
                let value =
                    read(text, DuplicateKeyPolicy::LastWins).map_err(|e| explain(text, &e))?;
                Ok(Yaml {
                    value,
                    duplicate: Some(duplicate),
                })
            }
            other => Err(explain(text, other)),
        },
    }
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

fn read(text: &str, duplicate_keys: DuplicateKeyPolicy) -> Result<Value, Error> {
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
            let (line, column) = (location.line(), location.column());
            YamlError::Syntax(yaml_problem::unknown_anchor(text, line, column))
        }
        Error::ExternalMessage { msg, location, .. } => {
            YamlError::Syntax(yaml_problem::describe(text, msg, location.line()))
        }
        other => {
            let message = other.to_string();
            let message = message.lines().next().unwrap_or_default();
            let line = other.location().map_or(1, |location| location.line());
            YamlError::Syntax(format!("line {line}: {message}"))
        }
    }
}
