//! Pulls the images of containers and records upstream's events about it.

use std::time::Duration;

use kennel_core::pod::tracker::StartFailure;
use kennel_types::pod::WaitingReason;
use tokio::time::Instant;

use super::start::{Start, StartError, with_timeout};
use crate::runtime::{Error, Image, PullPolicy};

const PULL_TIMEOUT: Duration = Duration::from_mins(30);

impl Start {
    /// Makes sure that a container's image is on this machine.
    pub(super) async fn image(&self, name: &str) -> Result<Image, StartError> {
        let raw = self.pod.raw_container(name);
        let container = self.pod.spec.container(name);
        let Some((raw, container)) = raw.zip(container) else {
            return Err(StartError::Terminating);
        };
        let (image, policy) = (container.image.as_str(), policy(raw));
        let runtime = self.runtime();
        if policy == PullPolicy::IfNotPresent {
            let present = runtime.image(image, PullPolicy::Never, &[]);
            let present = with_timeout(PULL_TIMEOUT, present);
            if let Ok(present) = self.unless_terminating(present).await? {
                self.record_pulled(format!(
                    "Container image \"{image}\" already present on machine and can be accessed by the pod"
                ));
                return Ok(present);
            }
        }
        let _permit = self.acquire(&self.shared.pulls).await?;
        let inputs = &self.shared.dependencies.inputs;
        let logins = inputs.registry_logins(&self.pod, image);
        let logins = self.unless_terminating(logins).await?;
        if policy != PullPolicy::Never && runtime.about().images {
            self.events
                .normal("Pulling", format!("Pulling image \"{image}\""));
        }
        let started = Instant::now();
        let pulled = runtime.image(image, policy, &logins);
        let pulled = with_timeout(PULL_TIMEOUT, pulled);
        match self.unless_terminating(pulled).await? {
            Ok(pulled) => {
                let took = started.elapsed().as_millis();
                self.record_pulled(format!(
                    "Successfully pulled image \"{image}\" in {took}ms ({took}ms including waiting). Image \
                     size: {} bytes.",
                    pulled.size
                ));
                Ok(pulled)
            }
            Err(error) => Err(self.pull_failed(image, &error)),
        }
    }

    fn record_pulled(&self, message: String) {
        if self.runtime().about().images {
            self.events.normal("Pulled", message);
        }
    }

    fn pull_failed(&self, image: &str, error: &Error) -> StartError {
        let reason = match error {
            Error::Unavailable(_) => return StartError::RuntimeUnavailable,
            Error::Image { reason, .. } => *reason,
            Error::Refused(_) => WaitingReason::CreateContainerError,
            _ => WaitingReason::ErrImagePull,
        };
        let backoff_reason = match reason {
            WaitingReason::ErrImagePull => WaitingReason::ImagePullBackOff,
            _ => reason,
        };
        let message = match reason {
            WaitingReason::ErrImageNeverPull => {
                let message =
                    format!("Container image \"{image}\" is not present with pull policy of Never");
                self.events.warn("ErrImageNeverPull", message.clone());
                message
            }
            WaitingReason::ErrImagePull => {
                let message = format!("Failed to pull image \"{image}\": {error}");
                self.events.warn("Failed", message);
                error.to_string()
            }
            _ => error.to_string(),
        };
        self.events.warn("Failed", format!("Error: {reason}"));
        StartError::Failed(StartFailure {
            reason,
            backoff_reason,
            message,
        })
    }
}

/// The API server and the reader of manifests have applied the default that depends on the image's tag.
fn policy(container: &serde_json::Value) -> PullPolicy {
    match container["imagePullPolicy"].as_str() {
        Some("Always") => PullPolicy::Always,
        Some("Never") => PullPolicy::Never,
        _ => PullPolicy::IfNotPresent,
    }
}
