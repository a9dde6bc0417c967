//! Our table in the kernel: writes plans to it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use kennel_core::services::{Destination, Route, ServiceName, ServiceTable};

use crate::conntrack;
use crate::difference::Difference;
use crate::monitor::{self, Monitor};
use crate::netlink::{Failure, Socket};
use crate::nft::{
    Change, Data, Element, Transaction, element_messages, elements_in, table_message,
};
use crate::plan::{Endpoint, Plan, backend};
use crate::ruleset::{self, TABLE};

/// Why the kernel does not have the rules.
#[derive(Debug, thiserror::Error)]
#[error("cannot write nftables rules: {0}{hint}", hint = hint(.0))]
pub struct KernelError(#[from] Failure);

fn hint(failure: &Failure) -> &'static str {
    use rustix::io::Errno;
    let (Failure::Refused(error) | Failure::Socket(error)) = failure else {
        return "";
    };
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::PERM | Errno::ACCESS) => "; it takes the capability NET_ADMIN, or --proxy=none",
        // The last is the answer of a kernel without any netfilter.
        Some(Errno::NOENT | Errno::OPNOTSUPP | Errno::PROTONOSUPPORT) => {
            "; the kernel may lack modules: it takes Linux 5.13 with nf_tables, nft_nat, nft_masq, nft_numgen, nft_reject, \
             nft_fib_ipv4 and nf_conntrack"
        }
        _ => "",
    }
}

/// How often the whole table is written in a row while other programs change other tables.
const WRITES_MAX: u32 = 3;

/// Our table, as it is and as it is known.
#[derive(Debug)]
pub(crate) struct Kernel {
    socket: Socket,
    plan: Plan,
    /// The table has what the plan says.
    is_current: bool,
}

