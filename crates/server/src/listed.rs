//! A certificate as it is listed: by `kennel certs`, in metrics, and in warnings of its end.

use kennel_core::certificates::expiry::{self, RenewedBy};
use kennel_types::Timestamp;
use serde::Serialize;

use crate::etcd_certificates;
use crate::pki::inspect::CertificateInfo;
use crate::pki::{AUTHORITY, PREVIOUS_AUTHORITY};

/// A certificate as `kennel certs` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Listed {
    pub name: String,
    pub subject: String,
    pub issuer: String,
    pub not_before: Timestamp,
    pub not_after: Timestamp,
    /// It ends soon although it should have been renewed.
    pub expiring: bool,
    /// The file of a certificate that the server uses and does not renew.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

impl Listed {
    /// The first certificate of a PEM file.
    pub(crate) fn read(name: String, pem: &str, file: Option<String>) -> Option<Self> {
        let info = CertificateInfo::read(pem)?;
        Some(Self {
            name,
            subject: info.subject,
            issuer: info.issuer,
            not_before: info.not_before,
            not_after: info.not_after,
            expiring: false,
            file,
        })
    }

    pub(crate) fn is_authority(&self) -> bool {
        self.name == AUTHORITY || self.name.starts_with(PREVIOUS_AUTHORITY)
    }

    /// Nothing renews an authority that others have made, and the server may be unable to replace its own.
    fn renewed_by(&self) -> RenewedBy {
        if self.is_authority() || self.file.is_some() {
            RenewedBy::Others
        } else {
            RenewedBy::Kennel
        }
    }

    /// With whether it ends soon.
    pub(crate) fn at(self, now: Timestamp) -> Self {
        let by = self.renewed_by();
        Self {
            expiring: expiry::is_expiring(self.not_before, self.not_after, now, by),
            ..self
        }
    }

    /// The warning of a certificate that ends soon.
    pub fn warning(&self, now: Timestamp) -> String {
        if let Some(file) = &self.file {
            let what = etcd_certificates::describe(&self.name);
            let remedy = format!(
                "write a new one to {file}, which the server reads for each connection; see docs/guides/etcd.md"
            );
            return expiry::warning(&what, self.not_after, now, &remedy);
        }
        let (what, remedy) = match self.name.as_str() {
            name if name.starts_with(PREVIOUS_AUTHORITY) => (
                format!("the earlier certificate authority {name} of this server"),
                "clients that trust only this one need the new one: see `kennel certs` and docs/guides/certificates.md",
            ),
            AUTHORITY => (
                "the certificate authority of this server".to_owned(),
                "replace it with `kennel certs rotate-ca`, see docs/guides/certificates.md",
            ),
            name => (
                format!("the certificate {name} of this server"),
                "its renewal fails, see the log; renew it with `kennel certs renew`",
            ),
        };
        expiry::warning(&what, self.not_after, now, remedy)
    }
}
