//! The rules, one by one.

use super::super::item::FOREGROUND;
use super::world::{FOREIGN, World, owner};
use super::{Action, Found, Graph, Outcome, Policy};

fn names(world: &World) -> Vec<&str> {
    let mut names: Vec<&str> = world.objects.values().map(|item| &*item.name).collect();
    names.sort_unstable();
    names
}

#[test]
fn dependents_follow_their_owner_and_those_of_another_stay() {
    let mut world = World::new();
    let a = world.create(0, "a", vec![]);
    let other = world.create(0, "other", vec![]);
    let b = world.create(1, "b", vec![owner(&a, "A", true)]);
    world.create(1, "c", vec![owner(&b, "B", true)]);
    world.create(1, "d", vec![owner(&other, "A", true)]);
    world.settle();
    assert!(world.done.is_empty(), "{:?}", world.done);
    world.delete(&a.uid, Policy::Background);
    world.settle();
    assert_eq!(names(&world), ["d", "other"]);
    assert_eq!(world.graph.len(), 2, "nothing is remembered for nothing");
}

#[test]
fn an_owner_made_anew_under_the_same_name_is_another() {
    let mut world = World::new();
    let old = world.create(0, "a", vec![]);
    world.create(1, "b", vec![owner(&old, "A", true)]);
    world.settle();
    world.delete(&old.uid, Policy::Background);
    world.create(0, "a", vec![]);
    world.settle();
    assert_eq!(names(&world), ["a"]);
}

#[test]
fn what_has_a_living_owner_stays_and_loses_only_the_dead_one() {
    let mut world = World::new();
    let a = world.create(0, "a", vec![]);
    let b = world.create(0, "b", vec![]);
    let both = vec![owner(&a, "A", true), owner(&b, "A", true)];
    let c = world.create(1, "c", both);
    world.delete(&a.uid, Policy::Background);
    world.settle();
    assert_eq!(names(&world), ["b", "c"]);
    let left = &world.objects[&c.uid].owners;
    assert_eq!(left.iter().map(|o| &*o.uid).collect::<Vec<_>>(), [&*b.uid]);
    world.delete(&b.uid, Policy::Foreground);
    world.settle();
    assert!(world.objects.is_empty());
}

#[test]
fn in_the_foreground_an_owner_goes_after_those_that_block_it() {
    let mut world = World::new();
    let a = world.create(0, "a", vec![]);
    let mut slow = world.create(1, "slow", vec![owner(&a, "A", true)]);
    slow.finalizers = vec![FOREIGN.into()];
    let slow = world.write(slow);
    world.create(1, "quick", vec![owner(&a, "A", false)]);
    world.settle();
    world.delete(&a.uid, Policy::Foreground);
    world.settle();
    assert_eq!(names(&world), ["a", "slow"], "it waits for the one");
    let mut slow = world.objects[&slow.uid].clone();
    assert!(slow.deleting);
    slow.finalizers.clear();
    world.write(slow);
    world.settle();
    assert!(world.objects.is_empty());
}

#[test]
fn in_the_foreground_an_owner_does_not_wait_for_those_that_do_not_block_it() {
    let mut world = World::new();
    let a = world.create(0, "a", vec![]);
    let mut slow = world.create(1, "slow", vec![owner(&a, "A", false)]);
    slow.finalizers = vec![FOREIGN.into()];
    world.write(slow);
    world.delete(&a.uid, Policy::Foreground);
    world.settle();
    assert_eq!(names(&world), ["slow"]);
}

#[test]
fn in_the_foreground_the_whole_tree_goes_from_its_leaves() {
    let mut world = World::new();
    let a = world.create(0, "a", vec![]);
    let b = world.create(1, "b", vec![owner(&a, "A", true)]);
    world.create(0, "c", vec![owner(&b, "B", true)]);
    world.settle();
    world.delete(&a.uid, Policy::Foreground);
    world.settle();
    assert!(world.objects.is_empty());
    let expected = [
        "delete b Foreground",
        "delete c Background",
        "release b",
        "release a",
    ];
    assert_eq!(world.done, expected);
}

