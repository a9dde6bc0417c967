//! Content negotiation: the first acceptable clause of the `Accept` header decides.

use crate::status::{ApiError, Result};

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The object itself.
    Object,
    /// A `Table` of the given `meta.k8s.io` version.
    Table(&'static str),
    /// Only the metadata.
    Metadata,
}

/// The form of an answer to a resource request.
pub fn form(accept: Option<&str>) -> Result<Form> {
    let Some(accept) = accept.filter(|a| !a.trim().is_empty()) else {
        return Ok(Form::Object);
    };
    accept
        .split(',')
        .find_map(|clause| clause_form(clause.trim()))
        .ok_or_else(ApiError::not_acceptable)
}

/// Whether the client accepts an answer that has no table.
pub fn accepts_object(accept: Option<&str>) -> Result<()> {
    let Some(accept) = accept.filter(|a| !a.trim().is_empty()) else {
        return Ok(());
    };
    let mut forms = accept.split(',').map(|clause| clause_form(clause.trim()));
    if forms.any(|form| matches!(form, Some(Form::Object | Form::Metadata))) {
        return Ok(());
    }
    Err(ApiError::not_acceptable())
}

/// The version of aggregated discovery, if the client prefers it to unaggregated discovery.
pub fn aggregated_discovery(accept: Option<&str>) -> Option<&'static str> {
    for clause in accept.unwrap_or_default().split(',') {
        let clause = Clause::parse(clause.trim());
        if !clause.is_json() {
            continue;
        }
        if clause.get("as") != Some("APIGroupDiscoveryList") {
            return None;
        }
        match clause.get("v") {
            Some("v2") => return Some("v2"),
            Some("v2beta1") => return Some("v2beta1"),
            _ => {}
        }
    }
    None
}

/// Whether the client takes an answer in the gzip format (`Accept-Encoding`).
pub fn gzip(encodings: Option<&str>) -> bool {
    let mut clauses = encodings.unwrap_or_default().split(',');
    clauses.any(|clause| {
        let clause = Clause::parse(clause.trim());
        let refused = clause.get("q").is_some_and(|q| q.parse() == Ok(0.0));
        clause.media.eq_ignore_ascii_case("gzip") && !refused
    })
}

fn clause_form(text: &str) -> Option<Form> {
    let clause = Clause::parse(text);
    if !clause.is_json() {
        return None;
    }
    match (clause.get("as"), clause.get("v")) {
        (None, _) => Some(Form::Object),
        (Some("Table"), Some("v1")) => Some(Form::Table("v1")),
        (Some("Table"), Some("v1beta1")) => Some(Form::Table("v1beta1")),
        (Some("PartialObjectMetadata" | "PartialObjectMetadataList"), _) => Some(Form::Metadata),
        _ => None,
    }
}

struct Clause<'a> {
    media: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
}

impl<'a> Clause<'a> {
    fn parse(text: &'a str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default();
        Self {
            media,
            parameters: parts.filter_map(|p| p.split_once('=')).collect(),
        }
    }

    fn get(&self, name: &str) -> Option<&'a str> {
        self.parameters
            .iter()
            .find(|(k, _)| *k == name)
            .map(|(_, v)| *v)
    }

    fn is_json(&self) -> bool {
        matches!(self.media, "application/json" | "application/*" | "*/*")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(accept: &str, expected: Option<Form>) {
        assert_eq!(form(Some(accept)).ok(), expected, "{accept}");
    }

    #[test]
    fn gzip_is_taken_unless_the_client_refuses_it() {
        for yes in ["gzip", "GZIP", "deflate, gzip;q=0.5"] {
            assert!(gzip(Some(yes)), "{yes}");
        }
        for no in [
            None,
            Some(""),
            Some("br"),
            Some("gzip;q=0"),
            Some("gzip;q=0.0"),
        ] {
            assert!(!gzip(no), "{no:?}");
        }
    }

    #[test]
    fn takes_the_first_clause_it_can_serve() {
        check(
            "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
            Some(Form::Table("v1")),
        );
        check(
            "application/vnd.kubernetes.protobuf,application/json",
            Some(Form::Object),
        );
        check(
            "application/vnd.kubernetes.protobuf, */*",
            Some(Form::Object),
        );
        check(
            "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,\
             application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
            Some(Form::Metadata),
        );
        check("application/cbor", None);
        check("", Some(Form::Object));
        assert_eq!(form(None).ok(), Some(Form::Object));
    }

    #[test]
    fn what_has_no_table_is_not_acceptable_as_one_alone() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
        assert!(accepts_object(Some(table)).is_err());
        assert!(accepts_object(Some(&format!("{table},application/json"))).is_ok());
        assert!(accepts_object(None).is_ok());
    }

    #[test]
    fn aggregated_discovery_is_asked_for_by_name() {
        let modern = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                      application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,\
                      application/json";
        assert_eq!(aggregated_discovery(Some(modern)), Some("v2"));
        assert_eq!(aggregated_discovery(Some("application/json")), None);
        assert_eq!(aggregated_discovery(None), None);
    }
}
