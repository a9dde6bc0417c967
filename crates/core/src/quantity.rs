//! Resource quantities: `100m`, `1.5Gi`, `2e3`.
//!
//! A [`Quantity`] is an exact number of nano-units with the family of suffixes it was written in.
//! It parses whatever Kubernetes parses and prints the one canonical spelling. It must never go
//! through floating point.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Add, Neg, Sub};
use std::str::FromStr;

use thiserror::Error;

const NANOS_PER_UNIT: i128 = 1_000_000_000;
const NANOS_PER_MILLI: i128 = 1_000_000;
/// The largest quantity with a binary suffix; larger ones are cut down to it.
const LARGEST_BINARY: i128 = i64::MAX as i128 * NANOS_PER_UNIT;

/// Why a text is no quantity. The words are those Kubernetes answers with.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum QuantityError {
    /// The text has another shape than number and suffix.
    #[error(
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )]
    Format,
    /// The suffix is none of the known ones.
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
    /// Nothing at all.
    pub const ZERO: Self = Self {
        nanos: 0,
        format: Format::DecimalSi,
    };

    /// Reads a quantity. Fractions of a nano-unit round away from zero; amounts beyond what can be
    /// held are cut down to the largest.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        let parts = Parts::split(text)?;
        let suffix = Suffix::interpret(parts.suffix)?;
        let magnitude = match suffix.format {
            Format::BinarySi => binary_nanos(parts.whole, parts.fraction, suffix.exponent),
            Format::DecimalSi | Format::DecimalExponent => {
                decimal_nanos(parts.whole, parts.fraction, suffix.exponent)
            }
        };
        let tiny = magnitude > 0 && magnitude < NANOS_PER_UNIT;
        let format = match suffix.format {
            // A binary suffix cannot show a part of one, so such a quantity becomes a decimal one.
            Format::BinarySi if tiny => Format::DecimalSi,
            format => format,
        };
        let nanos = if parts.negative {
            -magnitude
        } else {
            magnitude
        };
        Ok(Self { nanos, format })
    }

    /// That many whole units.
    pub fn from_units(units: i64, format: Format) -> Self {
        let nanos = i128::from(units) * NANOS_PER_UNIT;
        Self { nanos, format }
    }

    /// That many thousandths.
    pub fn from_milli(milli: i64, format: Format) -> Self {
        let nanos = i128::from(milli) * NANOS_PER_MILLI;
        Self { nanos, format }
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

    /// Whether the amount is a whole number of units.
    pub fn is_whole(self) -> bool {
        self.nanos % NANOS_PER_UNIT == 0
    }

    /// Whether the amount is nothing.
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
        // Past the last suffix only an exponent can say how much it is.
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

/// The pieces of a quantity's text.
struct Parts<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

impl<'a> Parts<'a> {
    /// Takes the text apart as Kubernetes does, which is laxer than the expression in its error:
    /// a sign alone and a suffix alone are zero.
    fn split(text: &'a str) -> Result<Self, QuantityError> {
        if text.is_empty() {
            return Err(QuantityError::Format);
        }
        let negative = text.starts_with('-');
        let rest = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (whole, rest) = split_where(rest, |c| !c.is_ascii_digit());
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(rest) => split_where(rest, |c| !c.is_ascii_digit()),
            None => ("", rest),
        };
        let (_, exponent) = split_where(suffix, |c| !"eEinumkKMGTP".contains(c));
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        if !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(QuantityError::Format);
        }
        Ok(Self {
            negative,
            whole,
            fraction,
            suffix,
        })
    }
}

fn split_where(text: &str, stop: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(stop).unwrap_or(text.len()))
}

/// What a suffix multiplies by: ten or two to the power of `exponent`.
struct Suffix {
    exponent: i64,
    format: Format,
}

