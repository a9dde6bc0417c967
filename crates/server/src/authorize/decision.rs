//! The decision of one authoriser, and of all of them together.

use std::borrow::Cow;

/// The decision of one authoriser. None can deny: a request that no authoriser allows is denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Opinion {
    /// With the reason, which may be empty.
    Allow(Cow<'static, str>),
    /// With the reason, which may be empty.
    NoOpinion(Cow<'static, str>),
}

impl Opinion {
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
    /// The first opinion that allows decides; otherwise the reasons are joined. It evaluates opinions only
    /// until one allows.
    pub(crate) fn of(opinions: impl IntoIterator<Item = Opinion>) -> Self {
        let mut reasons: Vec<Cow<'static, str>> = Vec::new();
        for opinion in opinions {
            match opinion {
                Opinion::Allow(reason) => {
                    return Self {
                        allowed: true,
                        reason: reason.into_owned(),
                    };
                }
                Opinion::NoOpinion(reason) if reason.is_empty() => {}
                Opinion::NoOpinion(reason) => reasons.push(reason),
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
        let no = |why: &'static str| Opinion::NoOpinion(why.into());
        let yes = |why: &'static str| Opinion::Allow(why.into());
        let check = |opinions: Vec<Opinion>, allowed: bool, reason: &str| {
            let verdict = Verdict::of(opinions);
            assert_eq!(
                (verdict.allowed, verdict.reason.as_str()),
                (allowed, reason)
            );
        };
        check(vec![], false, "");
        check(vec![Opinion::NONE, yes("a"), yes("b")], true, "a");
        check(vec![no("a"), Opinion::NONE, no("b")], false, "a\nb");
        check(vec![no("a"), yes("")], true, "");
    }
}