impl Kernel {
    /// For the network namespace of this thread.
    pub(crate) fn open() -> Result<Self, KernelError> {
        Ok(Self {
            socket: Socket::open(0)?,
            plan: Plan::default(),
            is_current: false,
        })
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Our table was changed by others, or a change of ours failed: [`Self::put`] is to be called with all services.
    pub(crate) fn forget(&mut self) {
        self.is_current = false;
    }

    pub(crate) fn is_current(&self) -> bool {
        self.is_current
    }

    /// Routes services as `routes` says: those that have changed, or all of them unless the table is current. One
    /// transaction. Returns what has changed.
    pub(crate) fn put(
        &mut self,
        services: BTreeSet<ServiceName>,
        routes: impl Fn(&ServiceName) -> Vec<Route>,
    ) -> Result<Difference, KernelError> {
        let is_new = !self.is_current;
        if is_new {
            self.plan = Plan::default();
        }
        let mut difference = Difference::default();
        let mut left = services;
        while let Some(service) = left.pop_first() {
            let routes = routes(&service);
            self.plan.put(&service, &routes, &mut difference, &mut left);
        }
        if difference.is_empty() && !is_new {
            return Ok(difference);
        }
        // The plan is ahead of the table until the kernel has committed.
        self.is_current = false;
        let forgotten = self.forgotten(&difference)?;
        let kept = if is_new {
            self.kept(&difference)?
        } else {
            Vec::new()
        };
        let mut transaction = Transaction::new(TABLE, self.socket.request());
        if is_new {
            ruleset::replace(&mut transaction);
        }
        difference.write(&mut transaction, &forgotten);
        for (map, clients) in &kept {
            transaction.elements(Change::Add, map, clients);
        }
        self.socket.execute(&transaction.finish())?;
        // Clients that came meanwhile.
        let late = self.forgotten(&difference)?;
        if late.iter().any(|(_, elements)| !elements.is_empty()) {
            let mut transaction = Transaction::new(TABLE, self.socket.request());
            Difference::default().write(&mut transaction, &late);
            self.socket.execute(&transaction.finish())?;
        }
        self.is_current = true;
        Ok(difference)
    }

    /// Replaces the whole table, and from then on watches it for changes by others.
    pub(crate) fn write_whole(&mut self, services: &ServiceTable) -> Result<Monitor, KernelError> {
        let mut tries = 0;
        loop {
            let before = monitor::generation(&mut self.socket)?;
            self.is_current = false;
            self.put(services.names().cloned().collect(), |name| {
                services.routes(name)
            })?;
            // Only now: our own changes would overflow its queue.
            let monitor = Monitor::open(self.socket.port(), TABLE)?;
            let after = monitor::generation(&mut self.socket)?;
            tries += 1;
            if after == before.wrapping_add(1) || tries == WRITES_MAX {
                return Ok(monitor);
            }
            // Another program has changed something meanwhile: it may have been our table.
        }
    }

    /// Deletes UDP connections to other endpoints than these, and returns how many.
    pub(crate) fn clean_connections(
        &mut self,
        destinations: impl Iterator<Item = (Destination, BTreeSet<Endpoint>)>,
    ) -> Result<usize, KernelError> {
        Ok(conntrack::clean(&mut self.socket, destinations)?)
    }

    /// The clients of an earlier table, by the names of affinity maps of the new one: those whose endpoint is still there, for the
    /// rest of their timeout. Clients that come between this and the transaction may get another endpoint.
    fn kept(&mut self, difference: &Difference) -> Result<Vec<(String, Vec<Element>)>, Failure> {
        let mut kept = Vec::new();
        for (map, endpoints) in difference.new_maps() {
            let endpoints: Vec<Data> = endpoints
                .iter()
                .map(|one| Data::Value(backend(*one)))
                .collect();
            // By client: what changes during a dump may be in it twice.
            let mut clients = BTreeMap::new();
            let request = element_messages(self.socket.request(), TABLE, &map);
            let read = self.socket.dump(&request, |message| {
                let stays = elements_in(message).filter(|one| {
                    let has_time = one.timeout.is_some_and(|(_, left)| left > 0);
                    has_time && is_client(one) && endpoints.contains(&one.data)
                });
                clients.extend(stays.map(|one| (one.key, one)));
            });
            match read {
                // The table is new, or the service is, or had no session affinity.
                Err(Failure::Refused(error)) if error.kind() == io::ErrorKind::NotFound => {}
                read => read?,
            }
            if !clients.is_empty() {
                kept.push((map, clients.into_values().collect()));
            }
        }
        Ok(kept)
    }

    /// The elements of affinity maps that keep clients with endpoints that are gone.
    fn forgotten(
        &mut self,
        difference: &Difference,
    ) -> Result<Vec<(String, Vec<Element>)>, Failure> {
        let mut forgotten = Vec::new();
        for (map, gone) in difference.outdated_maps() {
            let gone: Vec<Data> = gone
                .iter()
                .map(|one: &Endpoint| Data::Value(backend(*one)))
                .collect();
            let mut elements = Vec::new();
            let request = element_messages(self.socket.request(), TABLE, &map);
            self.socket.dump(&request, |message| {
                let outdated = elements_in(message).filter(|one| gone.contains(&one.data));
                elements.extend(outdated.map(|one| Element::new(one.key, Data::None)));
            })?;
            forgotten.push((map, elements));
        }
        Ok(forgotten)
    }
}

/// Whether the key is an IPv4 address.
fn is_client(element: &Element) -> bool {
    element.key.bytes().len() == 4
}

/// Removes our table from the network namespace of this thread, if it exists.
pub fn remove() -> Result<(), KernelError> {
    let mut socket = Socket::open(0)?;
    let mut transaction = Transaction::new(TABLE, socket.request());
    ruleset::remove(&mut transaction);
    Ok(socket.execute(&transaction.finish())?)
}

/// Whether our table exists in the network namespace of this thread.
pub fn has_table() -> Result<bool, KernelError> {
    let mut socket = Socket::open(0)?;
    match socket.dump(&table_message(socket.request(), TABLE), |_| {}) {
        Ok(()) => Ok(true),
        Err(Failure::Refused(error)) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn refusals_say_what_to_do() {
        let check = |errno: Errno, expected: &str| {
            for of in [Failure::Refused, Failure::Socket] {
                let error = io::Error::from_raw_os_error(errno.raw_os_error());
                let said = KernelError(of(error)).to_string();
                assert!(said.starts_with("cannot write nftables rules: "), "{said}");
                let (_, hint) = said.split_once("; ").unwrap_or((&said, ""));
                assert!(hint.starts_with(expected), "{errno:?}: {said}");
                assert_eq!(hint.is_empty(), expected.is_empty(), "{errno:?}: {said}");
            }
        };
        let (rights, modules) = (
            "it takes the capability NET_ADMIN",
            "the kernel may lack modules",
        );
        check(Errno::PERM, rights);
        check(Errno::ACCESS, rights);
        check(Errno::NOENT, modules);
        check(Errno::OPNOTSUPP, modules);
        check(Errno::PROTONOSUPPORT, modules);
        check(Errno::INVAL, "");
        let said = KernelError(Failure::NoAnswer).to_string();
        assert!(!said.contains(';'), "{said}");
    }
}
