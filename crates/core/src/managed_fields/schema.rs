//! What server-side apply needs to know of a type.

/// A type, as server-side apply sees it. Implemented by the server's schema table.
pub trait Schema: Copy {
    fn shape(self) -> Shape;

    /// The type of a declared member of an object.
    fn member(self, name: &str) -> Option<Self>;

    /// The type of the values of a map or the items of a list.
    fn item(self) -> Option<Self>;

    /// The members that identify an item of a keyed list.
    fn keys(self) -> &'static [&'static str];

    /// The default of a member of an object, where keys of lists need it.
    fn default_of(self, name: &str) -> Option<&'static str>;

    /// The members of an object that are there even if they are absent: structs that Go holds by value, which are
    /// empty, and lists and maps that Go always writes, which are null.
    fn value_members(self) -> impl Iterator<Item = &'static str>;
}

/// How the values of a type are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Scalar(Scalar),
    /// An object or a map that is merged member by member.
    Map(Fields),
    /// An object or a map that is one value.
    AtomicMap(Fields),
    /// A list that is merged item by item.
    List(ListShape),
    /// A list that is one value.
    AtomicList,
    /// Any JSON, as one value.
    Any,
}

/// Which members an object may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fields {
    /// Those of its type.
    Declared,
    /// Any: it is a map.
    Free,
}

/// How the items of a list are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListShape {
    /// By their values.
    Set,
    /// By some of their members.
    Keyed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    String,
    Number,
    Boolean,
    /// Any of them.
    Any,
}
