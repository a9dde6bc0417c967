//! Applies user, groups, capabilities and no-new-privileges. The last step before exec, because it cannot be undone.

use rustix::fs::{Gid, Uid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs, set_thread_groups,
    set_thread_res_gid, set_thread_res_uid,
};

use super::super::capability;
use super::super::spec::Spec;
use super::{Result, failed, passwd};

pub(super) fn apply(spec: &Spec) -> Result {
    if spec.own_root {
        chown_stdio(spec);
        set_user(spec)?;
    }
    if spec.no_new_privileges {
        set_no_new_privs(true).map_err(failed("noNewPrivileges"))?;
    }
    Ok(())
}

/// Programs that reopen `/dev/stdout` have to own it.
fn chown_stdio(spec: &Spec) {
    let Some(user) = spec.user else { return };
    let user = Some(Uid::from_raw(user));
    for stream in [
        rustix::stdio::stdin(),
        rustix::stdio::stdout(),
        rustix::stdio::stderr(),
    ] {
        if is_pipe_or_terminal(stream) {
            let _closed = rustix::fs::fchown(stream, user, None);
        }
    }
}

/// Not `/dev/null`, which other processes use.
fn is_pipe_or_terminal(stream: rustix::fd::BorrowedFd<'_>) -> bool {
    rustix::fs::fstat(stream).is_ok_and(|stat| {
        let kind = rustix::fs::FileType::from_raw_mode(stat.st_mode);
        kind == rustix::fs::FileType::Fifo || rustix::termios::isatty(stream)
    })
}

fn set_user(spec: &Spec) -> Result {
    if let Some(allowed) = &spec.capabilities {
        for dropped in capability::all().filter(|number| !allowed.contains(number)) {
            // Kernels refuse unknown capabilities.
            let _unknown = remove_capability_from_bounding_set(capability_set([dropped]));
        }
    }
    let known = passwd::find(spec.user.unwrap_or(0));
    let first = spec
        .group
        .or_else(|| Some(known.as_ref()?.group))
        .unwrap_or(0);
    let mut groups = vec![first];
    groups.extend(&spec.groups);
    groups.extend(known.iter().flat_map(passwd::groups));
    groups.dedup();
    let groups: Vec<Gid> = groups.into_iter().map(Gid::from_raw).collect();
    set_thread_groups(&groups).map_err(failed("groups"))?;
    let group = Gid::from_raw(first);
    set_thread_res_gid(group, group, group).map_err(failed("runAsGroup"))?;
    let user = Uid::from_raw(spec.user.unwrap_or(0));
    set_thread_res_uid(user, user, user).map_err(failed("runAsUser"))?;
    let _none = clear_ambient_capability_set();
    if let Some(allowed) = &spec.capabilities {
        set_capability_sets(allowed, user.is_root()).map_err(failed("capabilities"))?;
    }
    Ok(())
}

/// Users other than root have none: setting the user id has cleared them.
fn set_capability_sets(allowed: &[u32], root: bool) -> rustix::io::Result<()> {
    let now = rustix::thread::capabilities(None)?;
    let allowed = capability_set(allowed.iter().copied()) & now.permitted;
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

fn capability_set(numbers: impl IntoIterator<Item = u32>) -> CapabilitySet {
    let bits = numbers
        .into_iter()
        .fold(0, |bits, number| bits | (1 << number));
    CapabilitySet::from_bits_retain(bits)
}
