//! A rollout that waits because nodes whose turn it is not use up `maxUnavailable` (R3.3): in words, for reasons,
//! conditions and the command line.

use std::fmt;

use crate::natural;

/// How many nodes are named.
pub(crate) const NAMED: usize = 10;

/// See the [module](self).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetWait {
    /// `maxUnavailable` in nodes.
    pub limit: i64,
    /// The first of the nodes without an available pod, in the natural order of names.
    nodes: Vec<String>,
    total: usize,
}

impl BudgetWait {
    /// `nodes` may be the first [`NAMED`] of `total`.
    pub(crate) fn new<'a>(
        limit: i64,
        nodes: impl IntoIterator<Item = &'a str>,
        total: usize,
    ) -> Self {
        let mut nodes: Vec<String> = nodes.into_iter().map(str::to_owned).collect();
        nodes.sort_by(|a, b| natural::compare(a, b));
        nodes.truncate(NAMED);
        Self {
            limit,
            nodes,
            total,
        }
    }

    /// `n7, n9 and 3 more`.
    pub fn names(&self) -> String {
        let names = self.nodes.join(", ");
        match self.total.saturating_sub(self.nodes.len()) {
            0 => names,
            more => format!("{names} and {more} more"),
        }
    }

    /// `pods on nodes n7, n9 are`.
    pub fn pods(&self) -> String {
        match self.total {
            1 => format!("the pod on node {} is", self.names()),
            _ => format!("pods on nodes {} are", self.names()),
        }
    }
}

impl fmt::Display for BudgetWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limit, .. } = self;
        let pods = self.pods();
        write!(f, "maxUnavailable is {limit} and {pods} not available")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_nodes_are_named_and_the_others_counted() {
        let wait = |total: usize| {
            let names: Vec<String> = (1..=total).rev().map(|n| format!("n{n}")).collect();
            BudgetWait::new(1, names.iter().map(String::as_str), total).to_string()
        };
        let one = "maxUnavailable is 1 and the pod on node n1 is not available";
        assert_eq!(wait(1), one);
        let two = "maxUnavailable is 1 and pods on nodes n1, n2 are not available";
        assert_eq!(wait(2), two);
        let more = "maxUnavailable is 1 and pods on nodes n1, n2, n3, n4, n5, n6, n7, n8, n9, n10 and 2 more are \
                    not available";
        assert_eq!(wait(12), more);
    }
}
