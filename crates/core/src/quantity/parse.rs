//! Parses the text of a quantity.

use super::{Format, LARGEST_BINARY, NANOS_PER_UNIT, QuantityError};

/// The largest decimal amount in nano-units: a power of ten, so that it round-trips.
const LARGEST_DECIMAL: i128 = 10_i128.pow(38);

/// The sign, the amount in nano-units and the suffix family of a text.
pub(super) fn read(text: &str) -> Result<(bool, i128, Format), QuantityError> {
    let parts = Parts::split(text)?;
    let suffix = Suffix::interpret(parts.suffix)?;
    let nanos = match suffix.format {
        Format::BinarySi => binary_nanos(parts.whole, parts.fraction, suffix.exponent),
        Format::DecimalSi | Format::DecimalExponent => {
            decimal_nanos(parts.whole, parts.fraction, suffix.exponent)
        }
    };
    Ok((parts.negative, nanos, suffix.format))
}

struct Parts<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

impl<'a> Parts<'a> {
    /// Splits the text as Kubernetes does, which accepts more than the expression in its error: a sign alone and
    /// a suffix alone are zero.
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

/// Ten or two to the power of `exponent`, by `format`.
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

/// The leading digits of a number, as many as fit.
struct Digits {
    mantissa: i128,
    /// How many digits did not fit.
    dropped: i64,
    /// Whether one of those was not zero.
    inexact: bool,
}

impl Digits {
    fn read(digits: impl Iterator<Item = u8>, max_digits: u32) -> Self {
        let limit = 10_i128.pow(max_digits - 1);
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
            .map_or(LARGEST_DECIMAL, |nanos| nanos.min(LARGEST_DECIMAL));
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
    // Nineteen digits times the largest factor fit; further digits only round up.
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
