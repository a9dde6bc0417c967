//! A request whose body has been read.

use bytes::Bytes;
use http::{HeaderMap, header};
use kennel_types::meta::{MANAGED_FIELDS_HEADER, OMIT_MANAGED_FIELDS};

use crate::kinds::meta::{FIELD_MANAGER_LENGTH_MAX, is_printable};
use crate::object::ManagedFields;
use crate::present::Presenter;
use crate::registry::Resource;
use crate::request::User;
use crate::request::accept::{self, Form};
use crate::request::query::Query;
use crate::status::{ApiError, Result};
use crate::table::IncludeObject;

/// A request whose body has been read.
pub struct Call {
    pub user: User,
    pub headers: HeaderMap,
    pub query: Query,
    pub body: Bytes,
}

impl Call {
    /// A header's value, if it is text.
    pub fn header(&self, name: header::HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The manager of the fields that the request writes: `fieldManager`, or the user agent up to the first
    /// slash.
    pub fn manager(&self) -> String {
        if let Some(manager) = self.query.get("fieldManager") {
            return manager.to_owned();
        }
        let agent = self.header(header::USER_AGENT).unwrap_or_default();
        let name = agent.split('/').next().unwrap_or_default();
        let printable = name.chars().filter(|c| is_printable(*c));
        let mut manager = String::new();
        for c in printable {
            if manager.len() + c.len_utf8() > FIELD_MANAGER_LENGTH_MAX {
                break;
            }
            manager.push(c);
        }
        manager
    }

    /// The form that the `Accept` header asks for.
    pub fn form(&self) -> Result<Form> {
        accept::form(self.header(header::ACCEPT))
    }

    /// The media type of the body, without parameters; empty when none is named.
    pub fn media_type(&self) -> &str {
        let value = self.header(header::CONTENT_TYPE).unwrap_or_default();
        value.split(';').next().unwrap_or_default().trim()
    }

    /// What the rows of a table contain besides their cells.
    pub fn include_object(&self) -> Result<IncludeObject> {
        let asked = self.query.get("includeObject");
        IncludeObject::parse(asked).ok_or_else(|| {
            let asked = asked.unwrap_or_default();
            ApiError::bad_request(format!("unrecognized includeObject value: \"{asked}\""))
        })
    }

    /// The presenter for objects of a resource in the form this client accepts.
    pub fn presenter(&self, row: &'static Resource) -> Result<Presenter> {
        let (form, include) = (self.form()?, self.include_object()?);
        // A table is for people, who do not read the managed fields in its rows, unless the client asks for objects there.
        let is_for_people =
            matches!(form, Form::Table(_)) && self.query.get("includeObject").is_none();
        let managed_fields = match self.headers.get(MANAGED_FIELDS_HEADER) {
            _ if is_for_people => ManagedFields::Omitted,
            Some(value) if value == OMIT_MANAGED_FIELDS => ManagedFields::Omitted,
            _ => ManagedFields::Shown,
        };
        Ok(Presenter::new(row, form, include, managed_fields))
    }
}
