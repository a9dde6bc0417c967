//! The model of one object: absent, or a uid, a revision and a content.

use std::sync::Arc;

use super::{Answer, Call, Content, Operation, Revision};

/// What the model holds between two operations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct State {
    /// The last revision that is known: later ones are greater.
    floor: Revision,
    object: Option<Object>,
}

/// Parts that nobody saw are unknown. A revision that somebody saw is known, because then so is the write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Object {
    uid: Option<Arc<str>>,
    revision: Option<Revision>,
    content: Content,
}

impl Object {
    fn is_at(&self, uid: Option<&Arc<str>>, revision: Option<Revision>) -> bool {
        (uid.is_none() || self.uid.as_ref() == uid)
            && (revision.is_none() || self.revision == revision)
    }

    /// What a write leaves; none if its preconditions do not hold.
    fn written(&self, call: &Call) -> Option<Content> {
        match call {
            Call::Update {
                token,
                uid,
                revision,
            } => self.is_at(Some(uid), Some(*revision)).then_some(Content {
                base: *token,
                last: *token,
            }),
            Call::Patch { token, revision } => self.is_at(None, *revision).then_some(Content {
                base: self.content.base,
                last: *token,
            }),
            Call::Create { .. } | Call::Delete { .. } | Call::Get => None,
        }
    }

    fn may_be_deleted(&self, call: &Call) -> bool {
        match call {
            Call::Delete { uid, revision } => self.is_at(uid.as_ref(), *revision),
            _ => false,
        }
    }
}

impl State {
    /// The state after an operation with its answer; none if the answer is not that of this state.
    pub(super) fn after(&self, operation: &Operation) -> Option<Self> {
        match &operation.answer {
            Answer::Shown(seen) => {
                let shown = Object {
                    uid: Some(Arc::clone(&seen.uid)),
                    revision: Some(seen.revision),
                    content: seen.content,
                };
                if operation.call == Call::Get {
                    return (self.object.as_ref() == Some(&shown)).then(|| self.clone());
                }
                let before = self.object.as_ref();
                let same = before
                    .and_then(|old| old.uid.as_ref())
                    .is_none_or(|uid| *uid == seen.uid);
                let fits = seen.revision > self.floor
                    && same
                    && self.content_after(&operation.call) == Some(seen.content);
                fits.then_some(Self {
                    floor: seen.revision,
                    object: Some(shown),
                })
            }
            Answer::Deleted => self.deleted(&operation.call),
            Answer::NotFound => self.object.is_none().then(|| self.clone()),
            Answer::Exists => self.object.is_some().then(|| self.clone()),
            Answer::Conflict => {
                let object = self.object.as_ref()?;
                let call = &operation.call;
                let went = object.written(call).is_some() || object.may_be_deleted(call);
                (!went).then(|| self.clone())
            }
            Answer::Unknown => self.taken(&operation.call),
        }
    }

    fn content_after(&self, call: &Call) -> Option<Content> {
        match (&self.object, call) {
            (None, Call::Create { token }) => Some(Content {
                base: *token,
                last: *token,
            }),
            (Some(object), call) => object.written(call),
            (None, _) => None,
        }
    }

    fn deleted(&self, call: &Call) -> Option<Self> {
        let object = self.object.as_ref()?;
        object.may_be_deleted(call).then_some(Self {
            floor: self.floor,
            object: None,
        })
    }

    /// The state after a write that nobody saw; none if it would have changed nothing.
    fn taken(&self, call: &Call) -> Option<Self> {
        if matches!(call, Call::Delete { .. }) {
            return self.deleted(call);
        }
        let content = self.content_after(call)?;
        let uid = self.object.as_ref().and_then(|old| old.uid.clone());
        Some(Self {
            floor: self.floor,
            object: Some(Object {
                uid,
                revision: None,
                content,
            }),
        })
    }
}
