//! The verbs that write the annotations of a command (R6) to a DaemonSet.

use std::process::ExitCode;

use kennel_core::rollout::request::{RolloutCommand, request};
use kennel_inspect::{command, snapshot};

use super::options::Target;
use super::{OK, REFUSED};
use crate::inspect::{connect, print};
use crate::logging;

pub(super) async fn run(target: &Target, command: &RolloutCommand) -> anyhow::Result<ExitCode> {
    let (client, namespace) = connect(&target.cluster).await?;
    let set = snapshot::daemon_set(&client, &namespace, &target.daemon_set.0).await?;
    let mut unread = Vec::new();
    let snapshot = snapshot::read_basics(&client, set, &mut unread).await?;
    let set = &snapshot.daemon_set;
    match request(&snapshot::outline(&snapshot), command) {
        Ok(request) => {
            command::write(&client, set, &request).await?;
            print(&format!("daemonset/{} {}\n", set.name, request.effect))?;
            Ok(OK.into())
        }
        Err(refusal) => {
            for note in unread {
                tracing::warn!("{note}");
            }
            logging::print_error(&refusal.into());
            Ok(REFUSED.into())
        }
    }
}
