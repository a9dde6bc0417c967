//! Signals and the bounds that they must not fall below: `memory.available<100Mi`, `nodefs.available<10%`.

use std::fmt;
use std::time::Duration;

use crate::quantity::{Format, Quantity};

/// Something that a machine can run out of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Signal {
    /// `memory.available`: it is dealt with before all others.
    Memory,
    /// `nodefs.available`: room for volumes and logs.
    NodeDisk,
    /// `nodefs.inodesFree`
    NodeInodes,
    /// `imagefs.available`: room for images and the layers of containers.
    ImageDisk,
    /// `imagefs.inodesFree`
    ImageInodes,
    /// `pid.available`
    Pids,
}

const SIGNALS: [(Signal, &str); 6] = [
    (Signal::Memory, "memory.available"),
    (Signal::NodeDisk, "nodefs.available"),
    (Signal::NodeInodes, "nodefs.inodesFree"),
    (Signal::ImageDisk, "imagefs.available"),
    (Signal::ImageInodes, "imagefs.inodesFree"),
    (Signal::Pids, "pid.available"),
];

impl Signal {
    /// The one that flags name so.
    pub fn named(name: &str) -> Result<Self, BadThreshold> {
        let row = SIGNALS.iter().find(|(_, known)| *known == name);
        row.map(|(signal, _)| *signal)
            .ok_or_else(|| BadThreshold::Signal(name.to_owned()))
    }

    /// As flags name it.
    pub fn name(self) -> &'static str {
        let row = SIGNALS.iter().find(|(signal, _)| *signal == self);
        row.map_or("", |(_, name)| name)
    }

    /// The resource that is short, as messages name it.
    pub fn resource(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::NodeDisk | Self::ImageDisk => "ephemeral-storage",
            Self::NodeInodes | Self::ImageInodes => "inodes",
            Self::Pids => "pids",
        }
    }

    /// Is it about a disk?
    pub fn is_disk(self) -> bool {
        !matches!(self, Self::Memory | Self::Pids)
    }

    /// An amount of it, as messages write it.
    pub(super) fn amount(self, amount: u64) -> Quantity {
        let format = match self {
            Self::Memory | Self::NodeDisk | Self::ImageDisk => Format::BinarySi,
            Self::NodeInodes | Self::ImageInodes | Self::Pids => Format::DecimalSi,
        };
        Quantity::from_units(i64::try_from(amount).unwrap_or(i64::MAX), format)
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The least that must be available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// So much.
    Amount(Quantity),
    /// So many hundredths of a percent of all there is.
    Share(u64),
}

/// A signal and its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threshold {
    /// What is watched.
    pub signal: Signal,
    /// What must be available.
    pub bound: Bound,
    /// How long less may be available before pods have to go. A hard one has no patience.
    pub patience: Option<Duration>,
}

impl Threshold {
    /// One without patience.
    fn hard(signal: Signal, bound: Bound) -> Self {
        Self {
            signal,
            bound,
            patience: None,
        }
    }

    /// The bound, where so much is there in all.
    pub fn quantity(&self, capacity: u64) -> Quantity {
        match self.bound {
            Bound::Amount(amount) => amount,
            Bound::Share(share) => {
                let part = u128::from(capacity) * u128::from(share) / 10_000;
                self.signal.amount(u64::try_from(part).unwrap_or(u64::MAX))
            }
        }
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bound {
            Bound::Amount(amount) => write!(f, "{}<{amount}", self.signal),
            Bound::Share(share) if share % 100 == 0 => {
                write!(f, "{}<{}%", self.signal, share / 100)
            }
            Bound::Share(share) => {
                write!(f, "{}<{}.{:02}%", self.signal, share / 100, share % 100)
            }
        }
    }
}

/// Why a text says no thresholds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadThreshold {
    /// There is no such signal.
    #[error("unsupported eviction signal {0}")]
    Signal(String),
    /// It is no `signal<bound`.
    #[error(
        "invalid eviction threshold {0:?}: it must be of the form <signal><<quantity> or percentage>"
    )]
    Form(String),
    /// The bound is nothing, or less.
    #[error("eviction threshold {0} must be positive: {1}")]
    NotPositive(Signal, String),
    /// The bound is no amount.
    #[error("eviction threshold {0}: {1}")]
    Amount(Signal, String),
    /// A signal is given twice.
    #[error("eviction threshold {0} is given twice")]
    Twice(Signal),
    /// A soft threshold without patience.
    #[error("grace period must be specified for the soft eviction threshold {0}")]
    NoPatience(Signal),
}

/// What is kept free if nobody says otherwise.
pub fn defaults() -> Vec<Threshold> {
    let share = |signal, share| Threshold::hard(signal, Bound::Share(share));
    let memory = Quantity::from_units(100 << 20, Format::BinarySi);
    vec![
        Threshold::hard(Signal::Memory, Bound::Amount(memory)),
        share(Signal::NodeDisk, 1000),
        share(Signal::NodeInodes, 500),
        share(Signal::ImageDisk, 1500),
        share(Signal::ImageInodes, 500),
    ]
}

