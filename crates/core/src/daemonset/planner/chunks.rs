//! A list that grows by pieces: what it holds is never moved, and hardly more room is taken than is needed.
//!
//! A `Vec` that grows takes twice the room, copies everything there, and lets the old half go; of the largest
//! lists the process would keep all of that. Items are found by their number and never taken out.

use std::ops::{Index, IndexMut};

/// What a piece takes at most: a block that an allocator hands out from a page it shares with others.
const PIECE_BYTES: usize = 8192;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Chunks<T> {
    /// All but the last are full.
    pieces: Vec<Vec<T>>,
}

impl<T> Default for Chunks<T> {
    fn default() -> Self {
        Self { pieces: Vec::new() }
    }
}

impl<T> Chunks<T> {
    /// How many items make a piece: a power of two, so that a number is split quickly.
    const PIECE: usize = 1 << (PIECE_BYTES / size_of::<T>()).ilog2();

    pub(super) fn len(&self) -> usize {
        let last = self.pieces.last().map_or(Self::PIECE, Vec::len);
        self.pieces.len() * Self::PIECE + last - Self::PIECE
    }

    pub(super) fn get(&self, at: usize) -> Option<&T> {
        self.pieces.get(at / Self::PIECE)?.get(at % Self::PIECE)
    }

    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        self.pieces
            .get_mut(at / Self::PIECE)?
            .get_mut(at % Self::PIECE)
    }

    pub(super) fn push(&mut self, item: T) {
        match self.pieces.last_mut() {
            Some(last) if last.len() < Self::PIECE => last.push(item),
            // Whoever needs one piece may need only a bit of it; whoever needs more will fill the next.
            None => self.pieces.push(vec![item]),
            Some(_) => {
                let mut piece = Vec::with_capacity(Self::PIECE);
                piece.push(item);
                self.pieces.push(piece);
            }
        }
    }
}

impl<T: Default> Chunks<T> {
    /// Appends empty items until there are so many.
    pub(super) fn grow_to(&mut self, len: usize) {
        for _ in self.len()..len {
            self.push(T::default());
        }
    }
}

impl<T> Index<usize> for Chunks<T> {
    type Output = T;

    fn index(&self, at: usize) -> &T {
        &self.pieces[at / Self::PIECE][at % Self::PIECE]
    }
}

impl<T> IndexMut<usize> for Chunks<T> {
    fn index_mut(&mut self, at: usize) -> &mut T {
        &mut self.pieces[at / Self::PIECE][at % Self::PIECE]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIECE: usize = Chunks::<usize>::PIECE;

    fn filled(len: usize) -> Chunks<usize> {
        let mut chunks = Chunks::default();
        for item in 0..len {
            assert_eq!(chunks.len(), item);
            chunks.push(item);
        }
        chunks
    }

    #[test]
    fn every_item_is_found_by_its_number() {
        for len in [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE] {
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
    fn growing_keeps_what_is_there_and_never_shrinks() {
        let mut chunks = filled(2);
        chunks.grow_to(PIECE + 1);
        assert_eq!(chunks.len(), PIECE + 1);
        assert_eq!((chunks[1], chunks[2], chunks[PIECE]), (1, 0, 0));
        chunks.grow_to(1);
        assert_eq!(chunks.len(), PIECE + 1);
    }

    #[test]
    fn nothing_is_moved_and_no_more_than_a_piece_is_spare() {
        let mut chunks = filled(PIECE);
        let (first, middle): (*const usize, *const usize) =
            (&raw const chunks[0], &raw const chunks[PIECE / 2]);
        for item in PIECE..=10 * PIECE {
            chunks.push(item);
        }
        assert_eq!(
            (first, middle),
            (&raw const chunks[0], &raw const chunks[PIECE / 2])
        );
        let room: usize = chunks.pieces.iter().map(Vec::capacity).sum();
        assert_eq!(room, 11 * PIECE);
    }

    #[test]
    fn a_small_list_takes_little() {
        assert!(filled(3).pieces[0].capacity() <= 4);
    }
}
