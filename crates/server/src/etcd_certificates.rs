//! The certificates that the server uses with etcd, as their files are now. Others make and renew them.

use std::path::Path;

pub(crate) use kennel_store::EtcdTls;

use crate::certificates::Listed;
use crate::pki::inspect::split;

/// The client certificate.
const CLIENT: &str = "etcd-client";
/// The authorities that signed etcd's certificates; the second one is `etcd-ca-2`.
const AUTHORITY: &str = "etcd-ca";

/// What a warning calls it.
pub(crate) fn describe(name: &str) -> String {
    match name {
        CLIENT => "the client certificate of this server for etcd".to_owned(),
        name => format!("the certificate authority {name} of etcd"),
    }
}

/// Reads the files, without those that cannot be read: see [`problems`].
pub(crate) fn read(files: &EtcdTls) -> Vec<Listed> {
    let client = files.client.iter().filter_map(|(path, _)| {
        let pem = std::fs::read_to_string(path).ok()?;
        Listed::read(CLIENT.to_owned(), &pem, Some(path.display().to_string()))
    });
    let path = &files.ca_file;
    let authorities = split(&std::fs::read_to_string(path).unwrap_or_default());
    let authorities = authorities.iter().zip(1..).filter_map(|(pem, number)| {
        let name = match number {
            1 => AUTHORITY.to_owned(),
            number => format!("{AUTHORITY}-{number}"),
        };
        Listed::read(name, pem, Some(path.display().to_string()))
    });
    client.chain(authorities).collect()
}

/// Which files the next connection cannot use.
pub(crate) fn problems(files: &EtcdTls) -> Vec<String> {
    let key = files.client.iter().map(|(_, key)| key);
    let unreadable = key.filter_map(|path| Some(why(path, &std::fs::read(path).err()?)));
    let client = files.client.iter().map(|(certificate, _)| certificate);
    let broken = client.chain([&files.ca_file]).filter_map(|path| {
        let read = std::fs::read_to_string(path);
        match read.map(|pem| Listed::read(String::new(), &pem, None)) {
            Ok(Some(_)) => None,
            Ok(None) => Some(why(path, &"it has no certificate")),
            Err(error) => Some(why(path, &error)),
        }
    });
    unreadable.chain(broken).collect()
}

fn why(path: &Path, reason: &dyn std::fmt::Display) -> String {
    let path = path.display();
    format!("the next connection to etcd cannot use {path}: {reason}")
}
