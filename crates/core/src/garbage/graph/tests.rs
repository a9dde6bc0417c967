//! Tests of the garbage collector's rules.

use super::super::item::FOREGROUND;
use super::fake_api::{FOREIGN, FakeApi, owner};
use super::{Action, Found, Graph, Outcome, Policy};

fn names(api: &FakeApi) -> Vec<&str> {
    let mut names: Vec<&str> = api.objects.values().map(|item| &*item.name).collect();
    names.sort_unstable();
    names
}

#[test]
fn dependents_of_a_deleted_owner_are_deleted_and_others_stay() {
    let mut api = FakeApi::new();
    let a = api.create(0, "a", vec![]);
    let other = api.create(0, "other", vec![]);
    let b = api.create(1, "b", vec![owner(&a, "A", true)]);
    api.create(1, "c", vec![owner(&b, "B", true)]);
    api.create(1, "d", vec![owner(&other, "A", true)]);
    api.converge();
    assert!(api.done.is_empty(), "{:?}", api.done);
    api.delete(&a.uid, Policy::Background);
    api.converge();
    assert_eq!(names(&api), ["d", "other"]);
    assert_eq!(api.graph.len(), 2, "unused nodes are removed");
}

#[test]
fn an_owner_recreated_under_the_same_name_is_another() {
    let mut api = FakeApi::new();
    let old = api.create(0, "a", vec![]);
    api.create(1, "b", vec![owner(&old, "A", true)]);
    api.converge();
    api.delete(&old.uid, Policy::Background);
    api.create(0, "a", vec![]);
    api.converge();
    assert_eq!(names(&api), ["a"]);
}

#[test]
fn an_object_with_an_existing_owner_stays_and_loses_only_the_deleted_one() {
    let mut api = FakeApi::new();
    let a = api.create(0, "a", vec![]);
    let b = api.create(0, "b", vec![]);
    let both = vec![owner(&a, "A", true), owner(&b, "A", true)];
    let c = api.create(1, "c", both);
    api.delete(&a.uid, Policy::Background);
    api.converge();
    assert_eq!(names(&api), ["b", "c"]);
    let left = &api.objects[&c.uid].owners;
    assert_eq!(left.iter().map(|o| &*o.uid).collect::<Vec<_>>(), [&*b.uid]);
    api.delete(&b.uid, Policy::Foreground);
    api.converge();
    assert!(api.objects.is_empty());
}

#[test]
fn a_foreground_deletion_waits_for_blocking_dependents() {
    let mut api = FakeApi::new();
    let a = api.create(0, "a", vec![]);
    let mut slow = api.create(1, "slow", vec![owner(&a, "A", true)]);
    slow.finalizers = vec![FOREIGN.into()];
    let slow = api.write(slow);
    api.create(1, "quick", vec![owner(&a, "A", false)]);
    api.converge();
    api.delete(&a.uid, Policy::Foreground);
    api.converge();
    assert_eq!(names(&api), ["a", "slow"], "it waits for the one");
    let mut slow = api.objects[&slow.uid].clone();
    assert!(slow.deleting);
    slow.finalizers.clear();
    api.write(slow);
    api.converge();
    assert!(api.objects.is_empty());
}

#[test]
fn a_foreground_deletion_does_not_wait_for_nonblocking_dependents() {
    let mut api = FakeApi::new();
    let a = api.create(0, "a", vec![]);
    let mut slow = api.create(1, "slow", vec![owner(&a, "A", false)]);
    slow.finalizers = vec![FOREIGN.into()];
    api.write(slow);
    api.delete(&a.uid, Policy::Foreground);
    api.converge();
    assert_eq!(names(&api), ["slow"]);
}

#[test]
fn a_foreground_deletion_deletes_the_tree_from_its_leaves() {
    let mut api = FakeApi::new();
    let a = api.create(0, "a", vec![]);
    let b = api.create(1, "b", vec![owner(&a, "A", true)]);
    api.create(0, "c", vec![owner(&b, "B", true)]);
    api.converge();
    api.delete(&a.uid, Policy::Foreground);
    api.converge();
    assert!(api.objects.is_empty());
    let expected = [
        "delete b Foreground",
        "delete c Background",
        "release b",
        "release a",
    ];
    assert_eq!(api.done, expected);
}

