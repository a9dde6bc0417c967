//! Whom a command runs as, and with which rights. The last thing before it runs: nothing can be undone.

use rustix::fs::{Gid, Uid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs, set_thread_groups,
    set_thread_res_gid, set_thread_res_uid,
};

use super::super::capability;
use super::super::spec::Spec;
use super::users;

/// Applies all of it.
pub(super) fn apply(spec: &Spec) -> Result<(), String> {
    if spec.own_root {
        own_stdio(spec);
        become_user(spec)?;
    }
    if spec.no_new_privileges {
        set_no_new_privs(true).map_err(|error| format!("noNewPrivileges: {error}"))?;
    }
    Ok(())
}

/// Programs open `/dev/stdout` anew, which only its owner may.
fn own_stdio(spec: &Spec) {
    let Some(user) = spec.user else { return };
    let user = Some(Uid::from_raw(user));
    for stream in [
        rustix::stdio::stdin(),
        rustix::stdio::stdout(),
        rustix::stdio::stderr(),
    ] {
        if is_ours(stream) {
            let _closed = rustix::fs::fchown(stream, user, None);
        }
    }
}

/// A pipe or a terminal of its own; `/dev/null` is everybody's.
fn is_ours(stream: rustix::fd::BorrowedFd<'_>) -> bool {
    rustix::fs::fstat(stream).is_ok_and(|stat| {
        let kind = rustix::fs::FileType::from_raw_mode(stat.st_mode);
        kind == rustix::fs::FileType::Fifo || rustix::termios::isatty(stream)
    })
}

fn become_user(spec: &Spec) -> Result<(), String> {
    let told = |what: &'static str| move |error: rustix::io::Errno| format!("{what}: {error}");
    if let Some(allowed) = &spec.capabilities {
        for dropped in capability::all().filter(|number| !allowed.contains(number)) {
            // A kernel that does not know it cannot give it.
            let _unknown = remove_capability_from_bounding_set(set([dropped]));
        }
    }
    let known = users::find(spec.user.unwrap_or(0));
    let first = spec
        .group
        .or_else(|| Some(known.as_ref()?.group))
        .unwrap_or(0);
    let mut groups = vec![first];
    groups.extend(&spec.groups);
    groups.extend(known.iter().flat_map(users::groups));
    groups.dedup();
    let groups: Vec<Gid> = groups.into_iter().map(Gid::from_raw).collect();
    set_thread_groups(&groups).map_err(told("groups"))?;
    let group = Gid::from_raw(first);
    set_thread_res_gid(group, group, group).map_err(told("runAsGroup"))?;
    let user = Uid::from_raw(spec.user.unwrap_or(0));
    set_thread_res_uid(user, user, user).map_err(told("runAsUser"))?;
    let _none = clear_ambient_capability_set();
    if let Some(allowed) = &spec.capabilities {
        narrow(allowed, user.is_root()).map_err(told("capabilities"))?;
    }
    Ok(())
}

/// Who is not root has lost all of it by becoming somebody else.
fn narrow(allowed: &[u32], root: bool) -> rustix::io::Result<()> {
    let now = rustix::thread::capabilities(None)?;
    let allowed = set(allowed.iter().copied()) & now.permitted;
    let kept = if root {
        allowed
    } else {
        CapabilitySet::empty()
    };
    set_capabilities(
        None,
        CapabilitySets {
            effective: kept,
            permitted: kept,
            inheritable: CapabilitySet::empty(),
        },
    )
}

fn set(numbers: impl IntoIterator<Item = u32>) -> CapabilitySet {
    let bits = numbers
        .into_iter()
        .fold(0, |bits, number| bits | (1 << number));
    CapabilitySet::from_bits_retain(bits)
}
