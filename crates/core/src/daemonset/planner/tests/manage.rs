//! The decision per node (rules 3.3 to 3.6).

use super::desk::{Desk, set, updated};
use crate::daemonset::event::{Event, FailureKind};

#[test]
fn s3_4_creates_where_nothing_is() {
    let mut desk = Desk::new(crate::daemonset::Options::default(), &["a", "b"]);
    let mut asked = desk.tell(set(|_| {}));
    asked.sort();
    assert_eq!(asked, ["create a", "create b"]);
    assert_eq!(desk.counters("ds"), [2, 0, 0, 0, 0, 0]);
    assert_eq!(desk.pod(updated("p", "a")), [""; 0]);
    assert_eq!(desk.counters("ds"), [2, 1, 0, 1, 1, 1]);
    desk.done("create a");
    assert_eq!(desk.fail("create b", FailureKind::Refused), [""; 0]);
    assert_eq!(desk.pass(200), ["create b"]);
    assert_eq!(desk.tell(Event::NodeGone("b".into())), [""; 0]);
    assert_eq!(desk.counters("ds"), [1, 1, 0, 1, 1, 1]);
}
