//! Who must go for a critical pod: as few as possible, the least sure of what they have first.

use super::{Admission, Class, Guest, Lack, refuse};

/// Makes room for a guest that lacks this.
pub(super) fn instead(guest: &Guest, others: &[&Guest], lacks: &[Lack]) -> Admission {
    let needs: Vec<(String, i64)> = lacks
        .iter()
        .map(|lack| (lack.resource.clone(), lack.amount()))
        .collect();
    let of = |class: Class| -> Vec<&Guest> {
        let those = others.iter().filter(|other| other.yields_to(guest));
        those
            .filter(|other| other.class == class)
            .copied()
            .collect()
    };
    let (best_effort, burstable) = (of(Class::BestEffort), of(Class::Burstable));
    let guaranteed = of(Class::Guaranteed);
    let every: Vec<&Guest> = [&best_effort[..], &burstable, &guaranteed].concat();
    let short = less(&needs, &every);
    if !short.is_empty() {
        let short: Vec<String> = short
            .iter()
            .map(|(name, amount)| format!("(res: {name}, q: {amount}), "))
            .collect();
        let message = format!(
            "Unexpected error while attempting to recover from admission failure: preemption: error \
             finding a set of pods to preempt: no set of running pods found to reclaim resources: [{}]",
            short.concat()
        );
        return refuse("UnexpectedAdmissionError", &message);
    }
    // Each class gives only what all lesser ones together could not.
    let sure = nearest(
        &guaranteed,
        less(&needs, &[&best_effort[..], &burstable].concat()),
    );
    let middle = nearest(
        &burstable,
        less(&needs, &[&best_effort[..], &sure].concat()),
    );
    let rest = nearest(&best_effort, less(&needs, &[&middle[..], &sure].concat()));
    let victims = [rest, middle, sure].concat();
    Admission::Instead(victims.iter().map(|victim| victim.uid.clone()).collect())
}

/// What a guest gives back when it goes.
fn gives(guest: &Guest, resource: &str) -> i64 {
    let requests = &guest.demand.requests;
    match resource {
        "pods" => 1,
        "cpu" => requests.cpu,
        "memory" => requests.memory,
        "ephemeral-storage" => requests.storage,
        other => requests.other(other),
    }
}

/// What is still needed when these have gone.
fn less(needs: &[(String, i64)], gone: &[&Guest]) -> Vec<(String, i64)> {
    let left = |(name, amount): &(String, i64)| {
        let given: i64 = gone.iter().map(|guest| gives(guest, name)).sum();
        (name.clone(), amount - given)
    };
    let left = needs.iter().map(left);
    left.filter(|(_, amount)| *amount > 0).collect()
}

/// Takes those that come nearest to what is needed, one after the other.
fn nearest<'a>(from: &[&'a Guest], mut needs: Vec<(String, i64)>) -> Vec<&'a Guest> {
    let mut from = from.to_vec();
    let mut taken = Vec::new();
    while !needs.is_empty() && !from.is_empty() {
        let best = (0..from.len()).min_by(|a, b| {
            let (a, b) = (from[*a], from[*b]);
            let size = |guest: &Guest| (guest.demand.requests.memory, guest.demand.requests.cpu);
            distance(a, &needs)
                .total_cmp(&distance(b, &needs))
                .then(size(a).cmp(&size(b)))
        });
        let Some(best) = best else {
            break;
        };
        let guest = from.swap_remove(best);
        needs = less(&needs, &[guest]);
        taken.push(guest);
    }
    taken
}

/// How much would still be needed, each need counting the same.
#[expect(
    clippy::cast_precision_loss,
    reason = "only compared, and amounts are far below 2^52"
)]
fn distance(guest: &Guest, needs: &[(String, i64)]) -> f64 {
    let left = |(name, amount): &(String, i64)| {
        let left = (amount - gives(guest, name)).max(0);
        (left as f64 / *amount as f64).powi(2)
    };
    needs.iter().map(left).sum()
}