impl Suffix {
    fn interpret(suffix: &str) -> Result<Self, QuantityError> {
        let decimal = |exponent| (exponent, Format::DecimalSi);
        let binary = |exponent| (exponent, Format::BinarySi);
        let (exponent, format) = match suffix {
            "n" => decimal(-9),
            "u" => decimal(-6),
            "m" => decimal(-3),
            "" => decimal(0),
            "k" => decimal(3),
            "M" => decimal(6),
            "G" => decimal(9),
            "T" => decimal(12),
            "P" => decimal(15),
            "E" => decimal(18),
            "Ki" => binary(10),
            "Mi" => binary(20),
            "Gi" => binary(30),
            "Ti" => binary(40),
            "Pi" => binary(50),
            "Ei" => binary(60),
            _ => {
                let digits = suffix.strip_prefix(['e', 'E']);
                let exponent = digits.and_then(|digits| digits.parse().ok());
                (
                    exponent.ok_or(QuantityError::Suffix)?,
                    Format::DecimalExponent,
                )
            }
        };
        Ok(Self { exponent, format })
    }
}

/// The first digits of a number, as many as an `i128` holds for certain.
struct Digits {
    mantissa: i128,
    /// How many digits did not fit.
    dropped: i64,
    /// Whether one of those was no zero.
    inexact: bool,
}

impl Digits {
    fn read(digits: impl Iterator<Item = u8>, room: u32) -> Self {
        let limit = 10_i128.pow(room - 1);
        let mut read = Self {
            mantissa: 0,
            dropped: 0,
            inexact: false,
        };
        for digit in digits {
            let digit = digit - b'0';
            if read.mantissa < limit {
                read.mantissa = read.mantissa * 10 + i128::from(digit);
            } else {
                read.dropped += 1;
                read.inexact |= digit != 0;
            }
        }
        read
    }
}

fn length(digits: &str) -> i64 {
    i64::try_from(digits.len()).unwrap_or(i64::MAX)
}

/// `whole.fraction × 10^exponent` in nano-units, rounded up.
fn decimal_nanos(whole: &str, fraction: &str, exponent: i64) -> i128 {
    let digits = Digits::read(whole.bytes().chain(fraction.bytes()), 38);
    if digits.mantissa == 0 {
        return 0;
    }
    let power = exponent
        .saturating_add(9)
        .saturating_add(digits.dropped)
        .saturating_sub(length(fraction));
    let steps = u32::try_from(power.unsigned_abs()).unwrap_or(u32::MAX);
    let factor = 10_i128.checked_pow(steps);
    if power >= 0 {
        let exact = factor.and_then(|factor| digits.mantissa.checked_mul(factor));
        return exact
            .and_then(|nanos| nanos.checked_add(i128::from(digits.inexact)))
            .unwrap_or(i128::MAX);
    }
    let Some(factor) = factor else { return 1 };
    let rounds_up = digits.inexact || digits.mantissa % factor != 0;
    digits.mantissa / factor + i128::from(rounds_up)
}

