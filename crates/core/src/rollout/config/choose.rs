//! Which data the revision of a DaemonSet's template has, now that config is part of it.

use std::sync::Arc;

use serde_json::Value;

use super::{may_be_pinned, named, with_hash};
use crate::daemonset::history::{Revision, data};

/// What decides.
#[derive(Clone, Copy, Debug)]
pub struct Choice<'a> {
    pub template: &'a Value,
    /// The data of the template as it is.
    pub data: &'a Arc<str>,
    /// `pin-config` is `true`.
    pub pins: bool,
    /// The hash of the ConfigMaps that the template names, as they are now.
    pub live: Result<&'a str, &'a Waits>,
    /// They have not changed for a while.
    pub settled: bool,
    /// All revisions of the DaemonSet.
    pub revisions: &'a [Revision],
}

/// Why a new revision cannot be made yet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Waits {
    #[error("the ConfigMaps of the namespace are not known yet")]
    Unknown,
    #[error("ConfigMap {0:?}, which the template needs, does not exist")]
    Missing(String),
    #[error(
        "the template's annotation rollout.kennel.dev/config names {0}, of which no revision has copies; remove it"
    )]
    NoCopies(String),
}

/// A revision of the same template, perhaps with other config.
struct Variant<'a> {
    revision: &'a Revision,
    hash: Option<String>,
}

/// The data of the target's revision, or why there can be none yet.
///
/// Templates are compared without the config's hash. A revision that was made before `pin-config` stays the one of its
/// template: a policy changes no revision (R1.3), and config is pinned from the next template on.
pub fn choose(choice: &Choice<'_>) -> Result<Arc<str>, Waits> {
    let pinned = |revision: &Revision| may_be_pinned(&revision.data);
    let wanted = named(choice.template);
    if wanted.is_none() && !choice.pins && !choice.revisions.iter().any(pinned) {
        return Ok(choice.data.clone());
    }
    let variants = variants(choice.template, choice.revisions);
    let of = |hash: Option<&str>| {
        let found = variants.iter().rev();
        let mut found = found.filter(|variant| variant.hash.as_deref() == hash);
        found.next().map(|variant| variant.revision.data.clone())
    };
    let latest = variants.last();
    let latest_data = || latest.map(|variant| variant.revision.data.clone());
    let made = |hash: Option<&str>| -> Arc<str> {
        data::of_template(&with_hash(choice.template, hash)).into()
    };
    if let Some(wanted) = wanted {
        if let Some(found) = of(Some(wanted)) {
            return Ok(found);
        }
        if choice.pins {
            let mut others = choice.revisions.iter().filter(|other| pinned(other));
            let known = others.any(|other| {
                let template = other.template();
                template.as_ref().and_then(named) == Some(wanted)
            });
            return if known {
                Ok(made(Some(wanted)))
            } else {
                latest_data().ok_or_else(|| Waits::NoCopies(wanted.to_owned()))
            };
        }
    }
    if !choice.pins {
        return Ok(latest_data().unwrap_or_else(|| made(None)));
    }
    let before_pinning = latest.is_some_and(|latest| latest.hash.is_none());
    match choice.live {
        Ok(live) => match of(Some(live)) {
            Some(found) => Ok(found),
            None if before_pinning || !choice.settled => {
                Ok(latest_data().unwrap_or_else(|| made(Some(live))))
            }
            None => Ok(made(Some(live))),
        },
        Err(waits) => latest_data().ok_or_else(|| waits.clone()),
    }
}

/// The revision of a template, from what the API shows: the one whose config the template names, else the newest.
pub fn find<'a>(template: &Value, revisions: &[&'a Revision]) -> Option<&'a Revision> {
    let data = data::of_template(template);
    let pinned = named(template).is_some() || revisions.iter().any(|r| may_be_pinned(&r.data));
    if !pinned {
        let same = revisions.iter().copied().filter(|r| *r.data == *data);
        return same.max_by_key(|revision| (revision.revision, &revision.name));
    }
    let variants = variants(template, revisions.iter().copied());
    let wanted = named(template);
    let exact = variants
        .iter()
        .rev()
        .find(|variant| wanted.is_some() && variant.hash.as_deref() == wanted);
    exact.or(variants.last()).map(|variant| variant.revision)
}

/// The revisions of a template with any config, in ascending order.
fn variants<'a>(
    template: &Value,
    revisions: impl IntoIterator<Item = &'a Revision>,
) -> Vec<Variant<'a>> {
    let plain = data::of_template(&with_hash(template, None));
    let variant = |revision: &'a Revision| {
        if !may_be_pinned(&revision.data) {
            let same = *revision.data == *plain;
            return same.then_some(Variant {
                revision,
                hash: None,
            });
        }
        let template = revision.template()?;
        let same = data::of_template(&with_hash(&template, None)) == plain;
        let hash = named(&template).map(str::to_owned);
        same.then_some(Variant { revision, hash })
    };
    let mut found: Vec<Variant<'a>> = revisions.into_iter().filter_map(variant).collect();
    found.sort_by_key(|variant| (variant.revision.revision, &variant.revision.name));
    found
}
