//! Validation of names and other strings, with upstream's messages.
//!
//! Each function returns one message per mistake, without path and value, which the caller adds.

mod address;
mod values;

pub use address::{cidr, ip, ip_address, ipv4, ipv6, parse_cidr, special_ip};
pub use values::{
    c_identifier, config_map_key, env_var_name, http_header_name, in_range, is_valid_port_num,
    percent, port_name,
};

/// The longest DNS-1123 subdomain.
pub const SUBDOMAIN_LENGTH_MAX: usize = 253;
/// The longest DNS label, and the longest label value.
pub const LABEL_LENGTH_MAX: usize = 63;
/// The alphabet of generated names: no vowels, so that they form no words, and no look-alikes.
pub const GENERATED_ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// How many characters are appended to `generateName`.
pub const GENERATED_LENGTH: usize = 5;

/// A generated name is at most a label long, so this much of the prefix is kept.
const GENERATED_PREFIX_MAX: usize = LABEL_LENGTH_MAX - GENERATED_LENGTH;

const LABEL_FORM: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN_FORM: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const LABEL_KEY_FORM: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL_KEY_WORDS: &str = "must consist of alphanumeric characters, '-', '_' or '.', \
     and must start and end with an alphanumeric character";

/// The message for a string that does not match the regular expression `form`.
pub fn form_error(words: &str, form: &str, examples: &[&str]) -> String {
    use std::fmt::Write as _;
    let mut text = words.to_owned();
    if examples.is_empty() {
        let _infallible = write!(text, " (regex used for validation is '{form}')");
        return text;
    }
    text.push_str(" (e.g. ");
    for (i, example) in examples.iter().enumerate() {
        // Upstream's separator has two spaces.
        let or = if i > 0 { " or " } else { "" };
        let _infallible = write!(text, "{or}'{example}', ");
    }
    let _infallible = write!(text, "regex used for validation is '{form}')");
    text
}

/// The message for a number outside `low..=high`.
pub fn range_error(low: i64, high: i64) -> String {
    format!("must be between {low} and {high}, inclusive")
}

/// The message for a DNS name or key longer than `max`.
pub fn length_error(max: usize) -> String {
    format!("must be no more than {max} characters")
}

