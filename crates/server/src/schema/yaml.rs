//! Decodes YAML to a JSON tree. JSON is YAML: it is tried first, since it is what clients mostly send.

use serde_json::Value;
use serde_saphyr::Error;
use serde_saphyr::options::DuplicateKeyPolicy;
use thiserror::Error;

use super::decode;
use super::go;

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

/// Why a body is no YAML, in upstream's words as far as the parser allows.
#[derive(Debug, Error)]
pub enum YamlError {
    #[error("error converting YAML to JSON: yaml: invalid leading UTF-8 octet")]
    Utf8,
    #[error("error converting YAML to JSON: yaml: document contains excessive aliasing")]
    Aliases,
    #[error("error converting YAML to JSON: yaml: line {line}: {message}")]
    Syntax { line: u64, message: String },
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
                let value = read(text, DuplicateKeyPolicy::LastWins).map_err(|e| explain(&e))?;
                Ok(Yaml {
                    value,
                    duplicate: Some(duplicate),
                })
            }
            other => Err(explain(other)),
        },
    }
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

fn explain(error: &Error) -> YamlError {
    let mut error = error.without_snippet();
    while let Error::AliasError { error: cause, .. } = error {
        error = cause;
    }
    match error {
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => YamlError::Aliases,
        other => {
            let message = other.to_string();
            let message = message.lines().next().unwrap_or_default();
            YamlError::Syntax {
                line: other.location().map_or(1, |location| location.line()),
                message: message.to_owned(),
            }
        }
    }
}
