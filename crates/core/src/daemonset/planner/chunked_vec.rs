//! A vector that grows in chunks of at most 16 KiB: items never move, and at most one chunk is spare.
//!
//! A growing `Vec` allocates twice its size, copies everything and frees the old half, which the process then keeps
//! resident; for the planner's largest tables that would double the memory. Items are never removed.

use std::ops::{Index, IndexMut};

/// Upper bound of a chunk: small enough that allocators serve it from a shared page.
const CHUNK_BYTES: usize = 16384;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct ChunkedVec<T> {
    /// All but the last are full.
    chunks: Vec<Vec<T>>,
}

impl<T> Default for ChunkedVec<T> {
    fn default() -> Self {
        Self { chunks: Vec::new() }
    }
}

impl<T> ChunkedVec<T> {
    /// Items per chunk: a power of two, so that an index splits with shifts.
    const CHUNK: usize = 1 << (CHUNK_BYTES / size_of::<T>()).ilog2();

    pub(super) fn len(&self) -> usize {
        let last = self.chunks.last().map_or(Self::CHUNK, Vec::len);
        self.chunks.len() * Self::CHUNK + last - Self::CHUNK
    }

    pub(super) fn get(&self, at: usize) -> Option<&T> {
        self.chunks.get(at / Self::CHUNK)?.get(at % Self::CHUNK)
    }

    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        self.chunks
            .get_mut(at / Self::CHUNK)?
            .get_mut(at % Self::CHUNK)
    }

    pub(super) fn push(&mut self, item: T) {
        match self.chunks.last_mut() {
            Some(last) if last.len() < Self::CHUNK => last.push(item),
            // The first chunk grows like a `Vec`, since many tables stay small; later chunks will be filled.
            None => self.chunks.push(vec![item]),
            Some(_) => {
                let mut chunk = Vec::with_capacity(Self::CHUNK);
                chunk.push(item);
                self.chunks.push(chunk);
            }
        }
    }
}

impl<T: Default> ChunkedVec<T> {
    /// Appends default items until the length is `len`.
    pub(super) fn grow_to(&mut self, len: usize) {
        for _ in self.len()..len {
            self.push(T::default());
        }
    }
}

impl<T> Index<usize> for ChunkedVec<T> {
    type Output = T;

    fn index(&self, at: usize) -> &T {
        &self.chunks[at / Self::CHUNK][at % Self::CHUNK]
    }
}

impl<T> IndexMut<usize> for ChunkedVec<T> {
    fn index_mut(&mut self, at: usize) -> &mut T {
        &mut self.chunks[at / Self::CHUNK][at % Self::CHUNK]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNK: usize = ChunkedVec::<usize>::CHUNK;

    fn filled(len: usize) -> ChunkedVec<usize> {
        let mut chunks = ChunkedVec::default();
        for item in 0..len {
            assert_eq!(chunks.len(), item);
            chunks.push(item);
        }
        chunks
    }

    #[test]
    fn every_item_is_found_by_its_index() {
        for len in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK] {
            let mut chunks = filled(len);
            assert_eq!(chunks.len(), len);
            assert_eq!(chunks.get(len), None);
            assert_eq!(chunks.get_mut(len), None);
            for item in 0..len {
                assert_eq!(chunks.get(item), Some(&item));
                chunks[item] += 1;
                assert_eq!(chunks[item], item + 1);
            }
        }
    }

    #[test]
    fn grow_to_keeps_items_and_never_shrinks() {
        let mut chunks = filled(2);
        chunks.grow_to(CHUNK + 1);
        assert_eq!(chunks.len(), CHUNK + 1);
        assert_eq!((chunks[1], chunks[2], chunks[CHUNK]), (1, 0, 0));
        chunks.grow_to(1);
        assert_eq!(chunks.len(), CHUNK + 1);
    }

    #[test]
    fn items_never_move_and_at_most_one_chunk_is_spare() {
        let mut chunks = filled(CHUNK);
        let (first, middle): (*const usize, *const usize) =
            (&raw const chunks[0], &raw const chunks[CHUNK / 2]);
        for item in CHUNK..=10 * CHUNK {
            chunks.push(item);
        }
        assert_eq!(
            (first, middle),
            (&raw const chunks[0], &raw const chunks[CHUNK / 2])
        );
        let room: usize = chunks.chunks.iter().map(Vec::capacity).sum();
        assert_eq!(room, 11 * CHUNK);
    }

    #[test]
    fn a_small_vector_takes_little() {
        assert!(filled(3).chunks[0].capacity() <= 4);
    }
}
