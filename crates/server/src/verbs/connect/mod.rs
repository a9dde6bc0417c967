//! Subresources that the server forwards to the kubelet API of a node's agent, or to a pod.
//!
//! ```text
//!  pods/log ───────────────────────▶ GET /containerLogs/…   a stream of text
//!  pods/exec, attach, portforward ─▶ /exec/… and so on      an upgraded connection: SPDY or WebSocket
//!  nodes/proxy, pods/proxy ────────▶ any path               one request, one answer
//! ```
//!
//! The server checks the request against the stored pod and node, and relays the rest unread. It never sends
//! the client's credentials to an agent.

mod agent;
mod forward;
pub(super) mod location;
mod log;
mod proxy;
mod stream;

use http::{Method, Response, Uri};
use kennel_types::Verb;

use super::{Call, check_name, name_in, served};
use crate::api::Api;
use crate::registry::Connect;
use crate::request::path::Place;
use crate::response::Body;
use crate::status::Result;
use crate::upgrade::Upgrade;

/// A request to forward.
pub(crate) struct ConnectRequest<'a> {
    pub(crate) api: &'a Api,
    pub(crate) call: &'a Call,
    pub(crate) place: &'a Place,
    pub(crate) verb: Verb<'a>,
    pub(crate) method: &'a Method,
    pub(crate) uri: &'a Uri,
}

impl<'a> ConnectRequest<'a> {
    /// The name of the pod or node in the path.
    fn name(&self) -> Result<&'a str> {
        name_in(self.place)
    }

    fn namespace(&self) -> &'a str {
        self.place.namespace.as_deref().unwrap_or_default()
    }
}

/// Forwards a request.
pub(crate) async fn serve(
    request: ConnectRequest<'_>,
    connect: Connect,
    upgrade: Option<Box<Upgrade>>,
) -> Result<Response<Body>> {
    check_name(request.place)?;
    let subresource = request.place.subresource.as_deref().unwrap_or_default();
    served(request.place.row, subresource, request.verb)?;
    match connect {
        Connect::Log => log::serve(&request).await,
        Connect::NodeProxy => proxy::to_node(&request).await,
        Connect::PodProxy => proxy::to_pod(&request).await,
        Connect::Exec | Connect::Attach | Connect::PortForward => {
            stream::serve(&request, connect, upgrade).await
        }
    }
}
