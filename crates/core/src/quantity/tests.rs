//! Quantities as Kubernetes reads and prints them.

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
