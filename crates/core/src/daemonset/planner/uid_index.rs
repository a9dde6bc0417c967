//! Finds pods by uid: a hash table that stores ids alone and grows by one bucket at a time (linear hashing).
//!
//! A `HashMap` would hold every uid a second time, double its memory when it is full, and rehash everything in that one
//! event. This table reads the uid where it already is, in the pod's view, and splits one bucket per new pod. Callers
//! pass a function from id to uid.

use std::hash::{BuildHasher, RandomState};

use super::chunked_vec::ChunkedVec;
use crate::ids::PodId;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct UidIndex {
    /// The first pod of each bucket. There are as many buckets as there ever were pods at a time.
    heads: ChunkedVec<Option<PodId>>,
    /// By pod: the next pod of its bucket.
    nexts: ChunkedVec<Option<PodId>>,
    count: usize,
    hasher: RandomState,
}

impl UidIndex {
    pub(super) fn find<'a>(&self, uid: &str, uid_of: impl Fn(PodId) -> &'a str) -> Option<PodId> {
        if self.count == 0 {
            return None;
        }
        let mut at = self.heads[self.bucket(uid)];
        while let Some(pod) = at
            && uid_of(pod) != uid
        {
            at = self.nexts[pod.index()];
        }
        at
    }

    /// Adds a pod that is not in the table.
    pub(super) fn insert<'a>(&mut self, pod: PodId, uid_of: impl Fn(PodId) -> &'a str) {
        self.nexts.grow_to(pod.index() + 1);
        self.count += 1;
        if self.count > self.heads.len() {
            self.split_bucket(&uid_of);
        }
        self.link(pod, uid_of(pod));
    }

    /// Removes a pod that is in the table.
    pub(super) fn remove(&mut self, pod: PodId, uid: &str) {
        let bucket = self.bucket(uid);
        let next = self.nexts[pod.index()].take();
        if self.heads[bucket] == Some(pod) {
            self.heads[bucket] = next;
        } else {
            let mut before = self.heads[bucket];
            while let Some(at) = before
                && self.nexts[at.index()] != Some(pod)
            {
                before = self.nexts[at.index()];
            }
            let before = before.expect("the pod is in its bucket");
            self.nexts[before.index()] = next;
        }
        self.count -= 1;
    }

    /// Adds a bucket and moves some pods of the next bucket in line to it.
    fn split_bucket<'a>(&mut self, uid_of: &impl Fn(PodId) -> &'a str) {
        let new = self.heads.len();
        self.heads.push(None);
        if new == 0 {
            return;
        }
        let split = new - (1 << new.ilog2());
        let mut next = self.heads[split].take();
        while let Some(pod) = next {
            next = self.nexts[pod.index()];
            self.link(pod, uid_of(pod));
        }
    }

    fn link(&mut self, pod: PodId, uid: &str) {
        let bucket = self.bucket(uid);
        self.nexts[pod.index()] = self.heads[bucket].replace(pod);
    }

    /// Uses as many bits of the hash as there are buckets for; one bit fewer where that bucket does not exist yet.
    fn bucket(&self, uid: &str) -> usize {
        let buckets = self.heads.len();
        let all = buckets.next_power_of_two();
        #[expect(clippy::cast_possible_truncation, reason = "only low bits are used")]
        let bits = self.hasher.hash_one(uid) as usize & (all - 1);
        if bits < buckets { bits } else { bits - all / 2 }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Compares against a set while pods come and go and ids are reused.
    #[test]
    fn finds_every_pod_in_the_table_and_no_other() {
        kennel_test_support::with_seeds([1], pods_come_and_go);
    }

    fn pods_come_and_go(seed: u64) {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut uids = UidIndex::default();
        let mut names: Vec<String> = Vec::new();
        let mut present = BTreeSet::new();
        for step in 0..4_000 {
            let absent = (0..names.len()).find(|pod| !present.contains(pod));
            if let Some(pod) = absent.filter(|_| random.bool()) {
                names[pod] = format!("uid-{step}");
                uids.insert(PodId::from_index(pod), |pod| &names[pod.index()]);
                present.insert(pod);
            } else if absent.is_none() || random.u8(..) < 100 {
                names.push(format!("uid-{step}"));
                let pod = names.len() - 1;
                uids.insert(PodId::from_index(pod), |pod| &names[pod.index()]);
                present.insert(pod);
            } else if let Some(pod) = random.choice(present.clone()) {
                uids.remove(PodId::from_index(pod), &names[pod]);
                present.remove(&pod);
            }
            for pod in [random.usize(..names.len()), names.len() - 1] {
                let found = uids.find(&names[pod], |pod| &names[pod.index()]);
                let expected = present.contains(&pod).then(|| PodId::from_index(pod));
                assert_eq!(found, expected, "step {step}");
            }
        }
        assert!(names.len() > 600, "{}", names.len());
        assert_eq!(uids.find("uid-x", |pod| &names[pod.index()]), None);
    }

    #[test]
    fn buckets_stay_short_however_many_there_are() {
        let names: Vec<String> = (0..10_000).map(|pod| format!("uid-{pod}")).collect();
        let mut uids = UidIndex::default();
        for pod in 0..10_000 {
            uids.insert(PodId::from_index(pod), |pod| &names[pod.index()]);
        }
        let asked = std::cell::Cell::new(0);
        for name in &names {
            uids.find(name, |pod| {
                asked.set(asked.get() + 1);
                &names[pod.index()]
            });
        }
        assert!(asked.get() < 20_000, "{}", asked.get());
    }
}
