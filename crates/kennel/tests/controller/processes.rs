//! `kennel controller` as a process of its own, beside a cluster that runs none.
