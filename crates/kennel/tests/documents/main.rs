//! The documentation agrees with itself and with the program.

#![expect(
    clippy::unwrap_used,
    reason = "a failed unwrap fails the test that called it"
)]

mod api_reference;
mod architecture;
mod deploy;
mod errors;
mod links;
mod reference;
mod scripts;
mod words;
