//! The page of errors: what the API refuses requests with, and how the program itself ends.

use std::fmt::Write as _;

use kennel_server::field::Mistake;
use kennel_server::status::reasons;

use super::markdown::cell;

const HEAD: &str = "# Errors

## What the API answers

A request that fails is answered with a `Status`: `code` and `reason` for programs, `message` for people, and `details`.
Codes, reasons and words are upstream's.

| Code | Reason | When |
|---|---|---|
";

const NODES: &str = "
What a node's agent refuses (logs, exec and the like) is passed on with its code and, where upstream does so, in its
words; some of these answers have no reason.
";

const FIELDS: &str = "
## Mistakes in fields

The entries of `details.causes` in an answer with the reason `Invalid`, each with its `field`:

| Reason | The message begins with |
|---|---|
";

const ENDS: &str = "
## How the program ends

| Code | When |
|---|---|
";

/// The program's exit codes.
const CODES: [(u8, &str); 3] = [
    (
        0,
        "It did what it was told; those that run until they are told to stop were told to.",
    ),
    (
        1,
        "It could not; the last line on stderr says why. `kennel why`: some node is not as it should be.",
    ),
    (
        2,
        "It did not understand its command line. `kennel why`: the cluster or the DaemonSet could not be read.",
    ),
];

/// The page.
pub(super) fn page() -> String {
    let mut out = HEAD.to_owned();
    // Writing to a String cannot fail.
    for known in reasons::ALL {
        let when = cell(known.when);
        let _ = writeln!(out, "| {} | `{}` | {when} |", known.code, known.reason);
    }
    out.push_str(NODES);
    out.push_str(FIELDS);
    for mistake in Mistake::ALL {
        let _ = writeln!(out, "| `{}` | {} |", mistake.reason(), mistake.words());
    }
    out.push_str(ENDS);
    for (code, when) in CODES {
        let _ = writeln!(out, "| {code} | {} |", cell(when));
    }
    out
}
