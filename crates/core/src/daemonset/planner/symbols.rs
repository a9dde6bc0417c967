//! Interns the hashes and generations that pods carry as labels.
//!
//! There are as many as there were templates, so entries are never removed.

use std::collections::HashMap;
use std::sync::Arc;

/// An interned string.
pub(super) type Symbol = u32;
/// An absent or empty string.
pub(super) const NONE: Symbol = 0;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Symbols {
    ids: HashMap<Arc<str>, Symbol>,
}

impl Symbols {
    /// [`NONE`] for an absent and for an empty string.
    pub(super) fn intern(&mut self, text: Option<&str>) -> Symbol {
        let Some(text) = text.filter(|text| !text.is_empty()) else {
            return NONE;
        };
        if let Some(symbol) = self.ids.get(text) {
            return *symbol;
        }
        let next = Symbol::try_from(self.ids.len() + 1)
            .expect("there are fewer than four billion templates");
        self.ids.insert(text.into(), next);
        next
    }
}
