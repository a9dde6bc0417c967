//! Files of every pod: `/etc/hosts`, `/etc/resolv.conf` and the termination message.

pub(super) mod dns;
pub(super) mod hostname;
pub(super) mod hosts;
pub(super) mod termination_message;
