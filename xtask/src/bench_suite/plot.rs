//! Draws the figures by number of nodes as SVG. Pure.
//!
//! Both axes are logarithmic: linear growth has the slope of the dotted lines.

use std::fmt::Write as _;

use super::cluster::Size;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 420.0;
/// Left, top, right, bottom.
const MARGIN: [f64; 4] = [70.0, 40.0, 190.0, 50.0];
const COLOURS: [&str; 5] = ["#1b6ca8", "#c8553d", "#588157", "#7b2d8b", "#8d6e00"];

struct Line {
    name: &'static str,
    value: fn(&Size) -> f64,
}

const LINES: [Line; 5] = [
    Line {
        name: "apply → available, s",
        value: |size| size.apply,
    },
    Line {
        name: "update → available, s",
        value: |size| size.update,
    },
    Line {
        name: "delete → gone, s",
        value: |size| size.delete,
    },
    Line {
        name: "processor time, s",
        value: |size| size.cpu,
    },
    Line {
        name: "peak memory, MB",
        value: |size| size.memory,
    },
];

/// A logarithmic axis.
#[derive(Clone, Copy)]
struct Axis {
    /// Exponents of ten.
    low: f64,
    high: f64,
    /// Coordinates.
    from: f64,
    to: f64,
}

impl Axis {
    fn of(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.map(|value| value.max(1e-3).log10()) {
            low = low.min(value.floor());
            high = high.max(value.ceil());
        }
        Self {
            low,
            high: high.max(low + 1.0),
            from,
            to,
        }
    }

    fn place(self, value: f64) -> f64 {
        let part = (value.max(1e-3).log10() - self.low) / (self.high - self.low);
        self.from + part * (self.to - self.from)
    }

    /// The powers of ten on it.
    fn ticks(self) -> impl Iterator<Item = f64> {
        let mut exponent = self.low;
        std::iter::from_fn(move || {
            let tick = (exponent <= self.high).then(|| 10_f64.powf(exponent));
            exponent += 1.0;
            tick
        })
    }
}

pub(super) fn svg(sizes: &[Size]) -> String {
    let [left, top, right, bottom] = MARGIN;
    let x = Axis::of(sizes.iter().map(|size| size.nodes), left, WIDTH - right);
    let values = LINES.iter().flat_map(|line| sizes.iter().map(line.value));
    let y = Axis::of(values, HEIGHT - bottom, top);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{left}\" y=\"22\" font-size=\"14\">One DaemonSet, by number of nodes</text>\n"
    );
    grid(&mut out, x, y);
    for (at, (line, colour)) in LINES.iter().zip(COLOURS).enumerate() {
        draw(&mut out, line, colour, sizes, (x, y));
        let place = (0..at).fold(top + 14.0, |place, _| place + 22.0);
        let _infallible = writeln!(
            out,
            "<text x=\"{}\" y=\"{place}\" fill=\"{colour}\">{}</text>",
            WIDTH - right + 14.0,
            line.name
        );
    }
    out.push_str("</svg>\n");
    out
}

fn grid(out: &mut String, x: Axis, y: Axis) {
    for tick in x.ticks() {
        let at = x.place(tick);
        let _infallible = writeln!(
            out,
            "<path d=\"M{at:.1} {:.1}V{:.1}\" stroke=\"#ddd\"/>\
             <text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{tick}</text>",
            y.from,
            y.to,
            y.from + 20.0
        );
    }
    for tick in y.ticks() {
        let at = y.place(tick);
        let _infallible = writeln!(
            out,
            "<path d=\"M{:.1} {at:.1}H{:.1}\" stroke=\"#ddd\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{tick}</text>",
            x.from,
            x.to,
            x.from - 8.0,
            at + 4.0
        );
    }
    let middle = f64::midpoint(x.from, x.to);
    let _infallible = writeln!(
        out,
        "<text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">nodes</text>",
        y.from + 38.0
    );
}

/// Draws one figure, and a dotted line for linear growth from its first point.
fn draw(out: &mut String, line: &Line, colour: &str, sizes: &[Size], (x, y): (Axis, Axis)) {
    let point =
        |size: &Size, value: f64| format!("{:.1},{:.1}", x.place(size.nodes), y.place(value));
    let points: Vec<String> = sizes
        .iter()
        .map(|size| point(size, (line.value)(size)))
        .collect();
    let _infallible = writeln!(
        out,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
        points.join(" ")
    );
    for at in &points {
        let (cx, cy) = at.split_once(',').unwrap_or_default();
        let _infallible = writeln!(
            out,
            "<circle cx=\"{cx}\" cy=\"{cy}\" r=\"3.5\" fill=\"{colour}\"/>"
        );
    }
    if let (Some(first), Some(last)) = (sizes.first(), sizes.last()) {
        let grown = (line.value)(first) * last.nodes / first.nodes;
        let (from, to) = (&points[0], point(last, grown));
        let _infallible = writeln!(
            out,
            "<polyline points=\"{from} {to}\" stroke=\"{colour}\" stroke-dasharray=\"2 4\" opacity=\"0.5\"/>"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_ten_are_evenly_spaced() {
        let axis = Axis::of([2_000.0, 50_000.0].into_iter(), 0.0, 200.0);
        assert_eq!(axis.ticks().collect::<Vec<_>>(), [1e3, 1e4, 1e5]);
        for (value, expected) in [(1e3, 0.0), (1e4, 100.0), (1e5, 200.0)] {
            assert!((axis.place(value) - expected).abs() < 1e-9, "{value}");
        }
    }
}
