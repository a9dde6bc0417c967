//! Column definitions.

use serde::Serialize;

#[derive(Clone, Copy, Debug, Serialize, PartialEq, Eq)]
pub struct Column {
    /// The header, before kubectl turns it to upper case.
    pub name: &'static str,
    /// The OpenAPI type of its cells.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The OpenAPI format; `name` marks the column kubectl puts the kind before.
    pub format: &'static str,
    pub description: &'static str,
    /// 0 is always shown, 1 only with `-o wide`.
    pub priority: i32,
}

const fn new(name: &'static str, kind: &'static str, description: &'static str) -> Column {
    Column {
        name,
        kind,
        format: "",
        description,
        priority: 0,
    }
}

pub(super) const NAME: Column = Column {
    format: "name",
    ..new("Name", "string", "The name of the object.")
};

pub(super) const AGE: Column = text("Age", "How long ago the object was created.");

/// For kinds without columns of their own.
pub(super) const CREATED_AT: Column = new("Created At", "date", "When the object was created.");

pub(super) const fn text(name: &'static str, description: &'static str) -> Column {
    new(name, "string", description)
}

pub(super) const fn integer(name: &'static str, description: &'static str) -> Column {
    new(name, "integer", description)
}

pub(super) const fn boolean(name: &'static str, description: &'static str) -> Column {
    new(name, "boolean", description)
}

/// A column of strings that only `-o wide` shows.
pub(super) const fn wide(name: &'static str, description: &'static str) -> Column {
    Column {
        priority: 1,
        ..text(name, description)
    }
}

/// What nodes and pods use, as metrics-server prints it.
pub(super) const USAGE: &[Column; 4] = &[
    Column {
        description: "Name of the resource",
        ..NAME
    },
    Column {
        format: "quantity",
        ..text("cpu", "")
    },
    Column {
        format: "quantity",
        ..text("memory", "")
    },
    Column {
        format: "duration",
        ..text("Window", "")
    },
];

/// Shown only with `-o wide`.
pub(super) const fn widened(column: Column) -> Column {
    Column {
        priority: 1,
        ..column
    }
}
