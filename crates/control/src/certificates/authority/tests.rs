//! From requests to certificates.

use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestSpec,
};
use rcgen::{BasicConstraints, CustomExtension};
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::*;

fn authority() -> Authority {
    let pair = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "ca");
    let cert = params.self_signed(&pair).unwrap();
    Authority::new(cert.pem(), pair.serialize_pem()).unwrap()
}

fn asking(params: &CertificateParams) -> CertificateSigningRequest {
    let pair = KeyPair::generate().unwrap();
    let pem = params.serialize_request(&pair).unwrap().pem().unwrap();
    CertificateSigningRequest {
        spec: CertificateSigningRequestSpec {
            request: ByteString(pem.into_bytes()),
            signer_name: "kubernetes.io/kube-apiserver-client".to_owned(),
            usages: Some(vec![
                "client auth".to_owned(),
                "digital signature".to_owned(),
            ]),
            ..CertificateSigningRequestSpec::default()
        },
        ..CertificateSigningRequest::default()
    }
}

fn of(attributes: &[(DnType, &str)]) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    for (kind, value) in attributes {
        params.distinguished_name.push(kind.clone(), *value);
    }
    params
}

const VALIDITY: Validity = Validity {
    not_before: Timestamp::from_secs(1_700_000_000),
    not_after: Timestamp::from_secs(4_000_000_000),
};

#[test]
fn a_certificate_has_exactly_what_was_requested() {
    let second = DnType::CustomDnType(vec![2, 5, 4, 10]);
    let mut params = of(&[
        (DnType::OrganizationName, "wardens"),
        (second, "keepers"),
        (DnType::CommonName, "alice"),
    ]);
    params.subject_alt_names = vec![
        SanType::DnsName("a.example".try_into().unwrap()),
        SanType::IpAddress("10.0.0.1".parse().unwrap()),
    ];
    // It would like to be an authority.
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let authority = authority();
    let parsed = Parsed::read(&asking(&params)).unwrap();
    assert_eq!(parsed.asked.organisations, ["wardens", "keepers"]);
    let pem = authority.sign(&parsed, VALIDITY).unwrap();
    let (_, block) = parse_x509_pem(pem.as_bytes()).unwrap();
    let (_, cert) = X509Certificate::from_der(&block.contents).unwrap();
    let (_, ca_block) = parse_x509_pem(authority.cert_pem.as_bytes()).unwrap();
    let (_, ca) = X509Certificate::from_der(&ca_block.contents).unwrap();
    cert.verify_signature(Some(ca.public_key())).unwrap();
    assert_eq!(cert.subject().to_string(), "O=wardens, O=keepers, CN=alice");
    assert_eq!(cert.issuer(), ca.subject());
    assert_eq!(cert.public_key().raw, parsed.key);
    assert_eq!(
        cert.validity().not_before.timestamp(),
        VALIDITY.not_before.as_secs()
    );
    assert_eq!(
        cert.validity().not_after.timestamp(),
        VALIDITY.not_after.as_secs()
    );
    assert!(!cert.is_ca());
    let usage = cert.key_usage().unwrap().unwrap().value;
    assert!(usage.digital_signature() && !usage.key_cert_sign() && !usage.key_encipherment());
    let extended = cert.extended_key_usage().unwrap().unwrap().value;
    assert!(extended.client_auth && !extended.server_auth);
    let names = cert.subject_alternative_name().unwrap().unwrap().value;
    assert_eq!(names.general_names.len(), 2);
    assert!(cert.subject_alternative_name().unwrap().is_some());
}

#[test]
fn ambiguous_requests_are_refused() {
    let check = |request: &CertificateSigningRequest, expected: &str| {
        let error = Parsed::read(request).err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some(expected));
    };
    let second_name = DnType::CustomDnType(vec![2, 5, 4, 3]);
    let two = of(&[(DnType::CommonName, "alice"), (second_name, "root")]);
    check(&asking(&two), "the subject has more than one common name");
    let uid = DnType::CustomDnType(vec![1, 3, 6, 1, 4, 1, 57683, 2]);
    let with_uid = of(&[(DnType::CommonName, "alice"), (uid, "4711")]);
    let expected = "the subject's attribute 1.3.6.1.4.1.57683.2 is not signed";
    check(&asking(&with_uid), expected);
    let mut other = of(&[(DnType::CommonName, "alice")]);
    let name = (vec![1, 2, 3], "secret".to_owned().into());
    other.subject_alt_names = vec![SanType::OtherName(name)];
    check(
        &asking(&other),
        "a subjectAltName is of a kind that is not signed",
    );
    let mut broken = of(&[(DnType::CommonName, "alice")]);
    let names = CustomExtension::from_oid_content(&[2, 5, 29, 17], vec![0x30, 0x7f]);
    broken.custom_extensions = vec![names];
    check(&asking(&broken), "an extension cannot be read");
}

#[test]
fn a_request_that_another_key_signed_is_refused() {
    let mine = asking(&of(&[(DnType::CommonName, "alice")]));
    let mut theirs = mine.clone();
    // Another name of the same length, under the same signature.
    let text = String::from_utf8(mine.spec.request.0).unwrap();
    let (_, block) = parse_x509_pem(text.as_bytes()).unwrap();
    let mut der = block.contents;
    let at = der.windows(5).position(|part| part == b"alice").unwrap();
    der[at..at + 5].copy_from_slice(b"carol");
    let pem = subject::to_pem(&der).replace("CERTIFICATE", "CERTIFICATE REQUEST");
    theirs.spec.request = ByteString(pem.into_bytes());
    assert_eq!(Parsed::read(&theirs).err(), Some(RequestError::Signature));
}
