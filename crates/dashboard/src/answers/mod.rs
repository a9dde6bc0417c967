//! What one request asks for: read when asked, never kept.

mod diff;
mod lines;
mod logs;
mod node;
mod why;

use kennel_core::rollout::history::History;
use kennel_inspect::{Error, history, snapshot};
use kube::Client;

pub(crate) use self::diff::diff;
pub(crate) use self::logs::logs;
pub(crate) use self::node::node;
pub(crate) use self::why::why;
use crate::app::PageSettings;
use crate::failure::Failure;
use crate::protocol::Session;
use crate::route::SetName;

pub(crate) fn session(settings: &PageSettings) -> Session {
    Session {
        version: settings.version.clone(),
        server: settings.server.clone(),
        context: settings.context.clone(),
        allow_changes: settings.allow_changes,
        now: snapshot::now(),
    }
}

pub(crate) async fn history(client: &Client, set: &SetName) -> Result<History, Failure> {
    Ok(history::read(client, &set.namespace, &set.name)
        .await?
        .history())
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match &error {
            Error::NotFound(_) | Error::NoSuchNode(_) => Self::not_found(error.to_string()),
            Error::Api { what, source } => {
                let mut failure = Self::from(source);
                failure.message = format!("{what}: {}", failure.message);
                failure
            }
            Error::Decode(_) | Error::Selector(_) => Self::upstream(error.to_string()),
        }
    }
}
