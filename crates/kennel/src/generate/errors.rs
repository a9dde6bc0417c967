//! The reference page of errors: status reasons of the API, field errors, and exit codes.

use std::fmt::Write as _;

use kennel_server::field::ErrorType;
use kennel_server::status::reasons;

use super::markdown::cell;

const HEAD: &str = "# Errors

## API errors

The response to a failed request is a `Status` with `code`, `reason`, `message` and `details`. Codes, reasons and
messages are those of upstream Kubernetes.

| Code | Reason | When |
|---|---|---|
";

const NODE_ERRORS: &str = "
Errors of a node's kubelet API (logs, exec, port-forward) are passed on with their code and, as upstream does, their
message; some of them have no reason.
";

const FIELD_ERRORS: &str = "
## Field errors

The entries of `details.causes` in a status with the reason `Invalid`; each has its `field`:

| Reason | The message begins with |
|---|---|
";

const EXIT_CODES: &str = "
## Exit codes

| Code | When |
|---|---|
";

const CODES: [(u8, &str); 5] = [
    (
        0,
        "Success; for verbs that run until they are stopped: SIGINT or SIGTERM.",
    ),
    (
        1,
        "Failure; the last line on stderr has the reason. `kennel why`: some node is not as it should be, or a typo leaves \
         no node. `kennel rollout status`: failed or held. `kennel reset`: something is left. `kennel doctor`: something is \
         damaged.",
    ),
    (
        2,
        "Invalid command line. `kennel why`, `kennel rollout`: the cluster or the DaemonSet could not be read, \
         or the node or pod does not exist. `kennel reset`: rejected, nothing was changed. `kennel doctor`: the database could \
         not be checked.",
    ),
    (3, "`kennel rollout status`: still in progress."),
    (4, "`kennel rollout status`: waits for a person."),
];

pub(super) fn page() -> String {
    let mut out = HEAD.to_owned();
    // Writing to a String cannot fail.
    for known in reasons::ALL {
        let when = cell(known.when);
        let _ = writeln!(out, "| {} | `{}` | {when} |", known.code, known.reason);
    }
    out.push_str(NODE_ERRORS);
    out.push_str(FIELD_ERRORS);
    for error_type in ErrorType::ALL {
        let _ = writeln!(
            out,
            "| `{}` | {} |",
            error_type.reason(),
            error_type.prefix()
        );
    }
    out.push_str(EXIT_CODES);
    for (code, when) in CODES {
        let _ = writeln!(out, "| {code} | {} |", cell(when));
    }
    out
}
