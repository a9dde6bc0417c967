//! Bytes on connections: DNS, SPDY, WebSocket.

/// A packet of a DNS client, or of an upstream resolver.
pub fn dns(input: &[u8]) {
    kennel_dns::fuzz::packet(input);
}

/// Frames of SPDY/3.1, and a header block.
pub fn spdy(input: &[u8]) {
    kennel_node::kubelet_api::stream::spdy::fuzz::frames(input);
}

/// What a WebSocket client sends, to the server that relays it and to the node that serves it.
pub fn websocket(input: &[u8]) {
    kennel_server::upgrade::fuzz::frames(input);
    kennel_node::kubelet_api::stream::fuzz::websocket(input);
}
