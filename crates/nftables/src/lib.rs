//! nftables over netlink, without the program `nft`: tables, chains, rules, sets, and transactions that take effect together
//! or not at all. Knows nothing of services and pods.

pub mod monitor;
pub mod netlink;
pub mod nft;
