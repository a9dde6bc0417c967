//! Clients of API servers in other processes, whose errors say why the server could not be reached and what to check.

use std::error::Error as StdError;
use std::io;

use hyper_util::client::legacy;
use kube::client::ClientBuilder;
use kube::runtime::watcher;
use kube::{Client, Config};
use rustls::CertificateError;
use tower::BoxError;
use tower::util::MapErrLayer;

/// Where the address and the certificate authority of a server come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Kubeconfig,
    /// The cluster that this node has joined.
    Joined,
}

/// Why a server cannot be reached, and what to check.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    #[error(
        "{server} refuses the connection: check that the server runs, and that this is the address it listens on"
    )]
    Refused { server: String },
    #[error(
        "this kubeconfig belongs to another cluster (its certificate authority differs): use the kubeconfig of the \
         server at {server}, which Kennel writes to admin.kubeconfig in its data directory at every start"
    )]
    OtherKubeconfig { server: String },
    #[error(
        "this node has joined another cluster (the certificate authority of {server} differs): run `kennel token create` \
         on the server, and the command that it prints on this machine"
    )]
    OtherCluster { server: String },
    #[error("cannot connect to {server}: {why}")]
    Other { server: String, why: String },
}

/// A client that does not repeat requests: callers decide whether to repeat a write whose response was lost, because
/// it may have been executed.
pub fn client(mut config: Config, origin: Origin) -> Result<Client, kube::Error> {
    config.default_retry = false;
    config.headers.extend(crate::headers());
    let layer = explaining(&config, origin);
    Ok(ClientBuilder::try_from(config)?.with_layer(&layer).build())
}

/// Turns failures to connect into [`ConnectionError`]s.
pub(crate) fn explaining(
    config: &Config,
    origin: Origin,
) -> MapErrLayer<impl Fn(BoxError) -> BoxError + Clone + Send + Sync + 'static> {
    let url = config.cluster_url.to_string();
    let server = url.trim_end_matches('/').to_owned();
    MapErrLayer::new(move |error: BoxError| explain(&server, origin, error))
}

/// Turns a failure to connect into a [`ConnectionError`].
fn explain(server: &str, origin: Origin, error: BoxError) -> BoxError {
    let failed = causes(&*error).find_map(|cause| cause.downcast_ref::<legacy::Error>());
    if !failed.is_some_and(legacy::Error::is_connect) {
        return error;
    }
    let server = server.to_owned();
    let refused = causes(&*error).any(|cause| {
        let cause = cause.downcast_ref::<io::Error>();
        cause.is_some_and(|cause| cause.kind() == io::ErrorKind::ConnectionRefused)
    });
    Box::new(match origin {
        _ if refused => ConnectionError::Refused { server },
        Origin::Kubeconfig if has_other_authority(&*error) => {
            ConnectionError::OtherKubeconfig { server }
        }
        Origin::Joined if has_other_authority(&*error) => ConnectionError::OtherCluster { server },
        _ => ConnectionError::Other {
            server,
            why: last(&*error),
        },
    })
}

/// Whether the server's certificate is signed by another authority than the expected one.
fn has_other_authority(error: &(dyn StdError + 'static)) -> bool {
    causes(error).any(|cause| {
        matches!(
            cause.downcast_ref::<rustls::Error>(),
            // Authorities of the same name with other keys fail the check of the signature.
            Some(rustls::Error::InvalidCertificate(
                CertificateError::UnknownIssuer | CertificateError::BadSignature
            ))
        )
    })
}

/// An error and its causes. The source of an `io::Error` is that of the error within, so that is added.
fn causes<'a>(
    error: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |cause| {
        let cause: &'a (dyn StdError + 'static) = *cause;
        let within = cause
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        match within {
            Some(within) => Some(within as &(dyn StdError + 'static)),
            None => cause.source(),
        }
    })
}

/// The text of the last cause, which says the most.
fn last(error: &(dyn StdError + 'static)) -> String {
    let last = causes(error).last();
    last.map(ToString::to_string).unwrap_or_default()
}

/// The text of an error, without the prefixes of `kube`.
pub fn describe(error: &kube::Error) -> String {
    match error {
        kube::Error::Service(error) if error.is::<ConnectionError>() => error.to_string(),
        kube::Error::Service(error) => last(&**error),
        kube::Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        other => other.to_string(),
    }
}

/// The same of a watch.
pub fn describe_watch(error: &watcher::Error) -> String {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => describe(error),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn failure(url: &str) -> String {
        let mut config = Config::new(url.parse().unwrap());
        config.connect_timeout = Some(std::time::Duration::from_secs(5));
        let client = client(config, Origin::Kubeconfig).unwrap();
        let failed = client.apiserver_version().await.unwrap_err();
        describe(&failed)
    }

    #[tokio::test]
    async fn a_refused_connection_names_the_address() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        drop(listener);
        let text = failure(&url).await;
        assert!(
            text.starts_with(&format!("{url} refuses the connection: check")),
            "{text}"
        );
    }

    #[tokio::test]
    async fn a_name_without_an_address_is_named() {
        let text = failure("https://kennel.invalid:6443").await;
        let words = "cannot connect to https://kennel.invalid:6443: ";
        assert!(text.starts_with(words), "{text}");
    }

    #[test]
    fn an_authority_that_differs_is_found_below_io_errors() {
        let check = |error: CertificateError, expected: bool| {
            let error = rustls::Error::InvalidCertificate(error);
            let error = io::Error::new(io::ErrorKind::InvalidData, error);
            assert_eq!(has_other_authority(&error), expected, "{error}");
        };
        check(CertificateError::UnknownIssuer, true);
        check(CertificateError::BadSignature, true);
        check(CertificateError::Expired, false);
    }
}
