//! The strategy of `CertificateSigningRequest`.
//!
//! Approvers write the `approval` subresource, signers write `status` and add the certificate. Authorisation
//! decides who may approve for which signer. The caller passes the requester and the time.

mod conditions;

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use x509_parser::prelude::{FromDer as _, X509CertificationRequest, X509Name};

use self::conditions::{check_conditions, check_decisions, check_removals, keep_conditions};
use super::Strategy;
use super::check::one_of;
use crate::field::{ErrorList as _, Errors, Path};
use crate::names;
use crate::registry::Part;
use crate::request::User;
use crate::tree::{at, copy_from_old, int, list, remove, set, text, texts};

pub use self::conditions::stamp_conditions;

const REQUEST_BLOCK: &str = "CERTIFICATE REQUEST";
const CERTIFICATE_BLOCK: &str = "CERTIFICATE";
const EXPIRATION_SECONDS_MIN: i64 = 600;
const SIGNER_PATH_LENGTH_MAX: usize = 571;
/// All usages, in the order upstream lists them.
const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

#[derive(Debug)]
pub struct CertificateSigningRequest;

impl Strategy for CertificateSigningRequest {
    fn reset_fields(&self, part: Part) -> &'static [&'static [&'static str]] {
        match part {
            Part::Status => &[&["spec"], &["status", "conditions"]],
            Part::Approval => &[&["spec"], &["status", "certificate"]],
            _ => &[&["spec"], &["status"]],
        }
    }

    fn prepare_subresource_update(&self, new: &mut Value, old: &Value, now: &str) {
        prepare_approval_update(new, old);
        stamp_conditions(new, old, now);
    }

    fn validate_subresource_update(&self, new: &Value, old: &Value) -> Errors {
        validate_approval_update(new, old)
    }

    fn prepare_create(&self, object: &mut Value) {
        // The server sets the requester; see `stamp_requester`.
        for field in ["username", "uid", "groups", "extra"] {
            remove(object, &format!("spec.{field}"));
        }
        set(object, "status", json!({}));
    }

    fn prepare_update(&self, new: &mut Value, old: &Value) {
        copy_from_old(new, old, "spec");
        copy_from_old(new, old, "status");
    }

    fn prepare_status_update(&self, new: &mut Value, old: &Value) {
        copy_from_old(new, old, "spec");
        keep_conditions(new, old, "Approved");
        keep_conditions(new, old, "Denied");
    }

    fn adds_to_status(&self, new: &Value, old: &Value) -> bool {
        ["Approved", "Denied"].into_iter().any(|kind| {
            let has = |object| {
                list(object, "status.conditions")
                    .iter()
                    .any(|one| text(one, "type") == kind)
            };
            has(old) && !has(new)
        })
    }

    fn validate_create(&self, object: &Value) -> Errors {
        let mut errors = Errors::new();
        check_spec(&mut errors, object);
        check_conditions(&mut errors, object);
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Errors {
        update_errors(new, old, Allowed::Nothing)
    }

    fn validate_status_update(&self, new: &Value, old: &Value) -> Errors {
        update_errors(new, old, Allowed::Certificate)
    }
}

/// What a write to a subresource may add.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Allowed {
    Nothing,
    Decision,
    Certificate,
}

/// Records the requester, with all that the server knows about it, for approvers.
pub fn stamp_requester(object: &mut Value, user: &User) {
    set(object, "spec.username", json!(user.name));
    if !user.uid.is_empty() {
        set(object, "spec.uid", json!(user.uid));
    }
    if !user.groups.is_empty() {
        set(object, "spec.groups", json!(user.groups));
    }
    if !user.extra.is_empty() {
        set(object, "spec.extra", json!(user.extra));
    }
}

/// Copies from `old` what a write to the `approval` subresource may not change.
pub fn prepare_approval_update(new: &mut Value, old: &Value) {
    copy_from_old(new, old, "spec");
    copy_from_old(new, old, "status.certificate");
    keep_conditions(new, old, "Failed");
}

/// Validates a write to the `approval` subresource.
pub fn validate_approval_update(new: &Value, old: &Value) -> Errors {
    update_errors(new, old, Allowed::Decision)
}

fn update_errors(new: &Value, old: &Value, allowed: Allowed) -> Errors {
    let mut errors = CertificateSigningRequest.validate_create(new);
    check_removals(&mut errors, new, old);
    if allowed != Allowed::Decision {
        check_decisions(&mut errors, new, old);
    }
    let field = "status.certificate";
    let (after, before) = (text(new, field), text(old, field));
    if after == before {
        return errors;
    }
    let path = Path::new(field);
    if allowed != Allowed::Certificate {
        errors.forbidden(&path, "updates may not set certificate content");
    } else if !before.is_empty() {
        errors.forbidden(&path, "updates may not modify existing certificate content");
    }
    if let Some(words) = certificate_words(after) {
        errors.invalid(&path, "<certificate data>", &words);
    }
    errors
}

fn check_spec(errors: &mut Errors, object: &Value) {
    let request = text(object, "spec.request");
    if let Some(words) = request_words(request) {
        errors.invalid(&Path::new("spec.request"), request, words);
    }
    check_usages(errors, object, &Path::new("spec.usages"));
    let signer = text(object, "spec.signerName");
    check_signer(errors, signer, &Path::new("spec.signerName"));
    let seconds = int(object, "spec.expirationSeconds");
    if let Some(seconds) = seconds.filter(|seconds| *seconds < EXPIRATION_SECONDS_MIN) {
        let words = "may not specify a duration less than 600 seconds (10 minutes)";
        errors.invalid(&Path::new("spec.expirationSeconds"), seconds, words);
    }
}