/// `whole.fraction × 2^exponent` in nano-units, rounded up, at most [`LARGEST_BINARY`].
fn binary_nanos(whole: &str, fraction: &str, exponent: i64) -> i128 {
    let factor = 1_i128 << exponent;
    let whole = Digits::read(whole.bytes(), 20);
    if whole.dropped > 0 {
        return LARGEST_BINARY;
    }
    let nanos = (whole.mantissa * factor)
        .checked_mul(NANOS_PER_UNIT)
        .unwrap_or(LARGEST_BINARY);
    // Nineteen digits leave room for the largest factor; what follows them only rounds up.
    let kept = &fraction[..fraction.len().min(19)];
    let part = Digits::read(kept.bytes(), 20).mantissa * factor;
    let beyond = fraction[kept.len()..].bytes().any(|digit| digit != b'0');
    let power = u32::try_from(kept.len()).expect("at most 19 digits were kept");
    let part_nanos = if power <= 9 {
        part * 10_i128.pow(9 - power)
    } else {
        let divisor = 10_i128.pow(power - 9);
        part / divisor + i128::from(beyond || part % divisor != 0)
    };
    (nanos.saturating_add(part_nanos)).min(LARGEST_BINARY)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Quantity {
        Quantity::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn the_canonical_spelling() {
        for (written, printed) in [
            ("0", "0"),
            ("0m", "0"),
            ("-0Gi", "0"),
            ("1000m", "1"),
            ("100m", "100m"),
            ("0.5", "500m"),
            (".5", "500m"),
            ("1.", "1"),
            ("00012", "12"),
            ("1500m", "1500m"),
            ("1.5", "1500m"),
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("0.5Mi", "512Ki"),
            ("0.5Ki", "512"),
            ("1023", "1023"),
            ("1024", "1024"),
            ("1Ki", "1Ki"),
            ("1000Ki", "1000Ki"),
            ("0.0001Ki", "102400u"),
            ("1.0001Ki", "1024102400u"),
            ("1000", "1k"),
            ("1500", "1500"),
            ("1e3", "1e3"),
            ("1E3", "1e3"),
            ("12e4", "120e3"),
            ("100e0", "100"),
            ("1e-3", "1e-3"),
            ("1E", "1E"),
            ("1000E", "1e21"),
            ("1n", "1n"),
            ("0.1n", "1n"),
            ("-0.1n", "-1n"),
            ("-1.5Gi", "-1536Mi"),
            ("+7", "7"),
            ("129e6", "129e6"),
            ("128974848", "128974848"),
            ("129M", "129M"),
            ("123Mi", "123Mi"),
            ("3.14159265358979323846Gi", "3373259426130504740n"),
        ] {
            assert_eq!(parse(written).to_string(), printed, "{written}");
        }
    }

    #[test]
    fn what_is_no_quantity() {
        for (written, error) in [
            ("", QuantityError::Format),
            ("1 Gi", QuantityError::Format),
            ("one", QuantityError::Format),
            ("1..5", QuantityError::Format),
            ("1Gib", QuantityError::Format),
            ("--1", QuantityError::Suffix),
            ("0x10", QuantityError::Format),
            ("1e", QuantityError::Suffix),
            ("1mi", QuantityError::Suffix),
            ("1K", QuantityError::Suffix),
            ("1e3k", QuantityError::Format),
            ("1Mi3", QuantityError::Suffix),
            ("1e99999999999999999999", QuantityError::Suffix),
            ("1é", QuantityError::Format),
        ] {
            assert_eq!(Quantity::parse(written).unwrap_err(), error, "{written:?}");
        }
    }

    #[test]
    fn amounts_beyond_the_caps_are_cut_down() {
        assert_eq!(parse("8Ei").value(), i64::MAX);
        assert_eq!(parse("9999999999999999999999Gi").value(), i64::MAX);
        assert_eq!(parse("-100Ei").value(), -i64::MAX);
        assert_eq!(parse("1e99").value(), i64::MAX);
        assert_eq!(parse("1e9000000000000000000").value(), i64::MAX);
        assert_eq!(parse("1e-9000000000000000000").to_string(), "1e-9");
        assert_eq!(
            parse(&"9".repeat(5000)).cmp(&parse("1E")),
            Ordering::Greater
        );
        assert_eq!(parse(&format!("0.{}1", "0".repeat(5000))).to_string(), "1n");
    }

    #[test]
    fn values_round_away_from_zero() {
        assert_eq!(parse("1500m").value(), 2);
        assert_eq!(parse("-1500m").value(), -2);
        assert_eq!(parse("1500u").milli_value(), 2);
        assert_eq!(parse("2").milli_value(), 2000);
        assert_eq!(parse("1Gi").value(), 1 << 30);
        assert_eq!(parse("1u").round_up_to_milli().to_string(), "1m");
        assert_eq!(parse("1500m").round_up_to_milli().to_string(), "1500m");
    }

    #[test]
    fn order_and_equality_ignore_the_spelling() {
        assert_eq!(parse("1000m"), parse("1"));
        assert!(parse("1Gi") > parse("1G"));
        assert!(parse("-1") < parse("0"));
        assert_eq!(
            [parse("-1m").sign(), parse("0").sign(), parse("1n").sign()],
            [-1, 0, 1]
        );
    }

    #[test]
    fn sums_keep_the_first_format_that_is_not_zero() {
        assert_eq!((parse("1Gi") + parse("1024Mi")).to_string(), "2Gi");
        assert_eq!((parse("0") + parse("1Gi")).to_string(), "1Gi");
        assert_eq!((parse("1Gi") - parse("1Gi")).to_string(), "0");
        assert_eq!((parse("100m") - parse("1")).to_string(), "-900m");
        assert_eq!((-parse("1Ki")).to_string(), "-1Ki");
    }
}
