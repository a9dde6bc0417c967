//! A small schema for the tests: an object with every kind of list and map.

use kennel_types::Timestamp;
use serde_json::{Value, json};

use super::{
    Applied, ApplyError, FieldManager, FieldSet, Fields, ListShape, Managers, Ownership, Scalar,
    Schema, Shape,
};

/// A type of the tests.
#[derive(Debug)]
pub(super) enum Type {
    Text,
    Number,
    Any,
    /// Members; those marked as held by value are never absent.
    Struct(&'static [Member]),
    AtomicStruct(&'static [Member]),
    Map(&'static Self),
    AtomicMap(&'static Self),
    List(&'static Self),
    Set,
    Keyed(&'static [&'static str], &'static Self),
}

#[derive(Debug)]
pub(super) struct Member {
    name: &'static str,
    of: &'static Type,
    default: Option<&'static str>,
    is_by_value: bool,
}

const fn m(name: &'static str, of: &'static Type) -> Member {
    Member {
        name,
        of,
        default: None,
        is_by_value: false,
    }
}

const fn by_value(name: &'static str, of: &'static Type) -> Member {
    let mut member = m(name, of);
    member.is_by_value = true;
    member
}

const fn with_default(name: &'static str, default: &'static str) -> Member {
    let mut member = m(name, &Type::Text);
    member.default = Some(default);
    member
}

static METADATA: Type = Type::Struct(&[
    m("annotations", &Type::Map(&Type::Text)),
    m("finalizers", &Type::Set),
    m("labels", &Type::Map(&Type::Text)),
    m("name", &Type::Text),
]);
static PORT: Type = Type::Struct(&[
    m("name", &Type::Text),
    m("port", &Type::Number),
    with_default("protocol", "TCP"),
]);
static ITEM: Type = Type::Struct(&[
    m("image", &Type::Text),
    m("name", &Type::Text),
    m("ports", &Type::Keyed(&["port", "protocol"], &PORT)),
    by_value("resources", &Type::Map(&Type::Any)),
]);
static SPEC: Type = Type::Struct(&[
    m("args", &Type::List(&Type::Text)),
    m("count", &Type::Number),
    m("items", &Type::Keyed(&["name"], &ITEM)),
    m("raw", &Type::Any),
    m("reference", &Type::AtomicStruct(&[m("name", &Type::Text)])),
    m("selector", &Type::AtomicMap(&Type::Text)),
    m("strategy", &Type::Struct(&[m("type", &Type::Text)])),
]);
pub(super) static OBJECT: Type = Type::Struct(&[
    m("apiVersion", &Type::Text),
    m("kind", &Type::Text),
    by_value("metadata", &METADATA),
    by_value("spec", &SPEC),
    by_value("status", &Type::Map(&Type::Any)),
]);

impl Type {
    fn members(&self) -> &'static [Member] {
        match self {
            Self::Struct(members) | Self::AtomicStruct(members) => members,
            _ => &[],
        }
    }
}

impl Schema for &'static Type {
    fn shape(self) -> Shape {
        match self {
            Type::Text => Shape::Scalar(Scalar::String),
            Type::Number => Shape::Scalar(Scalar::Number),
            Type::Any => Shape::Any,
            Type::Struct(_) => Shape::Map(Fields::Declared),
            Type::AtomicStruct(_) => Shape::AtomicMap(Fields::Declared),
            Type::Map(_) => Shape::Map(Fields::Free),
            Type::AtomicMap(_) => Shape::AtomicMap(Fields::Free),
            Type::List(_) => Shape::AtomicList,
            Type::Set => Shape::List(ListShape::Set),
            Type::Keyed(..) => Shape::List(ListShape::Keyed),
        }
    }

    fn member(self, name: &str) -> Option<Self> {
        let member = self.members().iter().find(|member| member.name == name);
        member.map(|member| member.of)
    }

    fn item(self) -> Option<Self> {
        match self {
            Type::Map(item) | Type::AtomicMap(item) | Type::List(item) | Type::Keyed(_, item) => {
                Some(item)
            }
            Type::Set => Some(&Type::Text),
            _ => None,
        }
    }

    fn keys(self) -> &'static [&'static str] {
        match self {
            Type::Keyed(keys, _) => keys,
            _ => &[],
        }
    }

    fn default_of(self, name: &str) -> Option<&'static str> {
        let member = self.members().iter().find(|member| member.name == name);
        member.and_then(|member| member.default)
    }

    fn value_members(self) -> impl Iterator<Item = &'static str> {
        let members = self.members().iter();
        members
            .filter(|member| member.is_by_value)
            .map(|member| member.name)
    }
}

/// An object with its managers, and a clock that goes on by a second with each write.
#[derive(Clone, Debug, Default)]
pub(super) struct Store {
    pub(super) object: Option<Value>,
    pub(super) managers: Managers,
    /// The same, as they are stored.
    stored: Ownership,
    seconds: i64,
}

impl Store {
    /// With an object that has no managers.
    pub(super) fn holding(object: Value) -> Self {
        Self {
            object: Some(object),
            ..Self::default()
        }
    }

    fn now(&mut self) -> Timestamp {
        self.seconds += 1;
        Timestamp::from_secs(self.seconds)
    }