#[test]
fn circles_are_broken() {
    for policy in [Policy::Background, Policy::Foreground] {
        let mut world = World::new();
        let mut a = world.create(0, "a", vec![]);
        let b = world.create(1, "b", vec![owner(&a, "A", true)]);
        a.owners = vec![owner(&b, "B", true)];
        let a = world.write(a);
        world.settle();
        assert_eq!(
            names(&world),
            ["a", "b"],
            "a circle alone is no reason to go"
        );
        world.delete(&a.uid, policy);
        world.settle();
        assert!(world.objects.is_empty(), "{policy:?}: {:?}", world.done);
    }
}

#[test]
fn orphans_lose_their_owner_and_stay() {
    let mut world = World::new();
    let a = world.create(0, "a", vec![]);
    let b = world.create(1, "b", vec![owner(&a, "A", true)]);
    world.settle();
    world.delete(&a.uid, Policy::Orphan);
    world.settle();
    assert_eq!(names(&world), ["b"]);
    assert!(world.objects[&b.uid].owners.is_empty());
    assert_eq!(world.done, ["drop owners of b", "release a"]);
}

#[test]
fn an_owner_in_another_namespace_is_none_and_that_is_said() {
    let mut world = World::new();
    let a = world.create(0, "a", vec![]);
    world.create_in("far", 1, "b", vec![owner(&a, "A", true)]);
    let near = world.create(1, "c", vec![owner(&a, "A", true)]);
    world.settle();
    assert_eq!(names(&world), ["a", "c"]);
    assert!(
        world.done.contains(&"b: a is elsewhere".to_owned()),
        "{:?}",
        world.done
    );
    assert_eq!(world.objects[&near.uid].owners.len(), 1);
}

#[test]
fn owners_outside_namespaces_own_across_them() {
    let mut world = World::new();
    let wide = world.create(2, "wide", vec![]);
    world.create(1, "b", vec![owner(&wide, "Wide", true)]);
    world.settle();
    assert_eq!(names(&world), ["b", "wide"]);
    world.delete(&wide.uid, Policy::Background);
    world.settle();
    assert!(world.objects.is_empty());
}

#[test]
fn what_cannot_be_understood_is_left_alone() {
    let mut world = World::new();
    let a = world.create(0, "a", vec![]);
    world.create(1, "odd", vec![owner(&a, "Unheard", true)]);
    world.create(2, "high", vec![owner(&a, "A", true)]);
    world.delete(&a.uid, Policy::Background);
    world.settle();
    assert_eq!(names(&world), ["high", "odd"]);
}

#[test]
fn an_owner_that_nobody_has_seen_is_looked_for_once_and_again_if_that_said_nothing() {
    let mut world = World::new();
    let a = world.create(0, "a", vec![]);
    world.create(1, "b", vec![owner(&a, "A", true)]);
    world.create(1, "c", vec![owner(&a, "A", true)]);
    world.deliver(1);
    world.deliver(1);
    let asked = world.graph.take(10);
    let [Action::Verify(lookup)] = &asked[..] else {
        panic!("{asked:?}")
    };
    assert!(world.graph.take(10).is_empty());
    world.graph.found(lookup, Found::Unclear);
    assert!(world.graph.take(10).is_empty());
    world.graph.reconsider(lookup);
    assert_eq!(world.graph.take(10), asked);
    world.graph.found(lookup, Found::Present);
    assert!(world.graph.take(10).is_empty());
    world.graph.reconsider(lookup);
    assert_eq!(world.graph.take(10), asked, "present and yet unseen");
    world.graph.found(lookup, Found::Present);
    world.settle();
    world.graph.reconsider(lookup);
    assert!(world.graph.take(10).is_empty(), "now it is seen");
}

#[test]
fn nothing_happens_before_everything_was_seen() {
    let mut world = World::new();
    let mut a = world.create(0, "a", vec![]);
    (a.deleting, a.finalizers) = (true, vec![FOREGROUND.into()]);
    let mut graph = Graph::new();
    graph.observe(a.clone());
    assert!(graph.take(10).is_empty());
    graph.synced();
    assert_eq!(graph.take(10).len(), 1);
    assert!(
        graph.take(10).is_empty(),
        "what is under way is not begun again"
    );
    assert_eq!(graph.ended(&a.uid, Outcome::Failed), Some(1));
    graph.retry(&a.uid);
    assert_eq!(graph.take(10).len(), 1);
}
