//! How nodes are told from other users.

use crate::request::User;

/// What the names of nodes' users begin with.
const PREFIX: &str = "system:node:";
/// The group of all nodes.
const NODES: &str = "system:nodes";

/// The name of the node that this user is; both the user's name and the group must say so. Empty where
/// the user's name ends too early: somebody who is no particular node and must be refused as such.
pub(crate) fn node_of(user: &User) -> Option<&str> {
    let name = user.name.strip_prefix(PREFIX)?;
    user.is_in(NODES).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_and_group_must_both_say_so() {
        let check = |name: &str, group: &str, expected| {
            let user = User::authenticated(name, vec![group.to_owned()]);
            assert_eq!(node_of(&user), expected, "{name} {group}");
        };
        check("system:node:a", "system:nodes", Some("a"));
        check("system:node:", "system:nodes", Some(""));
        check("system:node:a", "system:masters", None);
        check("a", "system:nodes", None);
    }
}