    /// With managers that an object has.
    pub(super) fn managed_by(mut self, managers: Managers) -> Self {
        self.store(Ownership::Listed(managers));
        self
    }

    /// A write through the object itself, or through a subresource.
    fn write<T>(
        &mut self,
        manager: &str,
        subresource: &str,
        change: impl FnOnce(FieldManager<'_, &'static Type>) -> T,
    ) -> T {
        let now = self.now();
        let ignored = if subresource.is_empty() {
            "status"
        } else {
            "spec"
        };
        change(FieldManager {
            schema: &OBJECT,
            manager,
            api_version: "v1",
            subresource,
            is_version: &|version| version != "gone/v1",
            ignored: &FieldSet::of_names(&[&[ignored]]),
            now,
        })
    }

    pub(super) fn apply(&mut self, manager: &str, config: &Value) -> Result<(), String> {
        self.apply_part(manager, "", config, false)
    }

    pub(super) fn force(&mut self, manager: &str, config: &Value) {
        self.apply_part(manager, "", config, true).unwrap();
    }

    /// An apply through the object itself, or through a subresource.
    pub(super) fn apply_part(
        &mut self,
        manager: &str,
        subresource: &str,
        config: &Value,
        force: bool,
    ) -> Result<(), String> {
        let (live, managers) = (self.object.clone(), self.managers.clone());
        let applied = self.write(manager, subresource, |fields| {
            fields.apply(live.as_ref(), config, managers, force)
        });
        let Applied { object, managers } =
            applied.map_err(|error: ApplyError| error.to_string())?;
        let object = kept_by(subresource, object, live.as_ref());
        self.object = Some(without_nulls(object));
        self.store(Ownership::Listed(managers));
        Ok(())
    }

    pub(super) fn update(&mut self, manager: &str, new: Value) {
        self.update_part(manager, "", new);
    }

    pub(super) fn update_part(&mut self, manager: &str, subresource: &str, new: Value) {
        let new = without_nulls(new);
        let (live, listed) = (self.object.clone(), self.managers.clone());
        let stored = self.stored.clone();
        let (updated, listed) = self.write(manager, subresource, |fields| {
            let listed = Ownership::Listed(listed);
            match &live {
                Some(live) => (
                    fields.update(live, &new, stored),
                    fields.update(live, &new, listed),
                ),
                None => (
                    fields.create(&new, Managers::default()),
                    fields.replace(&json!({}), &new, listed),
                ),
            }
        });
        self.object = Some(kept_by(subresource, new, live.as_ref()));
        self.store(updated);
        // The stored form is as good as the list.
        let object = self.object.as_ref().unwrap();
        assert_eq!(self.managers, listed.list(&OBJECT, "v1", object));
    }

    /// A change that nobody owns, such as the binding of a pod.
    pub(super) fn change(&mut self, new: Value) {
        let old = self.object.replace(without_nulls(new));
        let (old, new) = (old.unwrap(), self.object.as_ref().unwrap());
        let before = self.stored.clone();
        let after = before.after_unowned_change(&OBJECT, "v1", (&old, new), &FieldSet::default());
        self.store(after);
    }

    /// Stores managers in their stored form, through text, and reads them again.
    fn store(&mut self, ownership: Ownership) {
        let object = self.object.as_ref().unwrap();
        let mut text = Vec::new();
        ownership
            .relative_to(&OBJECT, "v1", object)
            .write(&mut text);
        let stored = Ownership::from_stored(&serde_json::from_slice(&text).unwrap()).unwrap();
        self.managers = stored.list(&OBJECT, "v1", object);
        self.stored = stored;
    }

    /// `manager operation [subresource]: fields` of each entry.
    pub(super) fn entries(&self) -> Vec<String> {
        let entries = self.managers.to_value();
        let entries = entries.as_array().unwrap().iter().map(|entry| {
            let text = |name: &str| entry[name].as_str().unwrap_or_default();
            let fields = FieldSet::from_fields_v1(&entry["fieldsV1"]).unwrap();
            let paths = fields.paths().into_iter();
            let paths: Vec<String> = paths
                .map(|path| path.iter().map(ToString::to_string).collect())
                .collect();
            let who = [text("manager"), text("operation"), text("subresource")];
            format!("{}: {}", who.join(" ").trim(), paths.join(" "))
        });
        entries.collect()
    }
}

/// What is stored: a write of the object keeps the status, and one of the status keeps the spec.
fn kept_by(subresource: &str, mut new: Value, live: Option<&Value>) -> Value {
    let kept = if subresource.is_empty() {
        "status"
    } else {
        "spec"
    };
    let (Some(live), Some(members)) = (live, new.as_object_mut()) else {
        return new;
    };
    match live.get(kept) {
        Some(value) => drop(members.insert(kept.to_owned(), value.clone())),
        None => drop(members.remove(kept)),
    }
    new
}

/// As the server prunes what it stores: without nulls, empty lists and empty maps.
pub(super) fn without_nulls(value: Value) -> Value {
    let is_left = |value: &Value| match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        _ => true,
    };
    match value {
        Value::Object(members) => {
            let members = members.into_iter();
            let members = members.map(|(name, value)| (name, without_nulls(value)));
            members.filter(|(_, value)| is_left(value)).collect()
        }
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        other => other,
    }
}
