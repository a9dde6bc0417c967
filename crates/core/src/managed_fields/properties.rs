//! What holds for every history of writes.

use kennel_test_support::with_seeds;
use serde_json::{Map, Value, json};

use super::fixture::{OBJECT, Store, without_nulls};
use super::{FieldSet, Managers, compare, field_set_of, merge};

const HISTORIES: usize = 60;
const WRITES: usize = 25;

struct Random(fastrand::Rng);

impl Random {
    fn chance(&mut self) -> bool {
        self.0.bool()
    }

    fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.0.usize(..words.len())]
    }

    /// Members by a coin each.
    fn members(&mut self, names: &[&str], mut value: impl FnMut(&mut Self) -> Value) -> Value {
        let mut members = Map::new();
        for name in names {
            if self.chance() {
                members.insert((*name).to_owned(), value(self));
            }
        }
        Value::Object(members)
    }

    fn text(&mut self) -> Value {
        self.pick(&["1", "2"]).into()
    }

    fn item(&mut self, name: &str) -> Value {
        let mut item = self.members(&["image"], Self::text);
        item["name"] = name.into();
        if self.chance() {
            let ports = [80, 443].into_iter().filter(|_| self.0.bool());
            let ports: Vec<Value> = ports.map(|port| json!({"port": port})).collect();
            item["ports"] = ports.into();
        }
        item
    }

    /// A configuration whose names begin with one of these letters.
    fn config(&mut self, letters: &[&str]) -> Value {
        let mut config = json!({"apiVersion": "v1", "kind": "Object", "metadata": {"name": "n"}});
        if self.chance() {
            config["metadata"]["labels"] = self.members(letters, Self::text);
        }
        if self.chance() {
            let finalizers: Vec<&str> = letters.iter().copied().filter(|_| self.0.bool()).collect();
            config["metadata"]["finalizers"] = finalizers.into();
        }
        if self.chance() {
            let mut items = Vec::new();
            for name in letters {
                if self.chance() {
                    items.push(self.item(name));
                }
            }
            self.0.shuffle(&mut items);
            config["spec"]["items"] = items.into();
        }
        config
    }

    fn object(&mut self) -> Value {
        let mut object = self.config(&["a", "b", "c"]);
        if self.chance() {
            object["spec"]["args"] = json!([self.text()]);
        }
        if self.chance() {
            object["spec"]["selector"] = self.members(&["x", "y"], Self::text);
        }
        object
    }

    /// An update of the status of an object that exists.
    fn update_status(&mut self, store: &mut Store, manager: &str) {
        if let Some(mut object) = store.object.clone() {
            object["status"] = self.members(&["m", "n"], Self::text);
            store.update_part(manager, "status", object);
        }
    }

    /// An apply of the status of an object that exists.
    fn apply_status(&mut self, store: &mut Store, manager: &str) {
        if store.object.is_some() {
            let config = json!({"status": self.members(&["m", "n"], Self::text)});
            let force = self.chance();
            let _refused = store.apply_part(manager, "status", &config, force);
        }
    }

    /// A random history of applies, updates, and changes that nobody owns. No write of it loses an owner.
    fn history(&mut self) -> Store {
        let mut store = Store::default();
        for _ in 0..self.0.usize(1..WRITES) {
            let manager = self.pick(&["p", "q", "r"]);
            let object = self.object();
            let before = store.clone();
            match self.0.u8(..10) {
                0 | 1 => {
                    store.update(manager, object);
                    assert_what_is_set_is_owned(&before, &store);
                }
                2 | 3 => self.update_status(&mut store, manager),
                4 => self.apply_status(&mut store, manager),
                5 if store.object.is_some() => {
                    store.change(object);
                    assert_eq!(store.managers, before.managers);
                    continue;
                }
                6 | 7 => store.force(manager, &object),
                _ => drop(store.apply(manager, &object)),
            }
            let (old, new) = (&before.object, &store.object);
            assert_no_owner_is_lost(&before, &store, &format!("{manager}: {old:?} {new:?}"));
        }
        store
    }
}

fn random(seed: u64, mut test: impl FnMut(&mut Random)) {
    let mut random = Random(fastrand::Rng::with_seed(seed));
    for _ in 0..HISTORIES {
        test(&mut random);
    }
}

#[test]
fn applying_the_same_again_changes_nothing() {
    with_seeds([1, 2, 3], |seed| {
        random(seed, |random| {
            let mut store = random.history();
            // An empty list is stored as an absent one: the next apply adds it, in conflict with who owns the list itself.
            let config = without_nulls(random.object());
            store.force("p", &config);
            let before = store.clone();
            store.apply("p", &config).unwrap();
            assert_eq!(store.object, before.object, "{config}");
            assert!(store.managers.same_but_times(&before.managers), "{config}");
        });
    });
}

/// The histories check it themselves.
#[test]
fn no_write_loses_an_owner() {
    with_seeds([1, 2, 3], |seed| {
        random(seed, |random| drop(random.history()));
    });
}

/// What one writer does of those that commute.
enum Write {
    Apply,
    /// A read and an update, as by a patch.
    Update,
}