/// Reads `memory.available<100Mi,nodefs.available<10%`. Nothing but what is named is watched; `0%` and `100%` turn
/// a signal off, as they do upstream.
pub fn parse(text: &str) -> Result<Vec<Threshold>, BadThreshold> {
    let mut thresholds: Vec<Threshold> = Vec::new();
    let statements = text
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty());
    for statement in statements {
        let form = || BadThreshold::Form(statement.to_owned());
        let (name, bound) = statement.split_once('<').ok_or_else(form)?;
        let signal = Signal::named(name.trim())?;
        if thresholds.iter().any(|known| known.signal == signal) {
            return Err(BadThreshold::Twice(signal));
        }
        if let Some(bound) = read_bound(signal, bound.trim())? {
            thresholds.push(Threshold::hard(signal, bound));
        }
    }
    Ok(thresholds)
}

/// Gives each of these thresholds the patience that is told for its signal: soft ones need it.
pub fn soften(
    thresholds: &[Threshold],
    patience: &[(Signal, Duration)],
) -> Result<Vec<Threshold>, BadThreshold> {
    let soften = |threshold: &Threshold| {
        let mut told = patience.iter();
        let told = told.find(|(signal, _)| *signal == threshold.signal);
        let (_, patience) = told.ok_or(BadThreshold::NoPatience(threshold.signal))?;
        Ok(Threshold {
            patience: Some(*patience),
            ..*threshold
        })
    };
    thresholds.iter().map(soften).collect()
}

fn read_bound(signal: Signal, text: &str) -> Result<Option<Bound>, BadThreshold> {
    let bad = |why: String| BadThreshold::Amount(signal, why);
    if let Some(percent) = text.strip_suffix('%') {
        let percent = Quantity::parse(percent).map_err(|error| bad(error.to_string()))?;
        let share = percent.milli_value() / 10;
        if percent.sign() < 0 {
            return Err(BadThreshold::NotPositive(signal, text.to_owned()));
        }
        let off = share == 0 || share >= 10_000;
        return Ok((!off).then_some(Bound::Share(share.unsigned_abs())));
    }
    let amount = Quantity::parse(text).map_err(|error| bad(error.to_string()))?;
    if amount.sign() <= 0 {
        return Err(BadThreshold::NotPositive(signal, text.to_owned()));
    }
    Ok(Some(Bound::Amount(amount)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read() {
        let text = defaults()
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(",");
        assert_eq!(
            text,
            "memory.available<100Mi,nodefs.available<10%,nodefs.inodesFree<5%,imagefs.available<15%,\
             imagefs.inodesFree<5%"
        );
        assert_eq!(parse(&text).unwrap(), defaults());
        assert_eq!(
            parse("nodefs.available<0.25%").unwrap()[0].to_string(),
            "nodefs.available<0.25%"
        );
    }

    #[test]
    fn a_soft_threshold_needs_patience() {
        let soft = parse("memory.available<1Gi,pid.available<1k").unwrap();
        let minute = Duration::from_mins(1);
        let mut patience = vec![(Signal::Memory, minute)];
        let missing = soften(&soft, &patience).unwrap_err();
        assert_eq!(
            missing.to_string(),
            "grace period must be specified for the soft eviction threshold pid.available"
        );
        patience.push((Signal::Pids, 2 * minute));
        let softened = soften(&soft, &patience).unwrap();
        let told: Vec<_> = softened.iter().map(|one| one.patience).collect();
        assert_eq!(told, [Some(minute), Some(2 * minute)]);
    }

    #[test]
    fn flags_say_what_is_kept_free() {
        let check = |text: &str, expected: &str| {
            let told = match parse(text) {
                Ok(all) => {
                    let show = |t: &Threshold| format!("{}<{}", t.signal, t.quantity(1000 << 20));
                    all.iter().map(show).collect::<Vec<_>>().join(" ")
                }
                Err(error) => error.to_string(),
            };
            assert_eq!(told, expected, "{text}");
        };
        check("", "");
        check(
            "memory.available<100Mi, nodefs.available<10%",
            "memory.available<100Mi nodefs.available<100Mi",
        );
        check("nodefs.available<0.5%", "nodefs.available<5Mi");
        check("pid.available<1k", "pid.available<1k");
        check("imagefs.available<0%,nodefs.inodesFree<100%", "");
        check("allocatable<1", "unsupported eviction signal allocatable");
        check(
            "memory.available",
            "invalid eviction threshold \"memory.available\": it must be of the form <signal><<quantity> or percentage>",
        );
        check(
            "memory.available<0",
            "eviction threshold memory.available must be positive: 0",
        );
        check(
            "memory.available<1Mi,memory.available<2Mi",
            "eviction threshold memory.available is given twice",
        );
    }
}
