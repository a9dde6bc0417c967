//! Linux capabilities of containers, by name and number.

use rustix::thread::CapabilitySet;

use crate::runtime::Capabilities;

/// The default capabilities of container runtimes.
const DEFAULT: [&str; 14] = [
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

/// Whether this is a capability or `ALL`.
pub(super) fn is_known(name: &str) -> bool {
    name.eq_ignore_ascii_case("ALL") || CapabilitySet::from_name(&normalized(name)).is_some()
}

/// Creates device nodes: a default only where cgroups decide which of them can be used.
const MKNOD: &str = "MKNOD";

/// The defaults without `drop` and with `add`. An added capability survives `drop: [ALL]`; a dropped one survives
/// `add: [ALL]`.
pub(super) fn allowed(changes: &Capabilities, has_device_rules: bool) -> Vec<u32> {
    let names = |list: &[String], name: &str| list.iter().any(|listed| normalized(listed) == name);
    let add_all = names(&changes.add, "ALL");
    let drop_all = names(&changes.drop, "ALL");
    let allowed = CapabilitySet::all().iter_names().filter(|(name, _)| {
        let usual = DEFAULT.contains(name) && (has_device_rules || *name != MKNOD);
        let default = add_all || (usual && !drop_all);
        !names(&changes.drop, name) && (default || names(&changes.add, name))
    });
    allowed.map(|(_, set)| number(set)).collect()
}

/// The numbers of all capabilities.
pub(super) fn all() -> impl Iterator<Item = u32> {
    let named = CapabilitySet::all().iter_names();
    named.map(|(_, set)| number(set))
}

/// The number of the only capability in a set.
fn number(set: CapabilitySet) -> u32 {
    set.bits().trailing_zeros()
}

fn normalized(name: &str) -> String {
    let name = name.to_ascii_uppercase();
    name.strip_prefix("CAP_").unwrap_or(&name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_added_and_dropped() {
        let check = |add: &[&str], drop: &[&str], expected: &[u32]| {
            let list = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
            let changes = Capabilities {
                add: list(add),
                drop: list(drop),
            };
            let found = allowed(&changes, true);
            assert_eq!(found, expected, "{add:?} {drop:?}");
            let mut without = allowed(&changes, false);
            let asked = add.iter().any(|name| ["ALL", "MKNOD"].contains(name));
            if expected.contains(&27) && !asked {
                without.push(27);
                without.sort_unstable();
            }
            assert_eq!(without, expected, "without device rules: {add:?} {drop:?}");
        };
        let default = [0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 27, 29, 31];
        check(&[], &[], &default);
        check(&["MKNOD"], &[], &default);
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
