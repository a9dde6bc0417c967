//! Finds pods by their uid: a hash table of numbers alone that grows by one bucket at a time.
//!
//! A `HashMap` holds every key again, takes twice the room when it is full, and looks at all of it in that one
//! event. Here the uid is read where it is kept anyway, in the pod's view, and each new pod divides one
//! bucket (linear hashing). It does not know pods: whoever asks says what the uid of a number is.

use std::hash::{BuildHasher, RandomState};

use super::chunks::Chunks;
use super::pods::{NOBODY, PodId};

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Uids {
    /// The first pod of each bucket: as many as there ever were pods at a time.
    heads: Chunks<PodId>,
    /// By pod: the next of its bucket.
    nexts: Chunks<PodId>,
    count: usize,
    hasher: RandomState,
}

impl Uids {
    /// The pod of this uid.
    pub(super) fn find<'a>(&self, uid: &str, uid_of: impl Fn(PodId) -> &'a str) -> Option<PodId> {
        if self.count == 0 {
            return None;
        }
        let mut at = self.heads[self.bucket(uid)];
        while at != NOBODY && uid_of(at) != uid {
            at = self.nexts[at as usize];
        }
        (at != NOBODY).then_some(at)
    }

    /// Enters a pod that is not there yet.
    pub(super) fn insert<'a>(&mut self, pod: PodId, uid_of: impl Fn(PodId) -> &'a str) {
        while self.nexts.len() <= pod as usize {
            self.nexts.push(NOBODY);
        }
        self.count += 1;
        if self.count > self.heads.len() {
            self.divide(&uid_of);
        }
        self.link(pod, uid_of(pod));
    }

    /// Takes out a pod that is there.
    pub(super) fn remove(&mut self, pod: PodId, uid: &str) {
        let bucket = self.bucket(uid);
        let next = std::mem::replace(&mut self.nexts[pod as usize], NOBODY);
        let mut at = self.heads[bucket];
        if at == pod {
            self.heads[bucket] = next;
        } else {
            while self.nexts[at as usize] != pod {
                at = self.nexts[at as usize];
            }
            self.nexts[at as usize] = next;
        }
        self.count -= 1;
    }

    /// One bucket more: it shares the pods of the one whose turn it is.
    fn divide<'a>(&mut self, uid_of: &impl Fn(PodId) -> &'a str) {
        let new = self.heads.len();
        self.heads.push(NOBODY);
        if new == 0 {
            return;
        }
        let divided = new - (1 << new.ilog2());
        let mut at = std::mem::replace(&mut self.heads[divided], NOBODY);
        while at != NOBODY {
            let next = self.nexts[at as usize];
            self.link(at, uid_of(at));
            at = next;
        }
    }

    fn link(&mut self, pod: PodId, uid: &str) {
        let bucket = self.bucket(uid);
        self.nexts[pod as usize] = std::mem::replace(&mut self.heads[bucket], pod);
    }

    /// As many bits of the hash as there are buckets for; one less where the bucket is not there yet.
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

    /// Pods that come and go, some numbers given anew to others, as a plain set would have it.
    #[test]
    fn finds_what_is_there_and_nothing_else() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut uids = Uids::default();
        let mut names: Vec<String> = Vec::new();
        let mut present = BTreeSet::new();
        for step in 0..4_000 {
            let absent = (0..names.len()).find(|pod| !present.contains(pod));
            if let Some(pod) = absent.filter(|_| random.bool()) {
                names[pod] = format!("uid-{step}");
                uids.insert(u32::try_from(pod).unwrap(), |pod| &names[pod as usize]);
                present.insert(pod);
            } else if absent.is_none() || random.u8(..) < 100 {
                names.push(format!("uid-{step}"));
                let pod = names.len() - 1;
                uids.insert(u32::try_from(pod).unwrap(), |pod| &names[pod as usize]);
                present.insert(pod);
            } else if let Some(pod) = random.choice(present.clone()) {
                uids.remove(u32::try_from(pod).unwrap(), &names[pod]);
                present.remove(&pod);
            }
            for pod in [random.usize(..names.len()), names.len() - 1] {
                let found = uids.find(&names[pod], |pod| &names[pod as usize]);
                let expected = present.contains(&pod).then(|| u32::try_from(pod).unwrap());
                assert_eq!(found, expected, "step {step}");
            }
        }
        assert!(names.len() > 600, "{}", names.len());
        assert_eq!(uids.find("uid-x", |pod| &names[pod as usize]), None);
    }

    #[test]
    fn buckets_stay_short_however_many_there_are() {
        let names: Vec<String> = (0..10_000).map(|pod| format!("uid-{pod}")).collect();
        let mut uids = Uids::default();
        for pod in 0..10_000 {
            uids.insert(pod, |pod| &names[pod as usize]);
        }
        let asked = std::cell::Cell::new(0);
        for name in &names {
            uids.find(name, |pod| {
                asked.set(asked.get() + 1);
                &names[pod as usize]
            });
        }
        assert!(asked.get() < 20_000, "{}", asked.get());
    }
}