#[test]
fn cycles_are_broken() {
    for policy in [Policy::Background, Policy::Foreground] {
        let mut api = FakeApi::new();
        let mut a = api.create(0, "a", vec![]);
        let b = api.create(1, "b", vec![owner(&a, "A", true)]);
        a.owners = vec![owner(&b, "B", true)];
        let a = api.write(a);
        api.converge();
        assert_eq!(names(&api), ["a", "b"], "a cycle alone is not deleted");
        api.delete(&a.uid, policy);
        api.converge();
        assert!(api.objects.is_empty(), "{policy:?}: {:?}", api.done);
    }
}

#[test]
fn orphans_lose_their_owner_and_stay() {
    let mut api = FakeApi::new();
    let a = api.create(0, "a", vec![]);
    let b = api.create(1, "b", vec![owner(&a, "A", true)]);
    api.converge();
    api.delete(&a.uid, Policy::Orphan);
    api.converge();
    assert_eq!(names(&api), ["b"]);
    assert!(api.objects[&b.uid].owners.is_empty());
    assert_eq!(api.done, ["drop owners of b", "release a"]);
}

#[test]
fn an_owner_in_another_namespace_is_ignored_and_reported() {
    let mut api = FakeApi::new();
    let a = api.create(0, "a", vec![]);
    api.create_in("far", 1, "b", vec![owner(&a, "A", true)]);
    let near = api.create(1, "c", vec![owner(&a, "A", true)]);
    api.converge();
    assert_eq!(names(&api), ["a", "c"]);
    assert!(
        api.done.contains(&"b: a is elsewhere".to_owned()),
        "{:?}",
        api.done
    );
    assert_eq!(api.objects[&near.uid].owners.len(), 1);
}

#[test]
fn cluster_scoped_owners_own_across_namespaces() {
    let mut api = FakeApi::new();
    let wide = api.create(2, "wide", vec![]);
    api.create(1, "b", vec![owner(&wide, "Wide", true)]);
    api.converge();
    assert_eq!(names(&api), ["b", "wide"]);
    api.delete(&wide.uid, Policy::Background);
    api.converge();
    assert!(api.objects.is_empty());
}

#[test]
fn objects_with_unknown_owner_kinds_are_left_alone() {
    let mut api = FakeApi::new();
    let a = api.create(0, "a", vec![]);
    api.create(1, "odd", vec![owner(&a, "Unheard", true)]);
    api.create(2, "high", vec![owner(&a, "A", true)]);
    api.delete(&a.uid, Policy::Background);
    api.converge();
    assert_eq!(names(&api), ["high", "odd"]);
}

#[test]
fn an_unknown_owner_is_looked_up_once_and_again_if_that_was_inconclusive() {
    let mut api = FakeApi::new();
    let a = api.create(0, "a", vec![]);
    api.create(1, "b", vec![owner(&a, "A", true)]);
    api.create(1, "c", vec![owner(&a, "A", true)]);
    api.deliver(1);
    api.deliver(1);
    let asked = api.graph.take(10);
    let [Action::Verify(lookup)] = &asked[..] else {
        panic!("{asked:?}")
    };
    assert!(api.graph.take(10).is_empty());
    api.graph.found(lookup, Found::Unclear);
    assert!(api.graph.take(10).is_empty());
    api.graph.reconsider(lookup);
    assert_eq!(api.graph.take(10), asked);
    api.graph.found(lookup, Found::Present);
    assert!(api.graph.take(10).is_empty());
    api.graph.reconsider(lookup);
    assert_eq!(api.graph.take(10), asked, "present and yet unseen");
    api.graph.found(lookup, Found::Present);
    api.converge();
    api.graph.reconsider(lookup);
    assert!(api.graph.take(10).is_empty(), "now it is seen");
}

#[test]
fn nothing_happens_before_the_informers_have_synced() {
    let mut api = FakeApi::new();
    let mut a = api.create(0, "a", vec![]);
    (a.deleting, a.finalizers) = (true, vec![FOREGROUND.into()]);
    let mut graph = Graph::default();
    graph.observe(a.clone());
    assert!(graph.take(10).is_empty());
    graph.synced();
    assert_eq!(graph.take(10).len(), 1);
    assert!(
        graph.take(10).is_empty(),
        "what is under way is not begun again"
    );
    assert_eq!(graph.finished(&a.uid, Outcome::Failed), Some(1));
    graph.retry(&a.uid);
    assert_eq!(graph.take(10).len(), 1);
}
