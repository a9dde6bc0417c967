//! A list of short texts in two allocations. Heads have dozens of them, one head is kept for each state in memory, and an
//! allocation for each text would take more than the texts themselves.

/// Texts in a fixed order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Texts {
    /// All of them, one after the other.
    joined: Box<str>,
    /// Where each ends.
    ends: Box<[u32]>,
}

impl Texts {
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub fn get(&self, at: usize) -> Option<&str> {
        let end = *self.ends.get(at)?;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.joined.get(start as usize..end as usize)
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).filter_map(|at| self.get(at))
    }
}

impl<T: AsRef<str>> FromIterator<T> for Texts {
    fn from_iter<I: IntoIterator<Item = T>>(texts: I) -> Self {
        let (mut joined, mut ends) = (String::new(), Vec::new());
        for text in texts {
            joined.push_str(text.as_ref());
            let end = u32::try_from(joined.len()).expect("objects are smaller than 4 GiB");
            ends.push(end);
        }
        Self {
            joined: joined.into(),
            ends: ends.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back_in_their_order() {
        let texts: Texts = ["app", "", "größe", "x"].into_iter().collect();
        let listed: Vec<&str> = texts.iter().collect();
        assert_eq!(listed, ["app", "", "größe", "x"]);
        assert_eq!((texts.get(1), texts.get(4)), (Some(""), None));
        assert_eq!(Texts::default().get(0), None);
    }
}
