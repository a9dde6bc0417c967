//! Makes answers of a right history wrong, one by one: each must be found.

use kennel_testkit::history::{Answer, Call, History, List, Rule, Seen, Step, check};

/// What is wrong, and the rule that must notice.
type Mutation = (&'static str, fn(&mut History, &mut fastrand::Rng), Rule);

const MUTATIONS: [Mutation; 7] = [
    ("a stale read", stale_read, Rule::Linearizability),
    ("a forgotten write", forgotten_write, Rule::Linearizability),
    ("a stale list", stale_list, Rule::List),
    ("a lost event", lost_event, Rule::WatchGap),
    ("an event twice", event_twice, Rule::WatchOrder),
    ("events out of order", events_swapped, Rule::WatchOrder),
    ("an early bookmark", early_bookmark, Rule::Bookmark),
];

/// # Panics
/// If the checker does not find one of them.
pub(super) fn each_is_found(history: &History, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    for (what, mutate, rule) in MUTATIONS {
        let mut wrong = history.clone();
        mutate(&mut wrong, &mut random);
        let found = check(&wrong).expect_err(what);
        let rules: Vec<Rule> = found.iter().map(|violation| violation.rule).collect();
        assert!(rules.contains(&rule), "{what}: {rules:?}");
    }
}

fn pick<T>(random: &mut fastrand::Rng, mut candidates: Vec<T>) -> T {
    assert!(!candidates.is_empty(), "the history has no such place");
    candidates.swap_remove(random.usize(..candidates.len()))
}

/// For each read that showed an object: its place, and what the object had been before its last change.
fn stale_reads(history: &History) -> Vec<(usize, Seen)> {
    let operations = &history.operations;
    let writes: Vec<_> = operations
        .iter()
        .filter_map(|write| match &write.answer {
            Answer::Shown(seen) if write.call != Call::Get => Some((write, seen)),
            _ => None,
        })
        .collect();
    let reads = operations.iter().enumerate().filter_map(|(index, read)| {
        let Answer::Shown(shown) = &read.answer else {
            return None;
        };
        let of_key = writes.iter().filter(|(write, _)| write.key == read.key);
        let older = of_key.filter(|(_, seen)| seen.revision < shown.revision);
        let (_, older) = older.max_by_key(|(_, seen)| seen.revision)?;
        // The write that the read showed had been acknowledged.
        let written = writes
            .iter()
            .any(|(write, seen)| *seen == shown && write.returned < read.invoked);
        (read.call == Call::Get && written).then(|| (index, (*older).clone()))
    });
    reads.collect()
}

fn stale_read(history: &mut History, random: &mut fastrand::Rng) {
    let (index, older) = pick(random, stale_reads(history));
    history.operations[index].answer = Answer::Shown(older);
}

/// A read finds nothing of an acknowledged write, though nobody deletes meanwhile.
fn forgotten_write(history: &mut History, random: &mut fastrand::Rng) {
    let mut reads = stale_reads(history);
    reads.retain(|(index, _)| {
        let read = &history.operations[*index];
        let mut others = history.operations.iter();
        !others.any(|other| {
            let may_delete = other.key == read.key && matches!(other.call, Call::Delete { .. });
            may_delete && other.invoked <= read.returned && read.invoked <= other.returned
        })
    });
    let (index, _) = pick(random, reads);
    history.operations[index].answer = Answer::NotFound;
}

fn stale_list(history: &mut History, random: &mut fastrand::Rng) {
    // Of those that all watchers have begun before.
    let begun = history
        .streams
        .iter()
        .filter_map(|stream| match stream.steps.first() {
            Some(Step::Listed(list)) => Some(list.revision),
            _ => None,
        });
    let begun = begun.max().expect("watchers begin with a list");
    let lists = history.lists.iter_mut();
    let shows_later = |list: &&mut List| list.objects.values().any(|seen| seen.revision > begun);
    let list = pick(random, lists.filter(shows_later).collect());
    let newest = list.objects.values().map(|seen| seen.revision).max();
    let newest = newest.expect("it has objects");
    list.objects.retain(|_, seen| seen.revision < newest);
}

/// The steps of a watcher of all objects, and the places of events that another one follows.
fn events(history: &mut History) -> (&mut Vec<Step>, Vec<usize>) {
    let mut whole = history.streams.iter_mut();
    let stream = whole.find(|stream| stream.only.is_none());
    let steps = &mut stream.expect("there is such a watcher").steps;
    let is_event = |step: &Step| matches!(step, Step::Event { .. });
    let pairs = steps.windows(2).enumerate();
    let places = pairs.filter(|(_, pair)| pair.iter().all(is_event));
    // The others watch as well by the middle of a round.
    let middle = steps.len() / 2;
    let places = places
        .map(|(place, _)| place)
        .filter(|place| *place > middle);
    let places = places.collect();
    (steps, places)
}

fn lost_event(history: &mut History, random: &mut fastrand::Rng) {
    let (steps, places) = events(history);
    steps.remove(pick(random, places));
}

fn event_twice(history: &mut History, random: &mut fastrand::Rng) {
    let (steps, places) = events(history);
    let place = pick(random, places);
    steps.insert(place, steps[place].clone());
}

fn events_swapped(history: &mut History, random: &mut fastrand::Rng) {
    let (steps, places) = events(history);
    let place = pick(random, places);
    steps.swap(place, place + 1);
}

fn early_bookmark(history: &mut History, random: &mut fastrand::Rng) {
    let (steps, places) = events(history);
    let place = pick(random, places);
    if let Step::Event { seen, at, .. } = &steps[place + 1] {
        let (revision, at) = (seen.revision, *at);
        steps.insert(place + 1, Step::Bookmark { revision, at });
    }
}
