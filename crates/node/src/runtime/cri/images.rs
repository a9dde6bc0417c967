//! Images: pulled when needed, removed when the disk is full.

use std::collections::{HashMap, HashSet};
use std::error::Error as _;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use kennel_types::pod::WaitingReason;
use tonic::Status;

use super::connection::Connection;
use super::{api, image_names};
use crate::runtime::{Error, Image, PullPolicy, RegistryLogin, Result};
use crate::sync::lock;

/// An image that was requested this recently is not removed, even if no container uses it yet.
const RECENT: Duration = Duration::from_mins(5);

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Images {
    /// When each image was last requested, by id.
    requested: Mutex<HashMap<String, Instant>>,
}

impl Images {
    /// Pulls an image if the policy requires it.
    pub(super) async fn ensure(
        &self,
        connection: &Connection,
        image: &str,
        policy: PullPolicy,
        logins: &[RegistryLogin],
    ) -> Result<Image> {
        let name = image_names::with_tag(image).map_err(|why| Error::Image {
            reason: WaitingReason::InvalidImageName,
            message: format!("Failed to apply default image tag {image:?}: {why}"),
        })?;
        let present = self.find(connection, image, &name).await?;
        match (policy, present) {
            (PullPolicy::IfNotPresent | PullPolicy::Never, Some(present)) => return Ok(present),
            (PullPolicy::Never, None) => {
                return Err(Error::Image {
                    reason: WaitingReason::ErrImageNeverPull,
                    message: format!(
                        "Container image {image:?} is not present with pull policy of Never"
                    ),
                });
            }
            (PullPolicy::Always, _) | (PullPolicy::IfNotPresent, None) => {}
        }
        let reference = pull(connection, image, &name, logins).await?;
        let pulled = self.find(connection, image, &reference).await?;
        pulled.ok_or_else(|| Error::Image {
            reason: WaitingReason::ErrImagePull,
            message: format!("the image {image:?} disappeared after it was pulled"),
        })
    }

    async fn find(
        &self,
        connection: &Connection,
        image: &str,
        name: &str,
    ) -> Result<Option<Image>> {
        let request = api::ImageStatusRequest {
            image: Some(spec(name)),
        };
        let response = connection
            .call(request)
            .await
            .map_err(|error| match error {
                Error::Unavailable(_) => error,
                error => Error::Image {
                    reason: WaitingReason::ImageInspectError,
                    message: format!("Failed to inspect image {image:?}: {error}"),
                },
            })?;
        let Some(found) = response.image else {
            return Ok(None);
        };
        lock(&self.requested).insert(found.id.clone(), Instant::now());
        Ok(Some(Image {
            // Statuses show the digest, if the image has come from a registry.
            id: found.repo_digests.first().unwrap_or(&found.id).clone(),
            reference: found.id,
            uid: found.uid.map(|uid| uid.value),
            username: found.username,
            size: found.size,
        }))
    }

    /// Removes unused images. Returns the number of freed bytes.
    pub(super) async fn remove_unused(
        &self,
        connection: &Connection,
        sandbox_image: &str,
    ) -> Result<u64> {
        let images = connection.call(api::ListImagesRequest {}).await?.images;
        // Containers of all clients.
        let containers = connection
            .call(api::ListContainersRequest { filter: None })
            .await?;
        let used = names_in_use(&containers.containers);
        lock(&self.requested).retain(|_, when| when.elapsed() < RECENT);
        let mut freed = 0;
        for image in images {
            let recent = lock(&self.requested).contains_key(&image.id);
            if recent || is_used(&image, &used, sandbox_image) {
                continue;
            }
            connection
                .call(api::RemoveImageRequest {
                    image: Some(spec(&image.id)),
                })
                .await?;
            tracing::info!(image = %image.id, names = ?image.repo_tags, "image removed: nothing uses it");
            freed += image.size;
        }
        Ok(freed)
    }
}

fn spec(image: &str) -> api::ImageSpec {
    api::ImageSpec {
        image: image.to_owned(),
        user_specified_image: String::new(),
    }
}

