//! The annotations that admission adds to the event of a request. They travel to it as an extension of the response.

use std::borrow::Cow;

#[derive(Clone, Debug, Default)]
pub(crate) struct Annotations(Vec<(&'static str, Cow<'static, str>)>);

impl Annotations {
    pub(crate) fn add(&mut self, key: &'static str, value: impl Into<Cow<'static, str>>) {
        self.0.push((key, value.into()));
    }

    pub(crate) fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'static str, String)> {
        self.0.iter().map(|(key, value)| (*key, value.to_string()))
    }
}
