//! Objects made from the table: with every field, or with any of them.

use fastrand::Rng;
use kennel_server::schema::{Field, Kind, Shape, Type};
use serde_json::{Map, Value, json};

/// An object with every field of its type, none of them zero.
pub(crate) fn full(ty: &Type) -> Value {
    let mut rng = Rng::with_seed(7);
    object(&mut rng, ty, &|_| true, false)
}

/// An object with any of its type's fields, zeros among them.
pub(crate) fn any(rng: &mut Rng, ty: &Type) -> Value {
    let depth = rng.usize(1..12);
    object(rng, ty, &|rng| rng.usize(..12) < depth, true)
}

type Choice<'a> = &'a dyn Fn(&mut Rng) -> bool;

fn object(rng: &mut Rng, ty: &Type, is_in: Choice<'_>, zeros: bool) -> Value {
    let mut members = Map::new();
    for field in ty.fields.iter().filter(|field| field.number > 0) {
        if is_in(rng) {
            members.insert(field.name.to_owned(), member(rng, field, is_in, zeros));
        }
    }
    Value::Object(members)
}

fn member(rng: &mut Rng, field: &Field, is_in: Choice<'_>, zeros: bool) -> Value {
    // An empty list that must be written cannot be told from none in protobuf.
    let least = usize::from(field.is_required || field.keeps_empty);
    let many = if zeros { rng.usize(least..3) } else { 2 };
    match field.shape {
        Shape::One => value(rng, field.kind, is_in, zeros),
        Shape::List => (0..many)
            .map(|_| value(rng, field.kind, is_in, zeros))
            .collect(),
        Shape::Map => (0..many)
            .map(|_| (word(rng), value(rng, field.kind, is_in, zeros)))
            .collect(),
    }
}

fn value(rng: &mut Rng, kind: Kind, is_in: Choice<'_>, zeros: bool) -> Value {
    if zeros && rng.u8(..4) == 0 {
        return zero(kind);
    }
    match kind {
        Kind::String => word(rng).into(),
        Kind::Bool => true.into(),
        Kind::Int32 => (rng.i32(..) | 1).into(),
        Kind::Int64 => (rng.i64(..) | 1).into(),
        Kind::Bytes => "AP+ACg==".into(),
        Kind::Quantity => format!("{}Mi", rng.i32(1..9)).into(),
        Kind::IntOrString if rng.bool() => format!("{}%", rng.u8(..)).into(),
        Kind::IntOrString => rng.i32(..).into(),
        Kind::Time => format!("2024-02-29T23:59:{}Z", rng.u8(10..60)).into(),
        Kind::MicroTime => format!("1969-12-31T23:59:59.{}Z", rng.u32(100_000..999_999)).into(),
        Kind::Raw => json!({"f:x": [1, {"k": word(rng)}, null]}),
        Kind::Strings => json!([word(rng), word(rng)]),
        Kind::Object(ty) => object(rng, ty, is_in, zeros),
    }
}

fn zero(kind: Kind) -> Value {
    match kind {
        Kind::String | Kind::Bytes => "".into(),
        Kind::Bool => false.into(),
        Kind::Int32 | Kind::Int64 | Kind::IntOrString => 0.into(),
        Kind::Quantity => "0".into(),
        Kind::Time | Kind::MicroTime | Kind::Raw => Value::Null,
        Kind::Strings => json!([]),
        Kind::Object(_) => json!({}),
    }
}

fn word(rng: &mut Rng) -> String {
    let length = rng.usize(1..9);
    let letters = [
        'a', 'Z', '0', '-', '.', '/', ' ', '"', '\\', '\n', '\u{0}', 'é', '漢', '🐕',
    ];
    (0..length)
        .map(|_| letters[rng.usize(..letters.len())])
        .collect()
}