fn lower_or_digit(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

/// Whether `text` starts and ends with `edge` and has only `inner` between.
fn framed(text: &str, edge: fn(u8) -> bool, inner: fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    match (bytes.first(), bytes.last()) {
        (Some(first), Some(last)) => edge(*first) && edge(*last) && bytes.iter().all(|b| inner(*b)),
        _ => false,
    }
}

fn is_label(text: &str) -> bool {
    framed(text, lower_or_digit, |b| lower_or_digit(b) || b == b'-')
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

fn is_label_key_name(text: &str) -> bool {
    framed(
        text,
        |b| b.is_ascii_alphanumeric(),
        |b| b.is_ascii_alphanumeric() || b"-_.".contains(&b),
    )
}

/// The messages for a text that is longer than `max` or not well formed.
fn mistakes(
    text: &str,
    max: usize,
    is_well_formed: bool,
    form_error: impl FnOnce() -> String,
) -> Vec<String> {
    let too_long = (text.len() > max).then(|| length_error(max));
    let malformed = (!is_well_formed).then(form_error);
    too_long.into_iter().chain(malformed).collect()
}

/// A DNS-1123 subdomain, such as `example.com`: the form of most object names.
pub fn dns1123_subdomain(text: &str) -> Vec<String> {
    mistakes(text, SUBDOMAIN_LENGTH_MAX, is_subdomain(text), || {
        form_error(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
             '-' or '.', and must start and end with an alphanumeric character",
            SUBDOMAIN_FORM,
            &["example.com"],
        )
    })
}

/// A DNS-1123 label, such as `my-name` or `123-abc`.
pub fn dns1123_label(text: &str) -> Vec<String> {
    mistakes(text, LABEL_LENGTH_MAX, is_label(text), || {
        if is_subdomain(text) {
            return "must not contain dots".to_owned();
        }
        form_error(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters \
             or '-', and must start and end with an alphanumeric character",
            LABEL_FORM,
            &["my-name", "123-abc"],
        )
    })
}

/// A label key, also called qualified name: `name` or `example.com/name`.
pub fn qualified_name(text: &str) -> Vec<String> {
    let form = || {
        form_error(
            LABEL_KEY_WORDS,
            LABEL_KEY_FORM,
            &["MyName", "my.name", "123-abc"],
        )
    };
    let mut wrong = Vec::new();
    let mut parts = text.split('/');
    let name = match (parts.next(), parts.next(), parts.next()) {
        (Some(name), None, _) => name,
        (Some(prefix), Some(name), None) => {
            wrong.extend(prefix_errors(prefix));
            name
        }
        _ => {
            return vec![format!(
                "a valid label key {} with an optional DNS subdomain prefix and '/' \
                 (e.g. 'example.com/MyName')",
                form()
            )];
        }
    };
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_LENGTH_MAX {
        wrong.push(format!(
            "name part must be no more than {LABEL_LENGTH_MAX} bytes"
        ));
    }
    if !is_label_key_name(name) {
        wrong.push(format!("name part {}", form()));
    }
    wrong
}

fn prefix_errors(prefix: &str) -> Vec<String> {
    if prefix.is_empty() {
        return vec!["prefix part must be non-empty".to_owned()];
    }
    let wrong = dns1123_subdomain(prefix);
    if wrong.is_empty() {
        return wrong;
    }
    // Upstream says "bytes" for label keys and "characters" for names.
    let too_long = length_error(SUBDOMAIN_LENGTH_MAX);
    wrong
        .into_iter()
        .map(|text| {
            if text == too_long {
                format!("prefix part must be no more than {SUBDOMAIN_LENGTH_MAX} bytes")
            } else {
                format!("prefix part {text}")
            }
        })
        .collect()
}

/// A label value: empty, or up to 63 characters that begin and end alphanumerically.
pub fn label_value(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > LABEL_LENGTH_MAX {
        wrong.push(format!("must be no more than {LABEL_LENGTH_MAX} bytes"));
    }
    if !text.is_empty() && !is_label_key_name(text) {
        wrong.push(form_error(
            &format!(
                "a valid label must be an empty string or {}",
                LABEL_KEY_WORDS.trim_start_matches("must ")
            ),
            &format!("({LABEL_KEY_FORM})?"),
            &["MyValue", "my_value", "12345"],
        ));
    }
    wrong
}

/// Anything that can be one segment of a URL path.
pub fn path_segment_name(text: &str) -> Vec<String> {
    if matches!(text, "." | "..") {
        return vec![format!("may not be '{text}'")];
    }
    path_segment_prefix(text)
}

/// The beginning of something that can be one segment of a URL path.
pub fn path_segment_prefix(text: &str) -> Vec<String> {
    ["/", "%"]
        .iter()
        .filter(|part| text.contains(**part))
        .map(|part| format!("may not contain '{part}'"))
        .collect()
}

/// A domain name of at least two labels, with or without the final dot.
pub fn fully_qualified_domain_name(text: &str) -> Vec<String> {
    let name = text.strip_suffix('.').unwrap_or(text);
    let wrong = dns1123_subdomain(name);
    if !wrong.is_empty() {
        return vec![wrong.join(",")];
    }
    if !name.contains('.') {
        return vec!["should be a domain with at least two segments separated by dots".to_owned()];
    }
    name.split('.')
        .map(dns1123_label)
        .find(|wrong| !wrong.is_empty())
        .map(|wrong| vec![wrong.join(",")])
        .unwrap_or_default()
}

/// Replaces a trailing dash of a `generateName` prefix, which is valid since a suffix follows.
pub fn mask_trailing_dash(prefix: &str) -> String {
    match prefix.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => {
            let mut masked = rest.to_owned();
            masked.pop();
            masked.push('a');
            masked
        }
        _ => prefix.to_owned(),
    }
}

/// Completes a `generateName` prefix. `random` picks a number below the one it is given.
pub fn generate_name(prefix: &str, mut random: impl FnMut(usize) -> usize) -> String {
    let mut end = prefix.len().min(GENERATED_PREFIX_MAX);
    while !prefix.is_char_boundary(end) {
        end -= 1;
    }
    let mut name = prefix[..end].to_owned();
    for _ in 0..GENERATED_LENGTH {
        let pick = random(GENERATED_ALPHABET.len()) % GENERATED_ALPHABET.len();
        name.push(char::from(GENERATED_ALPHABET[pick]));
    }
    name
}

#[cfg(test)]
mod tests;
