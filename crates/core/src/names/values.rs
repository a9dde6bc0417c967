//! Validation of variables, keys, ports, percentages and headers.

use super::{
    SUBDOMAIN_LENGTH_MAX, form_error, length_error, lower_or_digit, mistakes, range_error,
};

const PORT_NAME_LENGTH_MAX: usize = 15;

/// The name of an environment variable.
pub fn env_var_name(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.is_empty() {
        wrong.push("environment variable name must be non-empty".to_owned());
    }
    if !text
        .bytes()
        .all(|b| (b' '..=b'~').contains(&b) && b != b'=')
    {
        wrong.push(
            "a valid environment variable name must consist only of printable ASCII characters \
             other than '='"
                .to_owned(),
        );
    }
    wrong
}

/// A C identifier.
pub fn c_identifier(text: &str) -> Vec<String> {
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let starts_well = text.bytes().next().is_some_and(|b| !b.is_ascii_digit());
    if starts_well && text.bytes().all(word) {
        return Vec::new();
    }
    vec![form_error(
        "a valid C identifier must start with alphabetic character or '_', followed by a string \
         of alphanumeric characters or '_'",
        "[A-Za-z_][A-Za-z0-9_]*",
        &["my_name", "MY_NAME", "MyName"],
    )]
}

/// A key of a ConfigMap or Secret, which must also be a safe file name.
pub fn config_map_key(text: &str) -> Vec<String> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
    let is_well_formed = !text.is_empty() && text.bytes().all(allowed);
    let mut wrong = mistakes(text, SUBDOMAIN_LENGTH_MAX, is_well_formed, || {
        form_error(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
            "[-._a-zA-Z0-9]+",
            &["key.name", "KEY_NAME", "key-name"],
        )
    });
    match text {
        "." => wrong.push("must not be '.'".to_owned()),
        ".." => wrong.push("must not be '..'".to_owned()),
        _ if text.starts_with("..") => wrong.push("must not start with '..'".to_owned()),
        _ => {}
    }
    wrong
}

/// The name of a port: an IANA service name in lower case.
pub fn port_name(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > PORT_NAME_LENGTH_MAX {
        wrong.push(length_error(PORT_NAME_LENGTH_MAX));
    }
    let mut refuse = |broken: bool, words: &str| {
        if broken {
            wrong.push(words.to_owned());
        }
    };
    refuse(
        text.is_empty() || !text.bytes().all(|b| lower_or_digit(b) || b == b'-'),
        "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
    );
    refuse(
        !text.bytes().any(|b| b.is_ascii_lowercase()),
        "must contain at least one letter (a-z)",
    );
    refuse(text.contains("--"), "must not contain consecutive hyphens");
    refuse(
        text.starts_with('-') || text.ends_with('-'),
        "must not begin or end with a hyphen",
    );
    wrong
}

/// The number of a port that can be listened on.
pub fn is_valid_port_num(port: i64) -> Vec<String> {
    in_range(port, 1, 65535)
}

/// A number in `low..=high`.
pub fn in_range(value: i64, low: i64, high: i64) -> Vec<String> {
    if (low..=high).contains(&value) {
        return Vec::new();
    }
    vec![range_error(low, high)]
}

/// A percentage such as `93%`.
pub fn percent(text: &str) -> Vec<String> {
    let digits = text.strip_suffix('%').unwrap_or_default();
    if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
        return Vec::new();
    }
    vec![form_error(
        "a valid percent string must be a numeric string followed by an ending '%'",
        "[0-9]+%",
        &["1%", "93%"],
    )]
}

/// The name of an HTTP header.
pub fn http_header_name(text: &str) -> Vec<String> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
    if !text.is_empty() && text.bytes().all(allowed) {
        return Vec::new();
    }
    vec![form_error(
        "a valid HTTP header must consist of alphanumeric characters or '-'",
        "[-A-Za-z0-9]+",
        &["X-Header-Name"],
    )]
}
