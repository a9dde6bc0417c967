//! Whether the watches run.

use std::collections::BTreeMap;

use kennel_client::feed::Link;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Connection {
    /// Every watch runs.
    pub connected: bool,
    /// Every list was complete at least once.
    pub synced: bool,
    /// Why not every watch runs.
    pub why: Option<String>,
    /// What may not be watched, and what goes on without.
    pub refused: Vec<&'static str>,
}

impl Connection {
    pub(super) fn of(links: &BTreeMap<&'static str, Link>) -> Self {
        let down = links.iter().find_map(|(what, link)| match link {
            Link::Down(why) => Some(format!("{what}: {why}")),
            _ => None,
        });
        let refused = links.iter().filter(|(_, link)| **link == Link::Refused);
        let runs = |link: &Link| matches!(link, Link::Up | Link::Refused);
        let connected = !links.is_empty() && links.values().all(runs);
        Self {
            connected,
            synced: connected,
            why: down,
            refused: refused.map(|(what, _)| *what).collect(),
        }
    }
}
