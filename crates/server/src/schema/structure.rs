//! The table as server-side apply sees it: what is merged one by one, by key, or as a whole.

use kennel_core::managed_fields::{Fields, ListShape, Scalar, Schema, Shape};

use super::types::{self, Field, Kind, ListType, Type};

/// A type of the table, for server-side apply.
#[derive(Clone, Copy, Debug)]
pub enum Structure {
    /// An object of a type.
    Object(&'static Type),
    /// All values of a field.
    Field(&'static Field),
    /// One value of a list or a map.
    Item(&'static Field),
    /// A string that no field describes.
    Text,
}

impl Structure {
    fn object(self) -> Option<&'static Type> {
        match self {
            Self::Object(ty) => Some(ty),
            Self::Item(field) => object_of(field),
            Self::Field(field) if field.shape == types::Shape::One => object_of(field),
            Self::Field(_) | Self::Text => None,
        }
    }
}

fn object_of(field: &Field) -> Option<&'static Type> {
    match field.kind {
        Kind::Object(ty) => Some(ty),
        _ => None,
    }
}

fn map(fields: Fields, is_atomic: bool) -> Shape {
    if is_atomic {
        Shape::AtomicMap(fields)
    } else {
        Shape::Map(fields)
    }
}

/// The shape of one value of a field.
fn value_shape(field: &Field, atomic: Option<bool>) -> Shape {
    match field.kind {
        Kind::Object(ty) => map(Fields::Declared, atomic.unwrap_or(ty.is_atomic)),
        Kind::String | Kind::Bytes => Shape::Scalar(Scalar::String),
        Kind::Bool => Shape::Scalar(Scalar::Boolean),
        Kind::Int32 | Kind::Int64 => Shape::Scalar(Scalar::Number),
        Kind::Quantity | Kind::IntOrString | Kind::Time | Kind::MicroTime => {
            Shape::Scalar(Scalar::Any)
        }
        Kind::Strings => Shape::AtomicList,
        Kind::Raw => Shape::Any,
    }
}

impl Schema for Structure {
    fn shape(self) -> Shape {
        match self {
            Self::Object(ty) => map(Fields::Declared, ty.is_atomic),
            Self::Item(field) => value_shape(field, None),
            Self::Text => Shape::Scalar(Scalar::String),
            Self::Field(field) => match field.shape {
                types::Shape::One => value_shape(field, field.atomic),
                types::Shape::Map => map(Fields::Free, field.atomic == Some(true)),
                types::Shape::List => match field.list_type {
                    Some(ListType::Set) => Shape::List(ListShape::Set),
                    Some(ListType::Map) => Shape::List(ListShape::Keyed),
                    Some(ListType::Atomic) | None => Shape::AtomicList,
                },
            },
        }
    }

    fn member(self, name: &str) -> Option<Self> {
        self.object()?.field(name).map(Self::Field)
    }

    fn item(self) -> Option<Self> {
        match self {
            Self::Field(field) if field.shape != types::Shape::One => Some(Self::Item(field)),
            Self::Field(field) | Self::Item(field) if matches!(field.kind, Kind::Strings) => {
                Some(Self::Text)
            }
            _ => None,
        }
    }

    fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Field(field) => field.list_map_keys,
            _ => &[],
        }
    }

    fn default_of(self, name: &str) -> Option<&'static str> {
        self.object()?.field(name)?.default
    }

    fn value_members(self) -> impl Iterator<Item = &'static str> {
        let fields = self.object().map_or(&[] as &[Field], |ty| ty.fields);
        let is_present = |field: &&Field| {
            let is_written = field.is_required || field.keeps_empty;
            field.is_by_value || (is_written && field.shape != types::Shape::One)
        };
        fields.iter().filter(is_present).map(|field| field.name)
    }
}
