//! The decision of one authoriser, and of all of them together.

use std::borrow::Cow;

/// The decision of one authoriser. None can deny: a request that no authoriser allows is denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// With the reason, which may be empty.
    Allow(Cow<'static, str>),
    /// With the reason, which may be empty.
    NoOpinion(Cow<'static, str>),
}

impl Decision {
    /// Without a reason.
    pub(crate) const NONE: Self = Self::NoOpinion(Cow::Borrowed(""));

    pub(crate) fn allows(&self) -> bool {
        matches!(self, Self::Allow(_))
    }
}

/// The decision of all authorisers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) allowed: bool,
    /// May be empty.
    pub(crate) reason: String,
}

impl Verdict {
    /// The first that allows counts; otherwise the reasons are joined. Evaluates them only
    /// until one allows.
    pub(crate) fn of(decisions: impl IntoIterator<Item = Decision>) -> Self {
        let mut reasons: Vec<Cow<'static, str>> = Vec::new();
        for decision in decisions {
            match decision {
                Decision::Allow(reason) => {
                    return Self {
                        allowed: true,
                        reason: reason.into_owned(),
                    };
                }
                Decision::NoOpinion(reason) if reason.is_empty() => {}
                Decision::NoOpinion(reason) => reasons.push(reason),
            }
        }
        Self {
            allowed: false,
            reason: reasons.join("\n"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_allows_decides_and_the_default_is_to_deny() {
        let no = |why: &'static str| Decision::NoOpinion(why.into());
        let yes = |why: &'static str| Decision::Allow(why.into());
        let check = |decisions: Vec<Decision>, allowed: bool, reason: &str| {
            let verdict = Verdict::of(decisions);
            assert_eq!(
                (verdict.allowed, verdict.reason.as_str()),
                (allowed, reason)
            );
        };
        check(vec![], false, "");
        check(vec![Decision::NONE, yes("a"), yes("b")], true, "a");
        check(vec![no("a"), Decision::NONE, no("b")], false, "a\nb");
        check(vec![no("a"), yes("")], true, "");
    }
}
