//! See `kennel_testkit::fuzz::dns`: this only hands inputs over.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| kennel_testkit::fuzz::dns(input));
