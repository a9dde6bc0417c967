//! What one authoriser says of a request, and what all of them together decide.

use std::borrow::Cow;

/// What one authoriser says. None can forbid: what nobody allows is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Opinion {
    /// It may be done; the reason, where there is one to give.
    Allow(Cow<'static, str>),
    /// Not for this authoriser to allow; why, where it has something to say about it.
    NoOpinion(Cow<'static, str>),
}

impl Opinion {
    /// Silence.
    pub(crate) const NONE: Self = Self::NoOpinion(Cow::Borrowed(""));

    /// Whether it is allowed.
    pub(crate) fn allows(&self) -> bool {
        matches!(self, Self::Allow(_))
    }
}

/// The decision about a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// Whether it may be done.
    pub(crate) allowed: bool,
    /// Why, or why not; empty when there is nothing to say.
    pub(crate) reason: String,
}

impl Verdict {
    /// The first opinion that allows decides; what the others say adds up. Opinions are asked for only as
    /// long as nobody allows.
    pub(crate) fn of(opinions: impl IntoIterator<Item = Opinion>) -> Self {
        let mut said: Vec<Cow<'static, str>> = Vec::new();
        for opinion in opinions {
            match opinion {
                Opinion::Allow(reason) => {
                    return Self {
                        allowed: true,
                        reason: reason.into_owned(),
                    };
                }
                Opinion::NoOpinion(reason) if reason.is_empty() => {}
                Opinion::NoOpinion(reason) => said.push(reason),
            }
        }
        Self {
            allowed: false,
            reason: said.join("\n"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_allows_decides_and_silence_refuses() {
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
