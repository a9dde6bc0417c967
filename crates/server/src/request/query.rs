//! Query parameters of resource requests. Errors have upstream's wording.

use crate::field::{FieldError, Path};
use crate::kinds;
use crate::status::{ApiError, Result};

/// The parameters of one request, decoded.
#[derive(Clone, Debug, Default)]
pub struct Query(Vec<(String, String)>);

/// What to do with fields that the schema does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldValidation {
    Ignore,
    /// Drop them and send a warning.
    Warn,
    Strict,
}

/// What `resourceVersionMatch` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionMatch {
    /// At least as new.
    NotOlderThan,
    /// Exactly this state.
    Exact,
}

impl Query {
    pub fn parse(query: Option<&str>) -> Self {
        let text = query.unwrap_or_default();
        Self(
            form_urlencoded::parse(text.as_bytes())
                .into_owned()
                .collect(),
        )
    }

    /// The first value of a parameter; an empty one counts as absent.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.raw(name).filter(|v| !v.is_empty())
    }

    /// The first value of a parameter, even if it is empty.
    pub fn raw(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(k, _)| k == name)
            .map(|(_, v)| v.as_str())
    }

    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0
            .iter()
            .filter(move |(k, _)| k == name)
            .map(|(_, v)| v.as_str())
    }

    /// A flag: `true` and `1` switch it on.
    pub fn flag(&self, name: &str) -> Result<bool> {
        match self.raw(name) {
            None | Some("" | "false" | "0" | "f" | "F" | "FALSE" | "False") => Ok(false),
            Some("true" | "1" | "t" | "T" | "TRUE" | "True") => Ok(true),
            Some(other) => Err(ApiError::bad_request(format!(
                "strconv.ParseBool: parsing \"{other}\": invalid syntax"
            ))),
        }
    }

    /// A flag that anything but `false` and `0` switches on.
    pub fn lenient_flag(&self, name: &str) -> bool {
        let is_on = |value: &str| value != "0" && !value.eq_ignore_ascii_case("false");
        self.raw(name).is_some_and(is_on)
    }

    /// A number that is not negative.
    pub fn number(&self, name: &str) -> Result<Option<u64>> {
        self.parsed(name)
    }

    pub fn integer(&self, name: &str) -> Result<Option<i64>> {
        self.parsed(name)
    }

    fn parsed<N: std::str::FromStr>(&self, name: &str) -> Result<Option<N>> {
        let Some(text) = self.get(name) else {
            return Ok(None);
        };
        text.parse().map(Some).map_err(|_| {
            ApiError::bad_request(format!(
                "strconv.ParseInt: parsing \"{text}\": invalid syntax"
            ))
        })
    }

    /// Validates `fieldManager`.
    pub fn check_field_manager(&self, kind: &str) -> Result<()> {
        let manager = self.get("fieldManager").unwrap_or_default();
        let errors = kinds::meta::field_manager(manager, &Path::new("fieldManager"));
        if errors.is_empty() {
            return Ok(());
        }
        Err(ApiError::invalid_kind("meta.k8s.io", kind, "", &errors))
    }

    /// `dryRun=All`.
    pub fn dry_run(&self, kind: &str) -> Result<bool> {
        let values: Vec<&str> = self.all("dryRun").collect();
        check_dry_run(&values, kind)
    }

    /// `fieldValidation`.
    pub fn field_validation(&self, kind: &str) -> Result<FieldValidation> {
        match self.get("fieldValidation") {
            None | Some("Warn") => Ok(FieldValidation::Warn),
            Some("Ignore") => Ok(FieldValidation::Ignore),
            Some("Strict") => Ok(FieldValidation::Strict),
            Some(other) => Err(invalid_option(
                kind,
                FieldError::not_supported(
                    &Path::new("fieldValidation"),
                    other,
                    &["", "Ignore", "Strict", "Warn"],
                ),
            )),
        }
    }

    /// `resourceVersion` as a number; `None` when absent.
    pub fn resource_version(&self) -> Result<Option<u64>> {
        let Some(text) = self.get("resourceVersion") else {
            return Ok(None);
        };
        parse_version(text).map(Some)
    }

    /// `resourceVersionMatch`.
    pub fn version_match(&self) -> Result<Option<VersionMatch>> {
        match self.get("resourceVersionMatch") {
            None => Ok(None),
            Some("NotOlderThan") => Ok(Some(VersionMatch::NotOlderThan)),
            Some("Exact") => Ok(Some(VersionMatch::Exact)),
            Some(other) => Err(list_option(FieldError::not_supported(
                &Path::new("resourceVersionMatch"),
                other,
                &["Exact", "NotOlderThan", ""],
            ))),
        }
    }
}

/// Checks the values of `dryRun`, from a query or a body.
pub fn check_dry_run(values: &[&str], kind: &str) -> Result<bool> {
    if values.iter().all(|value| *value == "All") {
        return Ok(!values.is_empty());
    }
    let error = FieldError::not_supported(&Path::new("dryRun"), values, &["All"]);
    Err(invalid_option(kind, error))
}

/// A resourceVersion as a number.
pub fn parse_version(text: &str) -> Result<u64> {
    text.parse().map_err(|_| {
        ApiError::bad_request(format!(
            "invalid resource version: Invalid value: \"{text}\": strconv.ParseUint: parsing \"{text}\": invalid syntax"
        ))
    })
}

/// 422 about an option of a request.
pub fn invalid_option(kind: &str, error: FieldError) -> ApiError {
    ApiError::invalid_kind("meta.k8s.io", kind, "", &[error])
}

/// 422 about an option of a list or watch.
pub fn list_option(error: FieldError) -> ApiError {
    invalid_option("ListOptions", error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_flags_and_numbers() {
        let query = Query::parse(Some("watch=1&limit=500&labelSelector=a+in+(b%2Cc)&x="));
        assert!(query.flag("watch").unwrap());
        assert_eq!(query.number("limit").unwrap(), Some(500));
        assert_eq!(query.get("labelSelector"), Some("a in (b,c)"));
        assert_eq!((query.get("x"), query.raw("x")), (None, Some("")));
        assert!(!query.flag("absent").unwrap());
    }

    #[test]
    fn refuses_what_makes_no_sense() {
        assert_eq!(
            Query::parse(Some("watch=perhaps"))
                .flag("watch")
                .unwrap_err()
                .code,
            400
        );
        assert_eq!(
            Query::parse(Some("limit=-1"))
                .number("limit")
                .unwrap_err()
                .code,
            400
        );
        assert_eq!(
            Query::parse(Some("dryRun=Some"))
                .dry_run("CreateOptions")
                .unwrap_err()
                .code,
            422
        );
        assert_eq!(
            Query::parse(Some("resourceVersion=abc"))
                .resource_version()
                .unwrap_err()
                .code,
            400
        );
        let odd = Query::parse(Some("fieldValidation=Maybe"));
        assert_eq!(odd.field_validation("CreateOptions").unwrap_err().code, 422);
    }
}
