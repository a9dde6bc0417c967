//! What holds for every history of writes.

use kennel_test_support::with_seeds;
use serde_json::{Map, Value, json};

use super::fixture::{OBJECT, Store};
use super::{FieldSet, Managers, compare, merge};

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

    /// A random history of applies, updates, and changes that nobody owns.
    fn history(&mut self) -> Store {
        let mut store = Store::default();
        for _ in 0..self.0.usize(1..WRITES) {
            let manager = self.pick(&["p", "q", "r"]);
            let object = self.object();
            match self.0.u8(..8) {
                0 | 1 => store.update(manager, object),
                2 => self.update_status(&mut store, manager),
                3 if store.object.is_some() => store.change(object),
                4 | 5 => store.force(manager, &object),
                _ => drop(store.apply(manager, &object)),
            }
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
            let config = random.object();
            store.force("p", &config);
            let before = store.clone();
            store.apply("p", &config).unwrap();
            assert_eq!(store.object, before.object, "{config}");
            assert!(store.managers.same_but_times(&before.managers), "{config}");
        });
    });
}

#[test]
fn managers_of_disjoint_fields_commute() {
    with_seeds([1, 2, 3], |seed| {
        random(seed, |random| {
            let (left, right) = (random.config(&["a", "b"]), random.config(&["c", "d"]));
            let result = |first: (&str, &Value), second: (&str, &Value)| {
                let mut store = Store::default();
                store
                    .apply("base", &json!({"metadata": {"labels": {"z": "1"}}}))
                    .unwrap();
                store.apply(first.0, first.1).unwrap();
                store.apply(second.0, second.1).unwrap();
                store
            };
            let one = result(("p", &left), ("q", &right));
            let other = result(("q", &right), ("p", &left));
            assert!(
                one.managers.same_but_times(&other.managers),
                "{left} {right}"
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

/// Every field that somebody owned and an update did not touch still has its owner.
#[test]
fn an_update_loses_no_owner() {
    with_seeds([1, 2, 3], |seed| {
        random(seed, |random| {
            let mut store = random.history();
            let before = store.clone();
            let object = random.object();
            store.update("w", object);
            if before.managers.is_empty() {
                return;
            }
            let (old, new) = (before.object.unwrap(), store.object.as_ref().unwrap());
            let compared = compare(&OBJECT, &old, new).unwrap();
            let gone = compared.removed;
            let owned_before = all(&before.managers);
            let owned_after = all(&store.managers);
            let lost = owned_before.difference(&owned_after).difference(&gone);
            assert!(lost.is_empty(), "{}", lost.to_fields_v1());
            let new = compared.added.union(&compared.modified);
            let stripped = FieldSet::of_names(&[&["apiVersion"], &["kind"], &["metadata", "name"]]);
            let unowned = new.difference(&owned_after).difference(&stripped);
            assert!(unowned.is_empty(), "{}", unowned.to_fields_v1());
        });
    });
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
