//! Ids of pods, DaemonSets and nodes: indexes into the tables that hold them.
//!
//! They are stored plus one in a `NonZeroU32`, so that `Option<PodId>` takes four bytes as well: the planner keeps
//! millions of them.

use std::num::NonZeroU32;

macro_rules! id {
    ($name:ident, $what:literal) => {
        #[doc = concat!("The index of a ", $what, " in its table.")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) struct $name(NonZeroU32);

        impl $name {
            pub(crate) fn from_index(index: usize) -> Self {
                let plus_one = u32::try_from(index + 1).ok().and_then(NonZeroU32::new);
                Self(plus_one.expect(concat!("there are fewer than four billion ", $what, "s")))
            }

            #[inline]
            pub(crate) fn index(self) -> usize {
                self.0.get() as usize - 1
            }
        }

        const _: () = assert!(size_of::<Option<$name>>() == 4);
    };
}

id!(PodId, "pod");
id!(SetId, "DaemonSet");
id!(NodeId, "node");
