//! The server's own counters, read from `/metrics`.

use anyhow::{Context as _, Result};

use super::client::Http1;

/// Counter values, or the difference of two readings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Counters {
    pub(super) writes: u64,
    pub(super) batches: u64,
    pub(super) syncs: u64,
    pub(super) revision: u64,
    pub(super) decisions: u64,
    pub(super) deciding_seconds: f64,
}

impl Counters {
    pub(super) async fn read(connection: &mut Http1) -> Result<Self> {
        let text = connection.get("/metrics").await?;
        Self::parse(std::str::from_utf8(&text)?)
    }

    fn parse(text: &str) -> Result<Self> {
        let value = |name: &str| {
            let mut pairs = text.lines().filter_map(|line| line.split_once(' '));
            let found = pairs.find(|(key, _)| *key == name);
            found.map(|(_, value)| value.trim())
        };
        let missing = |name: &str| format!("no {name} in /metrics");
        let number = |name: &str| {
            let value = value(name).and_then(|value| value.parse().ok());
            value.with_context(|| missing(name))
        };
        let seconds = |name: &str| {
            let value = value(name).and_then(|value| value.parse().ok());
            value.with_context(|| missing(name))
        };
        Ok(Self {
            writes: number("kennel_store_writes_total")?,
            batches: number("kennel_store_batches_total")?,
            syncs: number("kennel_store_syncs_total")?,
            revision: number("kennel_store_revision")?,
            decisions: number("kennel_authorization_decisions_total")?,
            deciding_seconds: seconds("kennel_authorization_duration_seconds_total")?,
        })
    }

    /// The increase since `earlier`.
    pub(super) fn since(self, earlier: Self) -> Self {
        Self {
            writes: self.writes - earlier.writes,
            batches: self.batches - earlier.batches,
            syncs: self.syncs - earlier.syncs,
            revision: self.revision - earlier.revision,
            decisions: self.decisions - earlier.decisions,
            deciding_seconds: self.deciding_seconds - earlier.deciding_seconds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_found_between_comments() {
        let text = "# HELP x\nkennel_store_writes_total 7\nkennel_store_batches_total 2\n\
                    kennel_store_syncs_total 3\nkennel_store_revision 9\n\
                    kennel_authorization_decisions_total 4\n\
                    kennel_authorization_duration_seconds_total 0.000000005\n";
        let counters = Counters::parse(text).unwrap();
        assert_eq!(
            (counters.writes, counters.batches, counters.syncs),
            (7, 2, 3)
        );
        assert!(Counters::parse("kennel_store_writes_total 7\n").is_err());
    }
}
