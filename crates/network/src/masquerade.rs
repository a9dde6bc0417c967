//! Masquerading: packets of pods that leave the cluster get the node's address. A table of our own, which holds no others' rules.
//!
//! ```text
//!   to VXLAN, from no pod                         masqueraded: reverse-path filters of the other end want it
//!   from a pod to a pod, to multicast             unchanged
//!   from a pod to a node with a direct route      unchanged
//!   from a pod to anywhere else                   masqueraded
//! ```

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use kennel_core::cidr::Cidr;
use kennel_nftables::monitor::Monitor;
use kennel_nftables::netlink::{Failure, Message, Socket};
use kennel_nftables::nft::{
    BaseChain, Change, Data, Element, Expression, Hook, MapData, Register, SetKind, Transaction,
    Words, chain_in, chain_messages,
};
use rustix::io::Errno;

use crate::Error;

/// The table, of the family `ip`.
pub const TABLE: &str = "kennel-network";
const CHAIN: &str = "postrouting";
/// Nodes that pods reach with their own address.
const DIRECT: &str = "direct-nodes";
/// `ipv4_addr`, as `nft` numbers types.
const ADDRESS_TYPE: u32 = 7;
const MULTICAST: (u32, u32) = (0xf000_0000, 0xe000_0000);

/// What the rules depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    pub cluster: Cidr,
    /// The range of this node's pods.
    pub pods: Cidr,
    /// The index of the VXLAN device.
    pub vxlan: Option<u32>,
}

/// The table as it was written, and who notices if others change it.
#[derive(Debug, Default)]
pub struct Masquerade {
    written: Option<(Rules, BTreeSet<Ipv4Addr>)>,
    kernel: Option<(Socket, Monitor)>,
}

impl Masquerade {
    /// Writes what differs from the last time. The first time, with other rules, and after changes by others, replaces the whole
    /// table at once.
    pub fn apply(&mut self, rules: &Rules, direct: &BTreeSet<Ipv4Addr>) -> Result<(), Error> {
        let (socket, _) = match &mut self.kernel {
            Some(kernel) => kernel,
            none => none.insert(open_monitored()?),
        };
        let mut transaction = Transaction::new(TABLE, socket.request());
        match &self.written {
            Some((written, before)) if written == rules => {
                let added = direct.difference(before);
                let gone = before.difference(direct);
                transaction.elements(Change::Delete, DIRECT, &elements(gone));
                transaction.elements(Change::Add, DIRECT, &elements(added));
            }
            _ => rewrite(&mut transaction, rules, direct),
        }
        if transaction.is_empty() {
            return Ok(());
        }
        self.written = None;
        let done = socket.execute(&transaction.finish());
        done.map_err(|error| failure("set up masquerading", error))?;
        self.written = Some((rules.clone(), direct.clone()));
        Ok(())
    }

    /// Returns when another program has changed the table, which the next [`Self::apply`] writes again.
    pub async fn changed_by_others(&mut self) {
        match &mut self.kernel {
            Some((_, monitor)) => monitor.changed().await,
            None => std::future::pending().await,
        }
        (self.written, self.kernel) = (None, None);
    }
}

/// Deletes the table. Returns whether there was one.
pub fn remove() -> Result<bool, Error> {
    let mut socket = open()?;
    let mut transaction = Transaction::new(TABLE, socket.request());
    transaction.delete_table();
    match socket.execute(&transaction.finish()) {
        Ok(()) => Ok(true),
        Err(Failure::Refused(error))
            if error.raw_os_error() == Some(Errno::NOENT.raw_os_error()) =>
        {
            Ok(false)
        }
        Err(error) => Err(failure("remove masquerading", error)),
    }
}

/// Whether the table is there.
pub fn exists() -> Result<bool, Error> {
    Ok(dump_chains()?.iter().any(|chain| chain.table == TABLE))
}

/// The chains with a hook of all tables.
pub(crate) fn dump_chains() -> Result<Vec<BaseChain>, Error> {
    let mut socket = open()?;
    let mut chains = Vec::new();
    let request = chain_messages(socket.request());
    let read = |message: &Message<'_>| chains.extend(chain_in(message));
    let done = socket.dump(&request, read);
    done.map_err(|error| failure("read the chains of nftables", error))?;
    Ok(chains)
}

pub(crate) fn open() -> Result<Socket, Error> {
    Socket::open(0).map_err(|error| failure("open a netlink socket", error))
}

fn open_monitored() -> Result<(Socket, Monitor), Error> {
    let socket = open()?;
    let monitor = Monitor::open(socket.port(), TABLE);
    let monitor = monitor.map_err(|error| failure("watch nftables", error))?;
    Ok((socket, monitor))
}

pub(crate) fn failure(what: &str, failure: Failure) -> Error {
    let error = match failure {
        Failure::Refused(error) | Failure::Socket(error) => error,
        Failure::NoAnswer => std::io::Error::other("the kernel did not answer"),
    };
    Error::Kernel {
        what: what.to_owned(),
        error,
    }
}

fn elements<'a>(addresses: impl Iterator<Item = &'a Ipv4Addr>) -> Vec<Element> {
    let elements = addresses.map(|one| Element::new(Words::new(&[one.octets()]), Data::None));
    elements.collect()
}

fn rewrite(transaction: &mut Transaction<'_>, rules: &Rules, direct: &BTreeSet<Ipv4Addr>) {
    use Expression::{
        Equals, In, LoadDestination, LoadOutput, LoadSource, Masquerade, NotEquals, Return,
    };
    // So that there is one to delete.
    transaction.add_table();
    transaction.delete_table();
    transaction.add_table();
    transaction.add_set(
        DIRECT,
        SetKind {
            key: ADDRESS_TYPE,
            key_bytes: 4,
            data: MapData::None,
            dynamic: None,
        },
    );
    transaction.elements(Change::Add, DIRECT, &elements(direct.iter()));
    transaction.add_base_chain(CHAIN, Hook::Postrouting);
    let register = Register(0);
    let (cluster, cluster_mask) = block(rules.cluster);
    let (pods, pods_mask) = block(rules.pods);
    let multicast = (MULTICAST.0.to_be(), MULTICAST.1.to_be());
    let mut rule = |expressions: &[Expression]| transaction.add_rule(CHAIN, expressions);
    if let Some(index) = rules.vxlan {
        rule(&[
            LoadOutput(register),
            Equals(register, index),
            LoadSource(register),
            Expression::Bits(register, cluster_mask, 0),
            NotEquals(register, cluster),
            Masquerade,
        ]);
    }
    rule(&[
        LoadSource(register),
        Expression::Bits(register, pods_mask, 0),
        NotEquals(register, pods),
        Return,
    ]);
    for (value, mask) in [(cluster, cluster_mask), (multicast.1, multicast.0)] {
        rule(&[
            LoadDestination(register),
            Expression::Bits(register, mask, 0),
            Equals(register, value),
            Return,
        ]);
    }
    rule(&[
        LoadDestination(register),
        In(DIRECT.to_owned(), register),
        Return,
    ]);
    rule(&[Masquerade]);
}

/// The block's address and mask, as registers hold them.
fn block(cidr: Cidr) -> (u32, u32) {
    let word = |address: Ipv4Addr| u32::from_ne_bytes(address.octets());
    (word(cidr.base()), word(cidr.mask()))
}
