//! Random lives of random graphs: objects created, re-owned and deleted while watches lag, all of it
//! drawn from a seed. Nothing with a living owner goes (the world asserts it at every deletion), and in
//! the end nothing is left whose owners are gone, and nobody waits for nothing.

use fastrand::Rng;

use super::super::item::{FOREGROUND, Item, ORPHAN, OwnerRef};
use super::Policy;
use super::world::{FOREIGN, World, owner};

const SEEDS: u64 = 3_000;
const STEPS: usize = 60;
const KIND_NAMES: [&str; 3] = ["A", "B", "Wide"];

fn any(rng: &mut Rng, world: &World) -> Option<Item> {
    let number = rng.usize(..world.objects.len().max(1));
    world.objects.values().nth(number).cloned()
}

fn owners(rng: &mut Rng, world: &World) -> Vec<OwnerRef> {
    let mut owners: Vec<OwnerRef> = Vec::new();
    for _ in 0..rng.usize(..3) {
        let Some(item) = any(rng, world) else {
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

fn live(rng: &mut Rng, world: &mut World) {
    match rng.usize(..12) {
        0..=3 => {
            let owners = owners(rng, world);
            let (kind, name) = (rng.usize(..2), ["a", "b", "c", "d"][rng.usize(..4)]);
            let namespace = ["ns", "ns", "ns", "far"][rng.usize(..4)];
            let mut made = world.create_in(namespace, kind, name, owners);
            if rng.usize(..8) == 0 {
                made.finalizers = vec![FOREIGN.into()];
                world.write(made);
            }
        }
        4 => {
            let (kind, name) = (2, ["w", "x"][rng.usize(..2)]);
            world.create(kind, name, Vec::new());
        }
        5 => {
            if let Some(mut item) = any(rng, world).filter(|item| item.kind.place() != 2) {
                item.owners = owners(rng, world);
                world.write(item);
            }
        }
        6 => {
            if let Some(item) = any(rng, world).filter(|item| !item.deleting) {
                let policy = policy(rng);
                world.delete(&item.uid, policy);
            }
        }
        7..=9 => world.deliver(rng.usize(..3)),
        _ => {
            for action in world.graph.take(rng.usize(..4)) {
                world.perform(action);
            }
        }
    }
}

/// Everybody else lets go of what is being deleted.
fn let_go(world: &mut World) {
    let held = |item: &&Item| item.deleting && item.finalizers.iter().any(|f| **f == *FOREIGN);
    let held: Vec<Item> = world.objects.values().filter(held).cloned().collect();
    for mut item in held {
        item.finalizers.retain(|f| **f != *FOREIGN);
        world.write(item);
    }
    world.settle();
}

fn check(seed: u64) {
    let (mut rng, mut world) = (Rng::with_seed(seed), World::new());
    for _ in 0..STEPS {
        live(&mut rng, &mut world);
    }
    world.settle();
    for _ in 0..STEPS {
        let_go(&mut world);
    }
    for item in world.objects.values() {
        let name = &item.name;
        let owned = item.owners.is_empty() || world.has_living_owner(item);
        assert!(
            owned,
            "seed {seed}: {name} is garbage: {item:?} {:?} {:?}",
            world.objects, world.done
        );
        let waits = |f: &str| item.finalizers.iter().any(|has| **has == *f);
        let waits = item.deleting && (waits(FOREGROUND) || waits(ORPHAN));
        assert!(
            !waits,
            "seed {seed}: {name} waits for ever: {item:?} {:?}",
            world.done
        );
    }
    assert_eq!(world.graph.len(), world.objects.len(), "seed {seed}");
}

#[test]
fn nothing_goes_that_has_a_living_owner_and_nothing_else_stays() {
    for seed in 0..SEEDS {
        check(seed);
    }
}
