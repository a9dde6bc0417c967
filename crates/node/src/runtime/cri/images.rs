//! Images: got when they are needed, taken away when the disk is full.

use std::collections::{HashMap, HashSet};
use std::error::Error as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tonic::Status;

use super::line::Line;
use super::{api, names};
use crate::runtime::{Error, Image, PullPolicy, RegistryLogin, Result};

/// An image that was asked for this recently is about to be used, even if nothing uses it yet.
const RECENTLY: Duration = Duration::from_mins(5);

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Images {
    /// When each image was last asked for, by id.
    asked: Mutex<HashMap<String, Instant>>,
}

impl Images {
    /// Sees to it that an image is there.
    pub(super) async fn ensure(
        &self,
        line: &Line,
        image: &str,
        policy: PullPolicy,
        logins: &[RegistryLogin],
    ) -> Result<Image> {
        let name = names::complete(image).map_err(|why| Error::Image {
            reason: "InvalidImageName",
            message: format!("Failed to apply default image tag {image:?}: {why}"),
        })?;
        let present = self.find(line, image, &name).await?;
        match (policy, present) {
            (PullPolicy::IfNotPresent | PullPolicy::Never, Some(present)) => return Ok(present),
            (PullPolicy::Never, None) => {
                return Err(Error::Image {
                    reason: "ErrImageNeverPull",
                    message: format!(
                        "Container image {image:?} is not present with pull policy of Never"
                    ),
                });
            }
            (PullPolicy::Always, _) | (PullPolicy::IfNotPresent, None) => {}
        }
        let reference = pull(line, image, &name, logins).await?;
        let pulled = self.find(line, image, &reference).await?;
        pulled.ok_or_else(|| Error::Image {
            reason: "ErrImagePull",
            message: format!("the image {image:?} was pulled and is gone again"),
        })
    }

    async fn find(&self, line: &Line, image: &str, name: &str) -> Result<Option<Image>> {
        let request = api::ImageStatusRequest {
            image: Some(spec(name)),
        };
        let answer = line.ask(request).await.map_err(|error| match error {
            Error::Unavailable(_) => error,
            error => Error::Image {
                reason: "ImageInspectError",
                message: format!("Failed to inspect image {image:?}: {error}"),
            },
        })?;
        let Some(found) = answer.image else {
            return Ok(None);
        };
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.insert(found.id.clone(), Instant::now());
        Ok(Some(Image {
            // What is shown is the digest that others find it by, if it has come from a registry.
            id: found.repo_digests.first().unwrap_or(&found.id).clone(),
            reference: found.id,
            uid: found.uid.map(|uid| uid.value),
            username: found.username,
            size: found.size,
        }))
    }

    /// Takes away images that nothing uses; says how many bytes that freed.
    pub(super) async fn remove_unused(&self, line: &Line, sandbox_image: &str) -> Result<u64> {
        let images = line.ask(api::ListImagesRequest {}).await?.images;
        // All containers, not only ours.
        let containers = line
            .ask(api::ListContainersRequest { filter: None })
            .await?;
        let used = names_in_use(&containers.containers);
        self.forget_long_ago();
        let mut freed = 0;
        for image in images {
            let recent = self.is_recent(&image.id);
            if recent || is_used(&image, &used, sandbox_image) {
                continue;
            }
            line.ask(api::RemoveImageRequest {
                image: Some(spec(&image.id)),
            })
            .await?;
            tracing::info!(image = %image.id, names = ?image.repo_tags, "image removed: nothing uses it");
            freed += image.size;
        }
        Ok(freed)
    }

    fn is_recent(&self, id: &str) -> bool {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.contains_key(id)
    }

    fn forget_long_ago(&self) {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.retain(|_, when| when.elapsed() < RECENTLY);
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

/// Pulls an image with one login after the other, or with none if there are none.
async fn pull(line: &Line, image: &str, name: &str, logins: &[RegistryLogin]) -> Result<String> {
    let anonymous = logins.is_empty().then_some(None);
    let logins = logins.iter().map(|login| Some(auth(login)));
    let mut last = None;
    for auth in anonymous.into_iter().chain(logins) {
        let request = api::PullImageRequest {
            image: Some(spec(name)),
            auth,
        };
        // It takes as long as it takes.
        match line.ask_plainly(request).await {
            Ok(answer) => return Ok(answer.image_ref),
            Err(status) => last = Some(status),
        }
    }
    let status = last.expect("somebody has tried");
    match line.sort(&status) {
        silent @ Error::Unavailable(_) if status.source().is_some() => Err(silent),
        _ => Err(refusal(image, &status)),
    }
}

fn auth(login: &RegistryLogin) -> api::AuthConfig {
    api::AuthConfig {
        username: login.username.clone(),
        password: login.password.clone(),
        // They were chosen for this image. containerd would take a registry without scheme for another one, and
        // leave them unused.
        server_address: String::new(),
        identity_token: login.identity_token.clone(),
    }
}

/// Why an image was not pulled, sorted as upstream does.
fn refusal(image: &str, status: &Status) -> Error {
    let kinds = [
        ("RegistryUnavailable", "the registry is unavailable"),
        (
            "SignatureValidationFailed",
            "the signature validation failed",
        ),
    ];
    for (reason, why) in kinds {
        if let Some(more) = status.message().strip_prefix(reason) {
            let message = format!("image pull failed for {image} because {why}{more}");
            return Error::Image { reason, message };
        }
    }
    let (code, message) = (status.code(), status.message());
    Error::Image {
        reason: "ErrImagePull",
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
        } = refusal("a:1", status)
        else {
            panic!("not about an image");
        };
        assert_eq!((found, text.as_str()), (reason, message));
    }

    #[test]
    fn refusals_are_told_in_upstreams_words() {
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