fn write(store: &mut Store, manager: &str, (how, config): (&Write, &Value)) {
    match how {
        Write::Apply => store.force(manager, config),
        Write::Update => {
            let merged = merge(&OBJECT, store.object.as_ref(), Some(config));
            store.update(manager, merged.unwrap().unwrap());
        }
    }
}

#[test]
fn managers_of_disjoint_fields_commute() {
    with_seeds([1, 2, 3], |seed| {
        random(seed, |random| {
            let mut base = random.history();
            // An object without managers gets some with its first apply, whoever applies; and who writes the first member of a list or
            // map by an update owns the list or map itself.
            base.force(
                "base",
                &json!({
                    "metadata": {"finalizers": ["z"], "labels": {"z": "1"}},
                    "spec": {"items": [{"name": "z"}]},
                }),
            );
            let (mut left, mut right) = (random.config(&["a", "b"]), random.config(&["c", "d"]));
            // Atomic fields, too.
            if random.chance() {
                left["spec"]["args"] = json!([random.text()]);
                right["spec"]["selector"] = random.members(&["x", "y"], Random::text);
            }
            let mut how = || {
                if random.chance() {
                    return Write::Apply;
                }
                Write::Update
            };
            let hows = [how(), how()];
            let (p, q) = (("s", (&hows[0], &left)), ("t", (&hows[1], &right)));
            let result = |first: (&str, _), second: (&str, _)| {
                let mut store = base.clone();
                write(&mut store, first.0, first.1);
                write(&mut store, second.0, second.1);
                store
            };
            let (one, other) = (result(p, q), result(q, p));
            assert!(
                one.managers.same_but_times(&other.managers),
                "{left} {right} {:?} {:?}",
                one.entries(),
                other.entries()
            );
            // The order of items depends on who came first.
            let (one, other) = (one.object.unwrap(), other.object.unwrap());
            let compared = compare(&OBJECT, &one, &other).unwrap();
            assert!(
                compared.added.is_empty()
                    && compared.removed.is_empty()
                    && compared.modified.is_empty()
            );
        });
    });
}

/// Every field that somebody owned and that is still there has an owner. Of lists and maps that is said of their members: an owner of
/// an empty one owns the field itself.
fn assert_no_owner_is_lost(before: &Store, after: &Store, why: &str) {
    if before.managers.is_empty() {
        return;
    }
    let (Some(old), Some(new)) = (&before.object, &after.object) else {
        return;
    };
    let compared = compare(&OBJECT, old, new).unwrap();
    let (owned_before, owned_after) = (all(&before.managers), all(&after.managers));
    // An owner may also have fields without a value: null, held by value, or taken away by a change that nobody owns.
    let there = field_set_of(&OBJECT, new).unwrap();
    let kept = owned_before.difference(&compared.removed);
    let kept = kept.intersection(&there);
    assert_owned(&kept, &owned_after, why);
}

/// Every field that an update has added or changed has an owner. An apply also adds members that are held by value, which its
/// configuration does not name.
fn assert_what_is_set_is_owned(before: &Store, after: &Store) {
    let (Some(old), Some(new)) = (&before.object, &after.object) else {
        return;
    };
    if before.managers.is_empty() {
        return;
    }
    let compared = compare(&OBJECT, old, new).unwrap();
    let stripped = FieldSet::of_names(&[&["apiVersion"], &["kind"], &["metadata", "name"]]);
    let set = compared.added.union(&compared.modified);
    let set = set.difference(&stripped);
    assert_owned(&set, &all(&after.managers), "set");
}

fn assert_owned(fields: &FieldSet, owned: &FieldSet, why: &str) {
    let owned_paths = owned.paths();
    for path in fields.clone().difference(owned).paths() {
        let has_owned_members = owned_paths.iter().any(|below| below.starts_with(&path));
        assert!(has_owned_members, "{why}: nobody owns {path:?}");
    }
}

#[test]
fn a_change_that_nobody_owns_leaves_owners_alone() {
    with_seeds([1, 2, 3], |seed| {
        random(seed, |random| {
            let mut store = random.history();
            let Some(old) = store.object.clone() else {
                return;
            };
            let before = store.managers.clone();
            let other = random.object();
            // Mostly such changes only add.
            let new = if random.chance() {
                merge(&OBJECT, Some(&old), Some(&other)).unwrap().unwrap()
            } else {
                other
            };
            store.change(new.clone());
            assert_eq!(store.managers, before, "{old} {new}");
        });
    });
}

#[test]
fn managers_survive_their_json_form() {
    with_seeds([1, 2, 3], |seed| {
        random(seed, |random| {
            let managers = random.history().managers;
            let value = managers.to_value();
            let read = if managers.is_empty() {
                Managers::default()
            } else {
                Managers::from_value(&value).unwrap()
            };
            assert_eq!(read, managers);
        });
    });
}

fn all(managers: &Managers) -> FieldSet {
    let fields = managers.0.values().map(|owned| &owned.fields);
    fields.fold(FieldSet::default(), FieldSet::union)
}
