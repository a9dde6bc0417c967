//! Home directories and groups of users, from the container's `/etc/passwd` and `/etc/group`.

/// A line of `/etc/passwd`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct User {
    name: String,
    /// The primary group.
    pub(super) group: u32,
    pub(super) home: String,
}

/// The user with this uid.
pub(super) fn find(uid: u32) -> Option<User> {
    in_passwd(&std::fs::read_to_string("/etc/passwd").ok()?, uid)
}

/// The supplementary groups of a user.
pub(super) fn groups(user: &User) -> Vec<u32> {
    in_group(
        &std::fs::read_to_string("/etc/group").unwrap_or_default(),
        &user.name,
    )
}

fn in_passwd(text: &str, uid: u32) -> Option<User> {
    let mut lines = text.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let found =
        lines.find(|fields| fields.get(2).and_then(|field| field.parse().ok()) == Some(uid))?;
    Some(User {
        name: (*found.first()?).to_owned(),
        group: found.get(3)?.parse().ok()?,
        home: (*found.get(5)?).to_owned(),
    })
}

fn in_group(text: &str, name: &str) -> Vec<u32> {
    let lines = text.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let of_user = lines.filter(|fields| {
        fields
            .get(3)
            .is_some_and(|users| users.split(',').any(|its| its == name))
    });
    of_user
        .filter_map(|fields| fields.get(2)?.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_uid() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nbroken\nweb:x:33:34:www:/var/www:/bin/false\n";
        let web = User {
            name: "web".to_owned(),
            group: 34,
            home: "/var/www".to_owned(),
        };
        assert_eq!(in_passwd(passwd, 33), Some(web));
        assert_eq!(in_passwd(passwd, 1), None);
        assert_eq!(
            in_group(
                "adm:x:4:web,log\nx:x:5:webber\nwww:x:34:\nssl:x:7:web\n",
                "web"
            ),
            [4, 7]
        );
    }
}
