//! Chooses the pods to preempt for a critical pod: as few as possible, of the lowest quality of service class.

use super::{Admission, AdmissionPod, Class, InsufficientResource, reject};

pub(super) fn preempt(
    pod: &AdmissionPod,
    others: &[&AdmissionPod],
    insufficient: &[InsufficientResource],
) -> Admission {
    let needs: Vec<(String, i64)> = insufficient
        .iter()
        .map(|row| (row.resource.clone(), row.missing()))
        .collect();
    let of_class = |class: Class| -> Vec<&AdmissionPod> {
        let preemptible = others.iter().filter(|other| other.yields_to(pod));
        preemptible
            .filter(|other| other.class == class)
            .copied()
            .collect()
    };
    let (best_effort, burstable) = (of_class(Class::BestEffort), of_class(Class::Burstable));
    let guaranteed = of_class(Class::Guaranteed);
    let every: Vec<&AdmissionPod> = [&best_effort[..], &burstable, &guaranteed].concat();
    let short = remaining(&needs, &every);
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
        return reject("UnexpectedAdmissionError", &message);
    }
    // Each class is preempted only for what all lower classes together cannot free.
    let guaranteed = closest(
        &guaranteed,
        remaining(&needs, &[&best_effort[..], &burstable].concat()),
    );
    let burstable = closest(
        &burstable,
        remaining(&needs, &[&best_effort[..], &guaranteed].concat()),
    );
    let best_effort = closest(
        &best_effort,
        remaining(&needs, &[&burstable[..], &guaranteed].concat()),
    );
    let victims = [best_effort, burstable, guaranteed].concat();
    Admission::Preempt(victims.iter().map(|victim| victim.uid.clone()).collect())
}

/// What preempting a pod frees.
fn freed(pod: &AdmissionPod, resource: &str) -> i64 {
    match resource {
        "pods" => 1,
        name => pod.demand.requests.amount(name),
    }
}

/// What is still needed after these pods have gone.
fn remaining(needs: &[(String, i64)], gone: &[&AdmissionPod]) -> Vec<(String, i64)> {
    let left = |(name, amount): &(String, i64)| {
        let given: i64 = gone.iter().map(|pod| freed(pod, name)).sum();
        (name.clone(), amount - given)
    };
    let left = needs.iter().map(left);
    left.filter(|(_, amount)| *amount > 0).collect()
}

/// Picks the pods whose requests are closest to what is needed, one after the other.
fn closest<'a>(from: &[&'a AdmissionPod], mut needs: Vec<(String, i64)>) -> Vec<&'a AdmissionPod> {
    let mut from = from.to_vec();
    let mut taken = Vec::new();
    while !needs.is_empty() && !from.is_empty() {
        let best = (0..from.len()).min_by(|a, b| {
            let (a, b) = (from[*a], from[*b]);
            let size = |pod: &AdmissionPod| (pod.demand.requests.memory, pod.demand.requests.cpu);
            distance(a, &needs)
                .total_cmp(&distance(b, &needs))
                .then(size(a).cmp(&size(b)))
        });
        let Some(best) = best else {
            break;
        };
        let pod = from.swap_remove(best);
        needs = remaining(&needs, &[pod]);
        taken.push(pod);
    }
    taken
}

/// The squared relative distance to what is needed, summed over all resources.
#[expect(
    clippy::cast_precision_loss,
    reason = "only compared, and amounts are far below 2^52"
)]
fn distance(pod: &AdmissionPod, needs: &[(String, i64)]) -> f64 {
    let left = |(name, amount): &(String, i64)| {
        let left = (amount - freed(pod, name)).max(0);
        (left as f64 / *amount as f64).powi(2)
    };
    needs.iter().map(left).sum()
}
