//! Looking in: requests that this server does not answer itself but takes to a node's agent, or to a pod.
//!
//! ```text
//!  pods/log ───────────────────▶ GET /containerLogs/…     a stream of text
//!  pods/exec, attach, portforward ─▶ /exec/… and so on     bytes both ways, unread: SPDY or a web socket
//!  nodes/proxy, pods/proxy ────▶ any path                 one request, one answer
//! ```
//!
//! What is asked is checked here, against the pod and the node as they are stored; what is said between the
//! two ends is no concern of this room. No agent is ever trusted with its clients' credentials.

mod dial;
mod location;
mod log;
mod pass;
mod proxy;
mod stream;

use http::{Method, Response, Uri};

use kennel_types::Verb;

use super::{Call, check_name, name_in, served};
use crate::api::Api;
use crate::http::body::Body;
use crate::http::switch::Switch;
use crate::request::path::{self, Place, Route};
use crate::status::Result;

pub use dial::Agents;

/// A request that leads out of this server.
pub(crate) struct Visit<'a> {
    pub(crate) api: &'a Api,
    pub(crate) call: &'a Call,
    pub(crate) place: &'a Place,
    pub(crate) verb: Verb<'a>,
    pub(crate) method: &'a Method,
    pub(crate) uri: &'a Uri,
}

impl<'a> Visit<'a> {
    /// The pod's or node's name, as the path has it.
    fn name(&self) -> Result<&'a str> {
        name_in(self.place)
    }

    fn namespace(&self) -> &'a str {
        self.place.namespace.as_deref().unwrap_or_default()
    }
}

/// Whether a place is one that leads out of this server.
pub(crate) fn leads_out(place: &Place) -> bool {
    let subresource = place.subresource.as_deref().unwrap_or_default();
    match (place.row.group, place.row.plural) {
        ("", "pods") => subresource == "log" || subresource == "proxy" || is_stream(subresource),
        ("", "nodes") => subresource == "proxy",
        _ => false,
    }
}

/// Whether a route leads out of this server, where its request may be busy for hours.
pub(crate) fn concerns(route: &Route) -> bool {
    matches!(route, Route::Objects(place) if leads_out(place))
}

/// Whether a request for this route stops speaking HTTP.
pub(crate) fn leaves_http(route: &Route) -> bool {
    let Route::Objects(place) = route else {
        return false;
    };
    leads_out(place) && place.subresource.as_deref().is_some_and(is_stream)
}

/// Whether a path is one of those. Most can be told apart by their ends.
pub(crate) fn opens_stream(path: &str) -> bool {
    let last = path.trim_end_matches('/').rsplit('/').next();
    last.is_some_and(is_stream) && path::parse(path).as_ref().is_some_and(leaves_http)
}

fn is_stream(subresource: &str) -> bool {
    matches!(subresource, "exec" | "attach" | "portforward")
}

/// Takes a request to where it leads.
pub(crate) async fn serve(visit: Visit<'_>, switch: Option<Box<Switch>>) -> Result<Response<Body>> {
    check_name(visit.place)?;
    let subresource = visit.place.subresource.as_deref().unwrap_or_default();
    served(visit.place.row, subresource, visit.verb)?;
    match subresource {
        "log" => log::serve(&visit).await,
        "proxy" => proxy::serve(&visit).await,
        _ => stream::serve(&visit, subresource, switch).await,
    }
}
