//! `check: prometheus EXPRESSION COMPARISON NUMBER`: an instant query that must yield exactly one number.

use std::time::Duration;

use kennel_client::fetch::{Post, Response};
use kennel_core::daemonset::event::{CheckAnswer, Identity};
use kennel_core::rollout::check::{self, Comparison};
use serde::Deserialize;
use serde_json::Value;

use super::one_line;
use super::{PrometheusUrl, quote};

/// An answer that is not one number.
#[derive(Debug, thiserror::Error)]
pub(super) enum QueryError {
    #[error("Prometheus answers with status {status}{}", quote(.said))]
    Status { status: u16, said: String },
    #[error("Prometheus cannot evaluate the expression: {0}")]
    Expression(String),
    #[error("the server is not a Prometheus: {0}")]
    Malformed(String),
    #[error("the answer of Prometheus is longer than one number can be")]
    TooLong,
    #[error("the expression yields nothing; append \"or vector(0)\" if that means 0")]
    Nothing,
    #[error("the expression yields {0} series and not one; aggregate them, as with sum(…)")]
    Many(usize),
    #[error("the expression yields a {0} and not a number")]
    Kind(String),
    #[error("the expression yields NaN, as a division of 0 by 0 does")]
    NotANumber,
}

/// The expression with the names of this rollout. Names of objects and hashes have no character that a string in a query
/// would have to escape.
pub(super) fn fill_in(expression: &str, daemon_set: &Identity, revision: &str) -> String {
    let values = [
        ("daemonset", &*daemon_set.name),
        ("namespace", &*daemon_set.namespace),
        ("revision", revision),
    ];
    check::fill_in(expression, &values)
}

pub(super) fn request(server: &PrometheusUrl, query: &str, timeout: Duration) -> Post {
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.append_pair("query", query);
    form.append_pair("timeout", &format!("{}ms", timeout.as_millis()));
    Post {
        url: server.query(),
        content_type: "application/x-www-form-urlencoded",
        body: form.finish(),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    status: String,
    #[serde(default)]
    data: Data,
    #[serde(default)]
    error: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Data {
    result_type: String,
    result: Value,
}

/// A time, and a number as text.
type Sample = (f64, String);

#[derive(Deserialize)]
struct Series {
    value: Sample,
}

pub(super) fn read(response: &Response) -> Result<f64, QueryError> {
    if response.is_cut {
        return Err(QueryError::TooLong);
    }
    let answer: Result<Answer, _> = serde_json::from_slice(&response.body);
    let answer = match (response.status, answer) {
        (200, Ok(answer)) => answer,
        (_, Ok(answer)) if !answer.error.is_empty() => {
            return Err(QueryError::Expression(one_line(answer.error.as_bytes())));
        }
        (200, Err(error)) => return Err(QueryError::Malformed(error.to_string())),
        (status, _) => {
            let said = one_line(&response.body);
            return Err(QueryError::Status { status, said });
        }
    };
    if answer.status != "success" {
        return Err(QueryError::Expression(one_line(answer.error.as_bytes())));
    }
    let malformed = |error: serde_json::Error| QueryError::Malformed(error.to_string());
    let Data {
        result_type,
        result,
    } = answer.data;
    let (_, text) = match result_type.as_str() {
        "scalar" => serde_json::from_value::<Sample>(result).map_err(malformed)?,
        "vector" => {
            let series: Vec<Series> = serde_json::from_value(result).map_err(malformed)?;
            let count = series.len();
            let mut series = series.into_iter();
            match (series.next(), count) {
                (Some(one), 1) => one.value,
                (None, _) => return Err(QueryError::Nothing),
                (Some(_), _) => return Err(QueryError::Many(count)),
            }
        }
        other => return Err(QueryError::Kind(one_line(other.as_bytes()))),
    };
    let number: f64 = text
        .parse()
        .map_err(|_| QueryError::Malformed(format!("{text:?} is not a number")))?;
    if number.is_nan() {
        return Err(QueryError::NotANumber);
    }
    Ok(number)
}

pub(super) fn compare(query: &str, value: f64, comparison: Comparison, number: f64) -> CheckAnswer {
    if comparison.holds(value, number) {
        return CheckAnswer::Passed;
    }
    let symbol = comparison.symbol();
    let query = one_line(query.as_bytes());
    CheckAnswer::Failed(format!("{query} is {value}, and not {symbol} {number}"))
}
