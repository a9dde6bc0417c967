//! Random graphs: objects are created, re-owned and deleted while watches lag. No object with an existing owner may be
//! deleted (the fake API asserts that), and in the end no garbage and no waiting finalizer may be left.

use fastrand::Rng;
use kennel_test_support::with_seeds;

use super::super::item::{FOREGROUND, Item, ORPHAN, OwnerRef};
use super::Policy;
use super::fake_api::{FOREIGN, FakeApi, owner};

const SEEDS: u64 = 3_000;
const STEPS: usize = 60;
const KIND_NAMES: [&str; 3] = ["A", "B", "Wide"];

fn any(rng: &mut Rng, api: &FakeApi) -> Option<Item> {
    let number = rng.usize(..api.objects.len().max(1));
    api.objects.values().nth(number).cloned()
}

fn owners(rng: &mut Rng, api: &FakeApi) -> Vec<OwnerRef> {
    let mut owners: Vec<OwnerRef> = Vec::new();
    for _ in 0..rng.usize(..3) {
        let Some(item) = any(rng, api) else {
            continue;
        };
        if owners.iter().all(|o| o.uid != item.uid) {
            owners.push(owner(&item, KIND_NAMES[item.kind.place()], rng.bool()));
        }
    }
    owners
}

fn policy(rng: &mut Rng) -> Policy {
    [Policy::Background, Policy::Foreground, Policy::Orphan][rng.usize(..3)]
}

fn random_step(rng: &mut Rng, api: &mut FakeApi) {
    match rng.usize(..12) {
        0..=3 => {
            let owners = owners(rng, api);
            let (kind, name) = (rng.usize(..2), ["a", "b", "c", "d"][rng.usize(..4)]);
            let namespace = ["ns", "ns", "ns", "far"][rng.usize(..4)];
            let mut made = api.create_in(namespace, kind, name, owners);
            if rng.usize(..8) == 0 {
                made.finalizers = vec![FOREIGN.into()];
                api.write(made);
            }
        }
        4 => {
            let (kind, name) = (2, ["w", "x"][rng.usize(..2)]);
            api.create(kind, name, Vec::new());
        }
        5 => {
            if let Some(mut item) = any(rng, api).filter(|item| item.kind.place() != 2) {
                item.owners = owners(rng, api);
                api.write(item);
            }
        }
        6 => {
            if let Some(item) = any(rng, api).filter(|item| !item.deleting) {
                let policy = policy(rng);
                api.delete(&item.uid, policy);
            }
        }
        7..=9 => api.deliver(rng.usize(..3)),
        _ => {
            for action in api.graph.take(rng.usize(..4)) {
                api.execute(action);
            }
        }
    }
}

/// Other controllers remove their finalizers from objects that are being deleted.
fn remove_foreign_finalizers(api: &mut FakeApi) {
    let held = |item: &&Item| item.deleting && item.finalizers.iter().any(|f| **f == *FOREIGN);
    let held: Vec<Item> = api.objects.values().filter(held).cloned().collect();
    for mut item in held {
        item.finalizers.retain(|f| **f != *FOREIGN);
        api.write(item);
    }
    api.converge();
}

fn check(seed: u64) {
    let (mut rng, mut api) = (Rng::with_seed(seed), FakeApi::new());
    for _ in 0..STEPS {
        random_step(&mut rng, &mut api);
    }
    api.converge();
    for _ in 0..STEPS {
        remove_foreign_finalizers(&mut api);
    }
    for item in api.objects.values() {
        let name = &item.name;
        let owned = item.owners.is_empty() || api.has_existing_owner(item);
        assert!(
            owned,
            "seed {seed}: {name} is garbage: {item:?} {:?} {:?}",
            api.objects, api.done
        );
        let waits = |f: &str| item.finalizers.iter().any(|has| **has == *f);
        let waits = item.deleting && (waits(FOREGROUND) || waits(ORPHAN));
        assert!(
            !waits,
            "seed {seed}: {name} waits for ever: {item:?} {:?}",
            api.done
        );
    }
    assert_eq!(api.graph.len(), api.objects.len(), "seed {seed}");
}

#[test]
fn only_garbage_is_deleted_and_no_garbage_stays() {
    with_seeds(0..SEEDS, check);
}
