//! Resource quantities: `100m`, `1.5Gi`, `2e3`.
//!
//! A [`Quantity`] is an exact number of nano-units with the family of suffixes it was written in. It accepts what
//! Kubernetes accepts and prints the canonical form. It never uses floating point.

mod parse;

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Add, Neg, Sub};
use std::str::FromStr;

use serde_json::Value;
use thiserror::Error;

const NANOS_PER_UNIT: i128 = 1_000_000_000;
const NANOS_PER_MILLI: i128 = 1_000_000;
/// The largest quantity with a binary suffix; larger ones are clamped to it.
const LARGEST_BINARY: i128 = i64::MAX as i128 * NANOS_PER_UNIT;

/// The messages are upstream's.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum QuantityError {
    #[error(
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )]
    Format,
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

/// The family of suffixes that a quantity is printed with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// `n u m k M G T P E`, powers of 1000.
    #[default]
    DecimalSi,
    /// `Ki Mi Gi Ti Pi Ei`, powers of 1024.
    BinarySi,
    /// `e3`, `E-6`.
    DecimalExponent,
}

/// An exact amount of a resource. Equality and order look at the amount alone, so `1000m` equals `1`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quantity {
    nanos: i128,
    format: Format,
}

impl Quantity {
    pub const ZERO: Self = Self {
        nanos: 0,
        format: Format::DecimalSi,
    };

    /// Fractions of a nano-unit round away from zero; amounts beyond the range are clamped to the largest.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        let (negative, magnitude, format) = parse::read(text)?;
        let tiny = magnitude > 0 && magnitude < NANOS_PER_UNIT;
        let format = match format {
            // A binary suffix cannot express fractions of a unit.
            Format::BinarySi if tiny => Format::DecimalSi,
            format => format,
        };
        let nanos = if negative { -magnitude } else { magnitude };
        Ok(Self { nanos, format })
    }

    /// Reads a JSON string or number; zero if it is not a quantity.
    pub fn read(value: &Value) -> Self {
        let parsed = match value {
            Value::String(text) => Self::parse(text),
            other => Self::parse(&other.to_string()),
        };
        parsed.unwrap_or(Self::ZERO)
    }

    pub fn from_units(units: i64, format: Format) -> Self {
        let nanos = i128::from(units) * NANOS_PER_UNIT;
        Self { nanos, format }
    }

    /// Thousand-millionths of a unit.
    pub fn from_nanos(nanos: u64) -> Self {
        let nanos = i128::from(nanos);
        Self {
            nanos,
            format: Format::DecimalSi,
        }
    }

    /// The family of suffixes this quantity is printed with.
    pub fn format(self) -> Format {
        self.format
    }

    /// Whole units, rounded away from zero, within the range of an `i64`.
    pub fn value(self) -> i64 {
        clamp(divide_away_from_zero(self.nanos, NANOS_PER_UNIT))
    }

    /// Thousandths of a unit, rounded away from zero, within the range of an `i64`.
    pub fn milli_value(self) -> i64 {
        clamp(divide_away_from_zero(self.nanos, NANOS_PER_MILLI))
    }

    /// The quantity rounded away from zero to whole thousandths.
    #[must_use]
    pub fn round_up_to_milli(self) -> Self {
        let milli = divide_away_from_zero(self.nanos, NANOS_PER_MILLI);
        Self {
            nanos: milli.saturating_mul(NANOS_PER_MILLI),
            format: self.format,
        }
    }

    pub fn is_whole(self) -> bool {
        self.nanos % NANOS_PER_UNIT == 0
    }

    pub fn is_zero(self) -> bool {
        self.nanos == 0
    }

    /// -1, 0 or 1.
    pub fn sign(self) -> i8 {
        match self.nanos.cmp(&0) {
            Ordering::Less => -1,
            Ordering::Equal => 0,
            Ordering::Greater => 1,
        }
    }

    /// A sum takes the format of its first part, unless that part is zero.
    fn combined(self, other: Self, nanos: i128) -> Self {
        let format = if self.is_zero() {
            other.format
        } else {
            self.format
        };
        Self { nanos, format }
    }

    fn write_binary(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SUFFIXES: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
        let (mut amount, mut thousands) = (self.nanos / NANOS_PER_UNIT, 0);
        while amount % 1024 == 0 && thousands + 1 < SUFFIXES.len() {
            amount /= 1024;
            thousands += 1;
        }
        write!(f, "{amount}{}", SUFFIXES[thousands])
    }

    fn write_decimal(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SUFFIXES: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
        let (mut amount, mut thousands) = (self.nanos, 0);
        while amount % 1000 == 0 {
            amount /= 1000;
            thousands += 1;
        }
        // Above the last suffix, only an exponent remains.
        if self.format != Format::DecimalExponent
            && let Some(suffix) = SUFFIXES.get(thousands)
        {
            return write!(f, "{amount}{suffix}");
        }
        match i32::try_from(thousands).unwrap_or(i32::MAX) * 3 - 9 {
            0 => write!(f, "{amount}"),
            exponent => write!(f, "{amount}e{exponent}"),
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            return f.write_str("0");
        }
        let below_first_suffix = self.nanos.abs() < 1024 * NANOS_PER_UNIT;
        if self.format == Format::BinarySi && !below_first_suffix && self.is_whole() {
            return self.write_binary(f);
        }
        self.write_decimal(f)
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        Self::parse(text)
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.nanos.hash(state);
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl Add for Quantity {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.combined(other, self.nanos.saturating_add(other.nanos))
    }
}

impl Sub for Quantity {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self.combined(other, self.nanos.saturating_sub(other.nanos))
    }
}

impl Neg for Quantity {
    type Output = Self;

    fn neg(self) -> Self {
        Self {
            nanos: self.nanos.saturating_neg(),
            format: self.format,
        }
    }
}

fn divide_away_from_zero(value: i128, divisor: i128) -> i128 {
    let quotient = value / divisor;
    if value % divisor == 0 {
        quotient
    } else {
        quotient + value.signum()
    }
}

fn clamp(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests;
