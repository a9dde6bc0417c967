//! The colours of states keep apart for people who see fewer colours, in both themes. (Shapes keep them apart without any, where
//! cells are large enough for shapes.)

/// Of an sRGB colour, linear.
type Rgb = [f64; 3];

/// How people see, as matrices on linear sRGB: Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation of
/// Color Vision Deficiency" (2009), at full severity.
const SIGHTS: [(&str, [Rgb; 3]); 4] = [
    (
        "all colours",
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    ),
    (
        "protanopia",
        [
            [0.152_286, 1.052_583, -0.204_868],
            [0.114_503, 0.786_281, 0.099_216],
            [-0.003_882, -0.048_116, 1.051_998],
        ],
    ),
    (
        "deuteranopia",
        [
            [0.367_322, 0.860_646, -0.227_968],
            [0.280_085, 0.672_501, 0.047_413],
            [-0.011_820, 0.042_940, 0.968_881],
        ],
    ),
    (
        "tritanopia",
        [
            [1.255_528, -0.076_749, -0.178_779],
            [-0.078_411, 0.930_809, 0.147_602],
            [0.004_733, 0.691_367, 0.303_900],
        ],
    ),
];

/// What most of a cell has in each state; a waiting one is drawn in its tint.
const STATES: [&str; 6] = ["new", "updating", "failed", "down", "old", "waiting-tint"];

/// CIE 1976. 2.3 is just noticeable.
const DIFFERENCE_MIN: f64 = 20.0;

const STYLE: &str = include_str!("../page/base.css");
const REPORT: &str = include_str!("../../inspect/src/report/page.js");

/// The colours of a state in the light and the dark theme.
fn colours(state: &str) -> [&'static str; 2] {
    let name = format!("--state-{state}: light-dark(");
    let (_, rest) = STYLE.split_once(&name).unwrap();
    let (light, rest) = rest.split_once(", ").unwrap();
    [light, rest.split_once(')').unwrap().0]
}

fn linear(hex: &str) -> Rgb {
    let number = u32::from_str_radix(hex.trim_start_matches('#'), 16).unwrap();
    let [_, parts @ ..] = number.to_be_bytes();
    parts.map(|part| {
        let part = f64::from(part) / 255.0;
        if part <= 0.040_45 {
            part / 12.92
        } else {
            ((part + 0.055) / 1.055).powf(2.4)
        }
    })
}

fn times(matrix: &[Rgb; 3], colour: Rgb) -> Rgb {
    matrix.map(|row| row.iter().zip(colour).map(|(a, b)| a * b).sum())
}

/// As CIE L*a*b*, under daylight.
fn lab(colour: Rgb) -> Rgb {
    const XYZ: [Rgb; 3] = [
        [0.4124, 0.3576, 0.1805],
        [0.2126, 0.7152, 0.0722],
        [0.0193, 0.1192, 0.9505],
    ];
    const WHITE: Rgb = [0.950_47, 1.0, 1.088_83];
    let xyz = times(&XYZ, colour.map(|part| part.clamp(0.0, 1.0)));
    let scaled = [0, 1, 2].map(|at| {
        let part: f64 = xyz[at] / WHITE[at];
        if part > 0.008_856 {
            part.cbrt()
        } else {
            7.787 * part + 16.0 / 116.0
        }
    });
    let [x, y, z] = scaled;
    [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
}

fn difference(a: Rgb, b: Rgb) -> f64 {
    let squares = a.iter().zip(b).map(|(a, b)| (a - b).powi(2));
    squares.sum::<f64>().sqrt()
}

#[test]
fn states_differ_for_everybody() {
    for (theme, name) in ["light", "dark"].into_iter().enumerate() {
        for (sight, matrix) in SIGHTS {
            let seen = STATES.map(|state| lab(times(&matrix, linear(colours(state)[theme]))));
            for (i, a) in seen.iter().enumerate() {
                for (j, b) in seen.iter().enumerate().skip(i + 1) {
                    let found = difference(*a, *b);
                    let states = (STATES[i], STATES[j]);
                    assert!(
                        found >= DIFFERENCE_MIN,
                        "{states:?}, {sight}, {name}: {found:.1}"
                    );
                }
            }
        }
    }
}

#[test]
fn reports_have_the_colours_of_the_page() {
    for (theme, name) in ["LIGHT", "DARK"].into_iter().enumerate() {
        let line = REPORT.lines().find(|line| line.contains(name)).unwrap();
        for (letter, state) in [
            ('n', "new"),
            ('u', "updating"),
            ('f', "failed"),
            ('d', "down"),
        ] {
            let colour = colours(state)[theme];
            assert!(line.contains(&format!("{letter}: \"{colour}\"")), "{line}");
        }
    }
}
