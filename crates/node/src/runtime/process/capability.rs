//! What root may in a container, by name and number.

use crate::runtime::Capabilities;

/// By number, from 0.
const NAMES: [&str; 41] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
    "PERFMON",
    "BPF",
    "CHECKPOINT_RESTORE",
];

/// What containers have everywhere, unless they say otherwise.
const USUAL: [&str; 14] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "FSETID",
    "FOWNER",
    "MKNOD",
    "NET_RAW",
    "SETGID",
    "SETUID",
    "SETFCAP",
    "SETPCAP",
    "NET_BIND_SERVICE",
    "SYS_CHROOT",
    "KILL",
    "AUDIT_WRITE",
];

/// One of these names, or `ALL`?
pub(super) fn is_known(name: &str) -> bool {
    name.eq_ignore_ascii_case("ALL") || number(name).is_some()
}

/// The usual, without what is dropped, and with what is added: whoever adds one means it, also after
/// dropping all; `drop: [X]` wins over `add: [ALL]`.
pub(super) fn allowed(changes: &Capabilities) -> Vec<u32> {
    let names = |list: &[String], name: &str| list.iter().any(|its| plain(its) == name);
    let all_in = names(&changes.add, "ALL");
    let all_out = names(&changes.drop, "ALL");
    let allowed = NAMES.iter().filter(|&&name| {
        let usual = all_in || (USUAL.contains(&name) && !all_out);
        if names(&changes.drop, name) {
            false
        } else {
            usual || names(&changes.add, name)
        }
    });
    allowed.filter_map(|name| number(name)).collect()
}

/// All numbers that are known.
pub(super) fn all() -> impl Iterator<Item = u32> {
    (0..).take(NAMES.len())
}

fn number(name: &str) -> Option<u32> {
    let found = NAMES.iter().position(|known| *known == plain(name))?;
    u32::try_from(found).ok()
}

fn plain(name: &str) -> String {
    let name = name.to_ascii_uppercase();
    name.strip_prefix("CAP_").unwrap_or(&name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_and_dropped() {
        let check = |add: &[&str], drop: &[&str], expected: &[u32]| {
            let list = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
            let found = allowed(&Capabilities {
                add: list(add),
                drop: list(drop),
            });
            assert_eq!(found, expected, "{add:?} {drop:?}");
        };
        let usual = [0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 27, 29, 31];
        check(&[], &[], &usual);
        check(&[], &["ALL"], &[]);
        check(&["NET_BIND_SERVICE"], &["ALL"], &[10]);
        check(&["CAP_SYS_TIME"], &["all"], &[25]);
        check(
            &[],
            &["chown", "KILL"],
            &[1, 3, 4, 6, 7, 8, 10, 13, 18, 27, 29, 31],
        );
        let everything: Vec<u32> = all().collect();
        check(&["ALL"], &[], &everything);
        assert_eq!(everything.len(), 41);
    }
}
