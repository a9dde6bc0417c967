//! Eviction signals and thresholds: `memory.available<100Mi`, `nodefs.available<10%`.

use std::fmt;
use std::time::Duration;

use crate::quantity::{Format, Quantity, QuantityError};

/// Ordered by urgency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Signal {
    /// `memory.available`: relieved before all others.
    Memory,
    /// `nodefs.available`: the disk of volumes and logs.
    NodeDisk,
    /// `nodefs.inodesFree`
    NodeInodes,
    /// `imagefs.available`: the disk of images and writable layers.
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
    pub fn parse(name: &str) -> Result<Self, ThresholdError> {
        let row = SIGNALS.iter().find(|(_, known)| *known == name);
        row.map(|(signal, _)| *signal)
            .ok_or_else(|| ThresholdError::Signal(name.to_owned()))
    }

    /// The name that flags use.
    pub fn name(self) -> &'static str {
        let row = SIGNALS.iter().find(|(signal, _)| *signal == self);
        row.map_or("", |(_, name)| name)
    }

    /// The name of the resource in messages.
    pub fn resource(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::NodeDisk | Self::ImageDisk => "ephemeral-storage",
            Self::NodeInodes | Self::ImageInodes => "inodes",
            Self::Pids => "pids",
        }
    }

    pub fn is_disk(self) -> bool {
        !matches!(self, Self::Memory | Self::Pids)
    }

    /// An amount in the format of messages.
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
    Amount(Quantity),
    /// Hundredths of a percent of the capacity.
    Share(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threshold {
    pub signal: Signal,
    pub bound: Bound,
    /// How long a soft threshold may be crossed before pods are evicted. Hard thresholds have none.
    pub grace_period: Option<Duration>,
}

impl Threshold {
    fn hard(signal: Signal, bound: Bound) -> Self {
        Self {
            signal,
            bound,
            grace_period: None,
        }
    }

    /// The bound at this capacity.
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

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ThresholdError {
    #[error("unsupported eviction signal {0}")]
    Signal(String),
    #[error(
        "invalid eviction threshold {0:?}: it must be of the form <signal><<quantity> or percentage>"
    )]
    Form(String),
    #[error("eviction threshold {0} must be positive: {1}")]
    NotPositive(Signal, String),
    #[error("eviction threshold {0}: {1}")]
    Amount(Signal, #[source] QuantityError),
    #[error("eviction threshold {0} is given twice")]
    Twice(Signal),
    #[error("grace period must be specified for the soft eviction threshold {0}")]
    NoGracePeriod(Signal),
}

/// The kubelet's default hard thresholds.
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

/// Parses `memory.available<100Mi,nodefs.available<10%`. `0%` and `100%` turn a signal off, as upstream.
pub fn parse(text: &str) -> Result<Vec<Threshold>, ThresholdError> {
    let mut thresholds: Vec<Threshold> = Vec::new();
    let statements = text
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty());
    for statement in statements {
        let form = || ThresholdError::Form(statement.to_owned());
        let (name, bound) = statement.split_once('<').ok_or_else(form)?;
        let signal = Signal::parse(name.trim())?;
        if thresholds.iter().any(|known| known.signal == signal) {
            return Err(ThresholdError::Twice(signal));
        }
        if let Some(bound) = read_bound(signal, bound.trim())? {
            thresholds.push(Threshold::hard(signal, bound));
        }
    }
    Ok(thresholds)
}

/// Makes hard thresholds soft. Every signal needs a grace period.
pub fn with_grace_periods(
    thresholds: &[Threshold],
    grace_periods: &[(Signal, Duration)],
) -> Result<Vec<Threshold>, ThresholdError> {
    let soft = |threshold: &Threshold| {
        let mut grace_periods = grace_periods.iter();
        let found = grace_periods.find(|(signal, _)| *signal == threshold.signal);
        let (_, grace_period) = found.ok_or(ThresholdError::NoGracePeriod(threshold.signal))?;
        Ok(Threshold {
            grace_period: Some(*grace_period),
            ..*threshold
        })
    };
    thresholds.iter().map(soft).collect()
}

fn read_bound(signal: Signal, text: &str) -> Result<Option<Bound>, ThresholdError> {
    let invalid = |error| ThresholdError::Amount(signal, error);
    if let Some(percent) = text.strip_suffix('%') {
        let percent = Quantity::parse(percent).map_err(invalid)?;
        let share = percent.milli_value() / 10;
        if percent.sign() < 0 {
            return Err(ThresholdError::NotPositive(signal, text.to_owned()));
        }
        let off = share == 0 || share >= 10_000;
        return Ok((!off).then_some(Bound::Share(share.unsigned_abs())));
    }
    let amount = Quantity::parse(text).map_err(invalid)?;
    if amount.sign() <= 0 {
        return Err(ThresholdError::NotPositive(signal, text.to_owned()));
    }
    Ok(Some(Bound::Amount(amount)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_print_as_they_parse() {
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
    fn a_soft_threshold_needs_a_grace_period() {
        let soft = parse("memory.available<1Gi,pid.available<1k").unwrap();
        let minute = Duration::from_mins(1);
        let mut grace_periods = vec![(Signal::Memory, minute)];
        let missing = with_grace_periods(&soft, &grace_periods).unwrap_err();
        assert_eq!(
            missing.to_string(),
            "grace period must be specified for the soft eviction threshold pid.available"
        );
        grace_periods.push((Signal::Pids, 2 * minute));
        let softened = with_grace_periods(&soft, &grace_periods).unwrap();
        let found: Vec<_> = softened.iter().map(|one| one.grace_period).collect();
        assert_eq!(found, [Some(minute), Some(2 * minute)]);
    }

    #[test]
    fn flags_parse_to_thresholds() {
        let check = |text: &str, expected: &str| {
            let found = match parse(text) {
                Ok(all) => {
                    let show = |t: &Threshold| format!("{}<{}", t.signal, t.quantity(1000 << 20));
                    all.iter().map(show).collect::<Vec<_>>().join(" ")
                }
                Err(error) => error.to_string(),
            };
            assert_eq!(found, expected, "{text}");
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