fn names_in_use(containers: &[api::Container]) -> HashSet<&str> {
    let specs = containers
        .iter()
        .filter_map(|container| container.image.as_ref());
    let names = specs.map(|image| image.image.as_str());
    let references = containers
        .iter()
        .map(|container| container.image_ref.as_str());
    names.chain(references).collect()
}

fn is_used(image: &api::Image, used: &HashSet<&str>, sandbox_image: &str) -> bool {
    let names = image.repo_tags.iter().chain(&image.repo_digests);
    let mut names = names.chain(std::iter::once(&image.id)).map(String::as_str);
    image.pinned || names.any(|name| used.contains(name) || name == sandbox_image)
}

/// Tries one login after the other, or an anonymous pull if there are none.
async fn pull(
    connection: &Connection,
    image: &str,
    name: &str,
    logins: &[RegistryLogin],
) -> Result<String> {
    let anonymous = logins.is_empty().then_some(None);
    let logins = logins.iter().map(|login| Some(auth(login)));
    let mut last = None;
    for auth in anonymous.into_iter().chain(logins) {
        let request = api::PullImageRequest {
            image: Some(spec(name)),
            auth,
        };
        // Without timeout: pulls may take long.
        match connection.call_once(request).await {
            Ok(response) => return Ok(response.image_ref),
            Err(status) => last = Some(status),
        }
    }
    let status = last.expect("there is at least one attempt");
    match connection.classify(&status) {
        unavailable @ Error::Unavailable(_) if status.source().is_some() => Err(unavailable),
        _ => Err(pull_error(image, &status)),
    }
}

fn auth(login: &RegistryLogin) -> api::AuthConfig {
    api::AuthConfig {
        username: login.username.clone(),
        password: login.password.clone(),
        // Empty, because the credentials were selected for this image. containerd would ignore them if the address had
        // no scheme.
        server_address: String::new(),
        identity_token: login.identity_token.clone(),
    }
}

/// Classifies the error of a pull as upstream does.
fn pull_error(image: &str, status: &Status) -> Error {
    let kinds = [
        (
            WaitingReason::RegistryUnavailable,
            "the registry is unavailable",
        ),
        (
            WaitingReason::SignatureValidationFailed,
            "the signature validation failed",
        ),
    ];
    for (reason, why) in kinds {
        if let Some(more) = status.message().strip_prefix(reason.as_str()) {
            let message = format!("image pull failed for {image} because {why}{more}");
            return Error::Image { reason, message };
        }
    }
    let (code, message) = (status.code(), status.message());
    Error::Image {
        reason: WaitingReason::ErrImagePull,
        message: format!("rpc error: code = {code:?} desc = {message}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(status: &Status, reason: &str, message: &str) {
        let Error::Image {
            reason: found,
            message: text,
        } = pull_error("a:1", status)
        else {
            panic!("not about an image");
        };
        assert_eq!((found.as_str(), text.as_str()), (reason, message));
    }

    #[test]
    fn pull_errors_are_reported_in_upstreams_words() {
        check(
            &Status::not_found("failed to pull and unpack image: not found"),
            "ErrImagePull",
            "rpc error: code = NotFound desc = failed to pull and unpack image: not found",
        );
        check(
            &Status::unknown("RegistryUnavailable: no route to host"),
            "RegistryUnavailable",
            "image pull failed for a:1 because the registry is unavailable: no route to host",
        );
        check(
            &Status::unknown("SignatureValidationFailed"),
            "SignatureValidationFailed",
            "image pull failed for a:1 because the signature validation failed",
        );
    }

    #[test]
    fn images_in_use_are_known_by_any_of_their_names() {
        let image = api::Image {
            id: "sha256:1".into(),
            repo_tags: vec!["a:1".into()],
            repo_digests: vec!["a@sha256:2".into()],
            ..Default::default()
        };
        for name in ["sha256:1", "a:1", "a@sha256:2"] {
            assert!(is_used(&image, &HashSet::from([name]), ""), "{name}");
            assert!(
                is_used(&image, &HashSet::new(), name),
                "{name} for sandboxes"
            );
        }
        assert!(!is_used(&image, &HashSet::from(["b:1"]), "pause:1"));
        let pinned = api::Image {
            pinned: true,
            ..image
        };
        assert!(is_used(&pinned, &HashSet::new(), ""));
    }
}
