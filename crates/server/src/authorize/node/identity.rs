//! Recognises nodes among users.

use crate::request::User;

const PREFIX: &str = "system:node:";
const NODES: &str = "system:nodes";

/// The name of the node if both the user name and the groups say that the user is one. Empty for the user
/// name `system:node:`, which must be denied.
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
