//! Gets the images of containers, and says so.

use std::time::Duration;

use kennel_core::pod::memory::Trouble;
use tokio::time::Instant;

use super::act::{Hindrance, IMAGE_BACK_OFF, Start, Started, bounded};
use crate::runtime::{Error, Image, PullPolicy};

/// How long getting an image may take.
const PULL: Duration = Duration::from_mins(30);

impl Start {
    /// Sees to it that a container's image is there.
    pub(super) async fn image(&self, name: &str) -> Started<Image> {
        let raw = self.pod.raw_container(name);
        let container = self.pod.spec.container(name);
        let Some((raw, container)) = raw.zip(container) else {
            return Err(Hindrance::Ended);
        };
        let (image, policy) = (container.image.as_str(), policy(raw));
        let runtime = self.runtime();
        if policy == PullPolicy::IfNotPresent {
            let there = runtime.image(image, PullPolicy::Never, &[]);
            if let Ok(there) = self.unless_ended(bounded(PULL, there)).await? {
                self.say_of_image(format!(
                    "Container image \"{image}\" already present on machine and can be accessed by the pod"
                ));
                return Ok(there);
            }
        }
        let _turn = self.turn(&self.shared.pulls).await?;
        let logins = self.shared.parts.supplies.logins(&self.pod, image);
        let logins = self.unless_ended(logins).await?;
        if policy != PullPolicy::Never && runtime.about().images {
            self.voice
                .say("Pulling", format!("Pulling image \"{image}\""));
        }
        let began = Instant::now();
        let pulled = runtime.image(image, policy, &logins);
        match self.unless_ended(bounded(PULL, pulled)).await? {
            Ok(got) => {
                let took = began.elapsed().as_millis();
                self.say_of_image(format!(
                    "Successfully pulled image \"{image}\" in {took}ms ({took}ms including waiting). Image \
                     size: {} bytes.",
                    got.size
                ));
                Ok(got)
            }
            Err(error) => Err(self.no_image(image, &error)),
        }
    }

    fn say_of_image(&self, message: String) {
        if self.runtime().about().images {
            self.voice.say("Pulled", message);
        }
    }

    fn no_image(&self, image: &str, error: &Error) -> Hindrance {
        let reason = match error {
            Error::Unavailable(_) => return Hindrance::Away,
            Error::Image { reason, .. } => reason,
            Error::Refused(_) => "CreateContainerError",
            _ => "ErrImagePull",
        };
        let waiting = if reason == "ErrImagePull" {
            IMAGE_BACK_OFF
        } else {
            reason
        };
        let message = match reason {
            "ErrImageNeverPull" => {
                let message =
                    format!("Container image \"{image}\" is not present with pull policy of Never");
                self.voice.warn("ErrImageNeverPull", message.clone());
                message
            }
            "ErrImagePull" => {
                let message = format!("Failed to pull image \"{image}\": {error}");
                self.voice.warn("Failed", message);
                error.to_string()
            }
            _ => error.to_string(),
        };
        self.voice.warn("Failed", format!("Error: {reason}"));
        Hindrance::Trouble(Trouble {
            reason,
            waiting,
            message,
        })
    }
}

/// The API has set it, and so has whoever reads files.
fn policy(container: &serde_json::Value) -> PullPolicy {
    match container["imagePullPolicy"].as_str() {
        Some("Always") => PullPolicy::Always,
        Some("Never") => PullPolicy::Never,
        _ => PullPolicy::IfNotPresent,
    }
}
