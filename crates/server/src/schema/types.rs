//! The types that the schema table is made of.

use std::fmt;

/// A type of the API, such as `core.v1.PodSpec`.
pub struct Type {
    /// Its name: group, version and Go name.
    pub name: &'static str,
    /// Its members in JSON, sorted by name, including those of inlined messages.
    pub fields: &'static [Field],
    /// Messages that protobuf nests and JSON inlines.
    pub inlined: &'static [Field],
    /// Whether it has `apiVersion` and `kind`.
    pub is_kind: bool,
    /// Whether server-side apply treats it as one value.
    pub is_atomic: bool,
    pub union: Option<Union>,
}

/// Members of a type of which one at most is set.
#[derive(Clone, Copy, Debug)]
pub struct Union {
    /// The member that says which; none if they speak for themselves.
    pub discriminator: Option<&'static str>,
    pub members: &'static [&'static str],
}

/// Methods that set members of a constant of the table.
macro_rules! setters {
    ($($name:ident($($argument:ident: $type:ty),*) { $($member:ident: $value:expr),+ })*) => {
        $(pub(super) const fn $name(mut self $(, $argument: $type)*) -> Self {
            $(self.$member = $value;)+
            self
        })*
    };
}

impl Type {
    /// Case matters.
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        let fields = self.fields;
        let found = fields.binary_search_by(|field| field.name.cmp(name));
        found.ok().map(|index| &fields[index])
    }

    /// The field of that number in the type's own message, not in an inlined one.
    pub fn numbered(&self, number: u32) -> Option<&'static Field> {
        let fields = self.fields;
        let is_it = |field: &&Field| field.number == number && field.within == 0;
        fields.iter().find(is_it).filter(|_| number != 0)
    }

    /// The name without group and version: `PodSpec`.
    pub fn go_name(&self) -> &'static str {
        self.name.rsplit('.').next().unwrap_or(self.name)
    }

    setters! {
        inlining(fields: &'static [Field]) { inlined: fields }
        kind() { is_kind: true }
        atomic() { is_atomic: true }
        union(discriminator: Option<&'static str>, members: &'static [&'static str]) {
            union: Some(Union { discriminator, members })
        }
    }
}

/// Types refer to each other in cycles, so it prints only the name.
impl fmt::Debug for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Type({})", self.name)
    }
}

/// The type of one value of a field.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    String,
    Bool,
    Int32,
    Int64,
    /// Bytes, in JSON as base64.
    Bytes,
    Quantity,
    /// A number or a string.
    IntOrString,
    /// A point in time in whole seconds.
    Time,
    /// A point in time in microseconds.
    MicroTime,
    /// Any JSON, stored unchanged.
    Raw,
    /// A list of strings (the values of `extra` maps).
    Strings,
    /// An object of a type of the table.
    Object(&'static Type),
}

/// How many values a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    One,
    List,
    /// Keys are free.
    Map,
}

/// How server-side apply sees a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListType {
    /// As one value.
    Atomic,
    /// As a set of scalars.
    Set,
    /// As objects by the values of their `list_map_keys`.
    Map,
}

/// How a strategic merge patch treats a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Objects are merged, lists are replaced.
    Default,
    /// Whatever it is, it is replaced.
    Replace,
    /// Lists are merged, too.
    Merge,
}

/// A member of a type.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// In JSON.
    pub name: &'static str,
    /// In protobuf; 0 if only JSON has it.
    pub number: u32,
    /// The number of the inlined message that holds it in protobuf; 0 if the type's own message holds it.
    pub within: u32,
    pub kind: Kind,
    pub shape: Shape,
    /// Always written, even when zero.
    pub is_required: bool,
    /// Zero differs from absent.
    pub is_pointer: bool,
    /// An empty value is written though the field may be absent.
    pub keeps_empty: bool,
    /// Go holds its object by value: an absent one is an empty one.
    pub is_by_value: bool,
    /// Whether server-side apply treats its object or map as one value; none if that is the type's to say.
    pub atomic: Option<bool>,
    /// How server-side apply sees a list.
    pub list_type: Option<ListType>,
    /// The members by which server-side apply tells list items apart.
    pub list_map_keys: &'static [&'static str],
    /// How a strategic merge patch treats it.
    pub strategy: Strategy,
    /// The member by which a strategic merge patch tells list items apart.
    pub merge_key: Option<&'static str>,
    /// Whether patches of its items may name the keys to retain.
    pub retains_keys: bool,
    /// The values that the API documents; empty if there are others. Validation is in `kinds`.
    pub values: &'static [&'static str],
    /// The default that the API documents.
    pub default: Option<&'static str>,
    /// Go's name of its type, where it is a named one.
    pub go_type: Option<&'static str>,
}

pub(super) const fn ty(name: &'static str, fields: &'static [Field]) -> Type {
    Type {
        name,
        fields,
        inlined: &[],
        is_kind: false,
        is_atomic: false,
        union: None,
    }
}

/// An optional field with one value; the methods below set the rest.
pub(super) const fn f(name: &'static str, number: u32, kind: Kind) -> Field {
    Field {
        name,
        number,
        within: 0,
        kind,
        shape: Shape::One,
        is_required: false,
        is_pointer: false,
        keeps_empty: false,
        is_by_value: false,
        atomic: None,
        list_type: None,
        list_map_keys: &[],
        strategy: Strategy::Default,
        merge_key: None,
        retains_keys: false,
        values: &[],
        default: None,
        go_type: None,
    }
}

impl Field {
    setters! {
        list() { shape: Shape::List }
        map() { shape: Shape::Map }
        required() { is_required: true }
        pointer() { is_pointer: true }
        keep_empty() { keeps_empty: true }
        by_value() { is_by_value: true }
        atomic() { atomic: Some(true) }
        granular() { atomic: Some(false) }
        list_type(kind: ListType, keys: &'static [&'static str]) {
            list_type: Some(kind), list_map_keys: keys
        }
        replaced() { strategy: Strategy::Replace }
        merged() { strategy: Strategy::Merge }
        retaining_keys() { retains_keys: true }
        by(key: &'static str) { merge_key: Some(key) }
        one_of(values: &'static [&'static str]) { values: values }
        default(default: &'static str) { default: Some(default) }
        go(name: &'static str) { go_type: Some(name) }
        within(number: u32) { within: number }
    }
}
