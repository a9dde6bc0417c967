//! Short strings as numbers: the hashes and generations that pods carry as labels.
//!
//! There are as many as there were templates, so none is ever forgotten.

use std::collections::HashMap;
use std::sync::Arc;

/// A string's number. 0 is for none.
pub(super) type Symbol = u32;
pub(super) const NONE: Symbol = 0;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Symbols {
    numbers: HashMap<Arc<str>, Symbol>,
}

impl Symbols {
    /// The number of a string; [`NONE`] for none and for an empty one.
    pub(super) fn number(&mut self, text: Option<&str>) -> Symbol {
        let Some(text) = text.filter(|text| !text.is_empty()) else {
            return NONE;
        };
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let next = Symbol::try_from(self.numbers.len() + 1).expect("fewer than four billion");
        self.numbers.insert(text.into(), next);
        next
    }
}