fn check_usages(errors: &mut Errors, object: &Value, path: &Path) {
    if list(object, "spec.usages").is_empty() {
        errors.required(path, "");
    }
    for (i, usage) in texts(object, "spec.usages").enumerate() {
        one_of(errors, &path.index(i), usage, &USAGES);
    }
    let mut seen = BTreeSet::new();
    for (i, usage) in texts(object, "spec.usages").enumerate() {
        if !seen.insert(usage) {
            errors.duplicate(&path.index(i), usage);
        }
    }
}

/// A signer is a domain and a path: `example.com/signer-name`.
fn check_signer(errors: &mut Errors, signer: &str, path: &Path) {
    if signer.is_empty() {
        return errors.required(path, "");
    }
    if signer == "kubernetes.io/legacy-unknown" {
        let words = "the legacy signerName is not allowed via this API version";
        return errors.invalid(path, signer, words);
    }
    let segments: Vec<&str> = signer.split('/').collect();
    let [domain, rest] = segments[..] else {
        let words =
            "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        return errors.invalid(path, signer, words);
    };
    if domain.len() > names::SUBDOMAIN_LENGTH_MAX {
        errors.too_long(path, names::SUBDOMAIN_LENGTH_MAX);
    }
    check_segments(errors, domain, names::dns1123_label, path);
    if !domain.contains('.') {
        let words = "should be a domain with at least two segments separated by dots";
        errors.invalid(path, domain, words);
    }
    check_segments(errors, rest, names::dns1123_subdomain, path);
    if rest.len() > SIGNER_PATH_LENGTH_MAX {
        errors.too_long(path, SIGNER_PATH_LENGTH_MAX);
    }
}

fn check_segments(errors: &mut Errors, text: &str, rule: fn(&str) -> Vec<String>, path: &Path) {
    for label in text.split('.') {
        for words in rule(label) {
            errors.invalid(path, text, &format!("validating label {label:?}: {words}"));
        }
    }
}

/// The type and content of the first PEM block in a base64 field.
fn first_block(encoded: &str) -> Option<(String, Vec<u8>)> {
    let bytes = STANDARD.decode(encoded).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let (_, rest) = text.split_once("-----BEGIN ")?;
    let (kind, rest) = rest.split_once("-----")?;
    let (body, _) = rest.split_once(&format!("-----END {kind}-----"))?;
    let body: String = body.chars().filter(|c| !c.is_whitespace()).collect();
    Some((kind.to_owned(), STANDARD.decode(body).ok()?))
}

/// The PEM block of a request. Parsers differ in which of several blocks they take and in what may precede
/// one: so there must be exactly one, at the beginning of a line.
fn only_block(encoded: &str) -> Option<(String, Vec<u8>)> {
    const BEGIN: &str = "-----BEGIN";
    let bytes = STANDARD.decode(encoded).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let (before, rest) = text.split_once(BEGIN)?;
    let is_plain = (before.is_empty() || before.ends_with('\n')) && !rest.contains(BEGIN);
    is_plain.then(|| first_block(encoded))?
}

/// Why a request is invalid. The signer verifies its signature.
fn request_words(encoded: &str) -> Option<&'static str> {
    match only_block(encoded) {
        Some((kind, der)) if kind == REQUEST_BLOCK => {
            let parsed = X509CertificationRequest::from_der(&der);
            let whole = parsed.is_ok_and(|(rest, _)| rest.is_empty());
            (!whole).then_some("asn1: structure error: not a certificate request")
        }
        _ => Some("PEM block type must be CERTIFICATE REQUEST"),
    }
}

/// Reads the names in the subject of a request.
fn read_subject<T>(object: &Value, read: impl FnOnce(&X509Name<'_>) -> Option<T>) -> Option<T> {
    let (_, der) = only_block(text(object, "spec.request"))?;
    let (_, request) = X509CertificationRequest::from_der(&der).ok()?;
    read(&request.certification_request_info.subject)
}

/// The one common name that the request's subject has.
pub fn common_name(object: &Value) -> Option<String> {
    read_subject(object, |subject| {
        let mut names = subject.iter_common_name();
        let name = names.next()?.as_str().ok()?.to_owned();
        // Parsers differ in which of several they take.
        names.next().is_none().then_some(name)
    })
}

/// The organisations of the request's subject, which become groups. `None` if one cannot be parsed: a signer's
/// parser might be able to.
pub fn organisations(object: &Value) -> Option<Vec<String>> {
    read_subject(object, |subject| {
        let named = subject.iter_organization();
        let read = named.map(|name| name.as_str().ok().map(str::to_owned));
        read.collect()
    })
}

/// Why an issued certificate is invalid.
fn certificate_words(encoded: &str) -> Option<String> {
    if encoded.is_empty() {
        return None;
    }
    match first_block(encoded) {
        None => Some("must contain at least one CERTIFICATE PEM block".to_owned()),
        Some((kind, _)) if kind != CERTIFICATE_BLOCK => Some(format!(
            "only CERTIFICATE PEM blocks are allowed, found {kind:?}"
        )),
        Some(_) => None,
    }
}

/// Whether the request was approved and not denied.
pub fn is_approved(object: &Value) -> bool {
    let has = |kind: &str| {
        list(object, "status.conditions")
            .iter()
            .any(|condition| at(condition, "type") == kind)
    };
    has("Approved") && !has("Denied")
}

#[cfg(test)]
mod tests;
