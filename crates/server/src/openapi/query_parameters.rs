//! The query parameters of operations: names, types and what they mean.

use super::operations::{Action, Operation};
use crate::registry::Connect;

/// A query or path parameter.
#[derive(Clone, Copy)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    /// Of JSON schema.
    pub(super) kind: &'static str,
    pub(super) description: &'static str,
}

const fn text(name: &'static str, description: &'static str) -> Parameter {
    Parameter {
        name,
        kind: "string",
        description,
    }
}

const fn flag(name: &'static str, description: &'static str) -> Parameter {
    Parameter {
        kind: "boolean",
        ..text(name, description)
    }
}

const fn number(name: &'static str, description: &'static str) -> Parameter {
    Parameter {
        kind: "integer",
        ..text(name, description)
    }
}

const DRY_RUN: Parameter = text(
    "dryRun",
    "With \"All\", the request is checked and answered, and nothing is stored.",
);
const PRETTY: Parameter = text("pretty", "If \"true\", the output is indented.");
const CONTAINER: Parameter = text(
    "container",
    "The container; may be left out if there is one.",
);

const WRITE: &[Parameter] = &[
    DRY_RUN,
    text(
        "fieldManager",
        "The name of the manager of the written fields: at most 128 printable characters. Apply requests must set it.",
    ),
    text(
        "fieldValidation",
        "What happens to unknown and duplicate fields: \"Ignore\", \"Warn\" (the default) or \"Strict\".",
    ),
    PRETTY,
];
const FORCE: &[Parameter] = &[flag(
    "force",
    "Takes conflicting fields from their managers. Only for apply requests.",
)];
const DELETE: &[Parameter] = &[
    DRY_RUN,
    number(
        "gracePeriodSeconds",
        "The seconds that the object has to terminate; 0 deletes it at once.",
    ),
    flag(
        "orphanDependents",
        "Deprecated: use propagationPolicy. Whether dependents lose their owner and stay.",
    ),
    PRETTY,
    text(
        "propagationPolicy",
        "What happens to dependents: \"Orphan\", \"Background\" or \"Foreground\".",
    ),
];
const SELECT: &[Parameter] = &[
    text(
        "continue",
        "Where the list continues: the value that the previous page of the list ended with.",
    ),
    text(
        "fieldSelector",
        "Selects objects by the values of fields. Defaults to everything.",
    ),
    text(
        "labelSelector",
        "Selects objects by their labels. Defaults to everything.",
    ),
    number("limit", "The most items of one page of the list."),
    text(
        "resourceVersion",
        "The resource version that the answer must have reached, or from which a watch starts.",
    ),
    text(
        "resourceVersionMatch",
        "How resourceVersion applies to a list: \"Exact\" or \"NotOlderThan\".",
    ),
    flag(
        "sendInitialEvents",
        "Whether a watch starts with an event for each object that exists, and a bookmark behind them.",
    ),
    number(
        "timeoutSeconds",
        "The seconds after which a list or a watch ends.",
    ),
];
const WATCH: &[Parameter] = &[
    flag(
        "allowWatchBookmarks",
        "Whether a watch sends events of the type BOOKMARK.",
    ),
    PRETTY,
    flag("watch", "Watches the objects instead of listing them."),
];
const LOG: &[Parameter] = &[
    CONTAINER,
    flag(
        "follow",
        "Whether the answer goes on while the container writes.",
    ),
    number("limitBytes", "The bytes after which the answer ends."),
    flag(
        "previous",
        "The log of the container that ran before the present one.",
    ),
    number("sinceSeconds", "Only lines of the last seconds."),
    text("sinceTime", "Only lines since that time (RFC 3339)."),
    text("stream", "\"All\" (the default), \"Stdout\" or \"Stderr\"."),
    number("tailLines", "Only the last lines."),
    flag("timestamps", "Whether each line starts with its time."),
];
const COMMAND: &[Parameter] = &[text("command", "The command and, repeated, its arguments.")];
const STREAMS: &[Parameter] = &[
    CONTAINER,
    flag("stderr", "Whether the connection carries standard error."),
    flag("stdin", "Whether the connection carries standard input."),
    flag("stdout", "Whether the connection carries standard output."),
    flag("tty", "Whether the process gets a terminal."),
];
const PORTS: &[Parameter] = &[number("ports", "The ports to forward to.")];

/// The query parameters of an operation.
pub(super) fn query_parameters(operation: &Operation) -> impl Iterator<Item = Parameter> {
    let (first, second): (&[Parameter], &[Parameter]) = match operation.action {
        Action::Log => (LOG, &[]),
        Action::Connect(connect, _) => match connect {
            Connect::Exec => (COMMAND, STREAMS),
            Connect::Attach => (STREAMS, &[]),
            Connect::PortForward => (PORTS, &[]),
            Connect::Log | Connect::PodProxy | Connect::NodeProxy => (&[], &[]),
        },
        Action::Get => (&[PRETTY], &[]),
        Action::List => (SELECT, WATCH),
        Action::Post | Action::Put => (WRITE, &[]),
        Action::Patch => (WRITE, FORCE),
        Action::Delete => (DELETE, &[]),
        Action::DeleteCollection => (DELETE, SELECT),
    };
    first.iter().chain(second).copied()
}

/// A parameter in the path, by its name.
pub(super) fn path_parameter(name: &'static str) -> Parameter {
    let description = match name {
        "name" => "The name of the object.",
        "namespace" => "The namespace of the object.",
        _ => "The path to request behind the proxy.",
    };
    text(name, description)
}
