//! Draws the lifetimes of pods as bars: a row per node, time to the right, a line where a phase of the rollout begins.
//! Pure.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::phases::Began;
use super::pod_lifetimes::PodLifetime;

const WIDTH: f64 = 860.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 98.0;
const ROW: f64 = 21.0;
const BAR: f64 = 13.0;
/// Height of the strip that shows the number of nodes without a ready pod.
const STRIP: f64 = 30.0;

/// The drawing has its own background, to be readable on light and dark pages.
const STYLE: &str = "<style>
  .paper{fill:#fff;stroke:#d1d9e0} .text{fill:#1f2328} .faint{fill:#59636e} .grid{stroke:#d1d9e0}
  .old{fill:#6e7781} .new{fill:#1a7f37} .none{fill:#bf3989} .limit{stroke:#bf3989}
  .bad{fill:#cf222e} .wait{fill:none;stroke:#59636e} .phase{stroke:#59636e}
  @media (prefers-color-scheme: dark) {
    .paper{fill:#0d1117;stroke:#3d444d} .text{fill:#f0f6fc} .faint{fill:#9198a1} .grid{stroke:#30363d}
    .old{fill:#8b949e} .new{fill:#3fb950} .none{fill:#db61a2} .limit{stroke:#db61a2}
    .bad{fill:#f85149} .wait{stroke:#9198a1} .phase{stroke:#9198a1}
  }
  .mono{font-family:ui-monospace,monospace} .stopping{opacity:.35} .strip{opacity:.75}
</style>
";

pub(super) struct Drawing<'a> {
    pub(super) lifetimes: &'a [PodLifetime],
    pub(super) phases: &'a [Began],
    /// As the policy has them.
    pub(super) stages: &'a str,
    /// The shown interval, in seconds since the start of the update, …
    pub(super) from: f64,
    /// … to its end.
    pub(super) to: f64,
    pub(super) max_unavailable: u32,
}

impl Drawing<'_> {
    pub(super) fn svg(&self) -> String {
        let nodes = self.nodes();
        let rows_end = nodes.iter().fold(TOP, |y, _| y + ROW);
        let height = rows_end + STRIP + 54.0;
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n{STYLE}\
             <rect class=\"paper\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"8\"/>\n",
            WIDTH - 1.0,
            height - 1.0
        );
        self.head(&mut out, nodes.len());
        self.grid(&mut out, rows_end + STRIP + 20.0);
        for (node, y) in nodes.iter().zip(rows()) {
            self.row(&mut out, node, y);
        }
        self.strip(&mut out, &nodes, rows_end + 18.0);
        self.phase_lines(&mut out, rows_end);
        out.push_str("</svg>\n");
        out
    }

    /// The nodes, in the order in which they were updated.
    fn nodes(&self) -> Vec<&str> {
        let names: BTreeSet<&str> = self.lifetimes.iter().map(|life| &*life.node).collect();
        let mut names: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).collect();
        let updated = |name: &str| {
            let of = self.lifetimes.iter().filter(|life| life.node == name);
            of.filter_map(|life| life.deleted.or(life.gone))
                .fold(f64::INFINITY, f64::min)
        };
        names.sort_by(|a, b| updated(a).total_cmp(&updated(b)));
        names
    }

    fn x(&self, at: f64) -> f64 {
        let part = (at.clamp(self.from, self.to) - self.from) / (self.to - self.from);
        LEFT + part * (WIDTH - LEFT - RIGHT)
    }

    fn head(&self, out: &mut String, nodes: usize) {
        let most = self.most_unavailable();
        let reached = self.reached();
        let _infallible = write!(
            out,
            "<text class=\"text mono\" x=\"20\" y=\"28\" font-size=\"13\">$ kubectl set image ds/agent agent=agent:2</text>\n\
             <text class=\"faint\" x=\"20\" y=\"48\">{nodes} nodes · stages: {} · on-failure: rollback · maxUnavailable: {} · \
             {reached} nodes got it, all back after {:.1} s, {most} at most without</text>\n",
            self.stages,
            self.max_unavailable,
            self.back_after()
        );
        let keys = [
            ("old", "", "agent:1 ready"),
            ("old stopping", "", "stopping"),
            ("wait", " stroke-dasharray=\"3 3\"", "starting"),
            ("new", "", "agent:2 ready"),
            ("bad", "", "crashes"),
        ];
        let mut x = LEFT;
        for (class, more, label) in keys {
            let _infallible = writeln!(
                out,
                "<rect class=\"{class}\" x=\"{x}\" y=\"58\" width=\"14\" height=\"9\" rx=\"2\"{more}/>\
                 <text class=\"faint\" x=\"{}\" y=\"66.5\" font-size=\"11\">{label}</text>",
                x + 19.0
            );
            x += if label.len() > 9 { 108.0 } else { 82.0 };
        }
    }

    /// Number of nodes that had a pod of the new version.
    fn reached(&self) -> usize {
        let new = self.lifetimes.iter().filter(|life| !is_old(life));
        new.map(|life| &life.node).collect::<BTreeSet<_>>().len()
    }

    /// When the last node had a ready pod of the old version again.
    fn back_after(&self) -> f64 {
        let again = self.lifetimes.iter().filter(|life| is_old(life));
        again
            .filter_map(|life| life.ready)
            .fold(0.0, |last: f64, ready| last.max(ready))
    }

    /// A line where each phase begins, with its name.
    fn phase_lines(&self, out: &mut String, bottom: f64) {
        for began in self.phases {
            let (x, label) = (self.x(began.at), began.phase.label());
            let _infallible = writeln!(
                out,
                "<path class=\"phase\" d=\"M{x:.1} {}V{bottom:.1}\" stroke-dasharray=\"1 3\"/>\
                 <text class=\"text\" x=\"{x:.1}\" y=\"{}\" font-size=\"11\">{label}</text>",
                TOP - 6.0,
                TOP - 10.0
            );
        }
    }

    fn grid(&self, out: &mut String, bottom: f64) {
        let step = if self.to - self.from > 30.0 {
            10.0
        } else {
            5.0
        };
        let mut at = 0.0;
        while at <= self.to {
            let x = self.x(at);
            let _infallible = writeln!(
                out,
                "<path class=\"grid\" d=\"M{x:.1} {}V{bottom:.1}\"/>\
                 <text class=\"faint\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{at} s</text>",
                TOP - 4.0,
                bottom + 16.0
            );
            at += step;
        }
    }

    fn row(&self, out: &mut String, node: &str, y: f64) {
        let _infallible = writeln!(
            out,
            "<text class=\"text mono\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\" font-size=\"11\">{node}</text>",
            LEFT - 10.0,
            y + BAR - 3.0
        );
        for life in self.lifetimes.iter().filter(|life| life.node == node) {
            let version = match (is_old(life), life.crashed) {
                (true, _) => "old",
                (false, None) => "new",
                (false, Some(_)) => "bad",
            };
            let stopped = life.deleted.or(life.gone).unwrap_or(self.to);
            let started = life.ready.or(life.crashed).unwrap_or(stopped);
            let wait = "wait\" stroke-dasharray=\"3 3";
            self.bar(out, wait, (life.created, started), y);
            self.bar(out, version, (started, stopped), y);
            let gone = life.gone.unwrap_or(self.to);
            let ending = match version {
                "bad" => version.to_owned(),
                _ => format!("{version} stopping"),
            };
            self.bar(out, &ending, (stopped, gone), y);
        }
    }

    fn bar(&self, out: &mut String, class: &str, (from, to): (f64, f64), y: f64) {
        let (left, right) = (self.x(from), self.x(to));
        if right - left >= 0.5 {
            let _infallible = writeln!(
                out,
                "<rect class=\"{class}\" x=\"{left:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{BAR}\" rx=\"2\"/>",
                right - left
            );
        }
    }

    /// Draws the number of nodes without a ready pod over time, and maxUnavailable as a line.
    fn strip(&self, out: &mut String, nodes: &[&str], y: f64) {
        let bottom = y + STRIP;
        let height = |count: u32| STRIP * f64::from(count) / f64::from(self.max_unavailable + 1);
        let mut path = format!("M{:.1} {bottom:.1}", self.x(self.from));
        let moments = self.change_times();
        for (at, next) in moments.iter().zip(&moments[1..]) {
            let top = bottom - height(self.unavailable(nodes, *at));
            let (left, right) = (self.x(*at), self.x(*next));
            let _infallible = write!(path, "L{left:.1} {top:.1}L{right:.1} {top:.1}");
        }
        let limit = bottom - height(self.max_unavailable);
        let _infallible = write!(
            out,
            "<path class=\"none strip\" d=\"{path}L{:.1} {bottom:.1}Z\"/>\n\
             <path class=\"limit\" d=\"M{LEFT} {limit:.1}H{:.1}\" stroke-dasharray=\"2 3\"/>\n\
             <text class=\"faint\" x=\"{x}\" y=\"{:.1}\" text-anchor=\"end\" font-size=\"11\">nodes</text>\n\
             <text class=\"faint\" x=\"{x}\" y=\"{:.1}\" text-anchor=\"end\" font-size=\"11\">without</text>\n",
            self.x(self.to),
            WIDTH - RIGHT,
            bottom - 15.0,
            bottom - 2.0,
            x = LEFT - 10.0
        );
    }

    /// The times at which something changed.
    fn change_times(&self) -> Vec<f64> {
        let of = |life: &PodLifetime| [life.ready, life.deleted, life.gone];
        let mut moments: Vec<f64> = self.lifetimes.iter().flat_map(of).flatten().collect();
        moments.extend([self.from, self.to]);
        moments.retain(|at| (self.from..=self.to).contains(at));
        moments.sort_by(f64::total_cmp);
        moments
    }

    fn unavailable(&self, nodes: &[&str], at: f64) -> u32 {
        let ready = |node: &&&str| {
            let mut lives = self.lifetimes.iter().filter(|life| life.node == **node);
            !lives.any(|life| life.is_ready(at))
        };
        u32::try_from(nodes.iter().filter(ready).count()).unwrap_or(u32::MAX)
    }

    /// The largest number of nodes without a ready pod.
    fn most_unavailable(&self) -> u32 {
        let nodes = self.nodes();
        let counts = self.change_times().into_iter();
        counts
            .map(|at| self.unavailable(&nodes, at))
            .max()
            .unwrap_or(0)
    }
}

/// A pod of the version from before the update.
fn is_old(life: &PodLifetime) -> bool {
    life.image.ends_with(":1")
}

/// The y coordinates of the rows.
fn rows() -> impl Iterator<Item = f64> {
    std::iter::successors(Some(TOP), |y| Some(y + ROW))
}

#[cfg(test)]
mod tests {
    use super::super::phases::Phase;
    use super::*;

    fn life(node: &str, image: &str, [created, ready, deleted]: [f64; 3]) -> PodLifetime {
        PodLifetime {
            node: node.to_owned(),
            image: image.to_owned(),
            created,
            ready: Some(ready),
            crashed: None,
            deleted: Some(deleted),
            gone: Some(deleted + 1.0),
        }
    }

    #[test]
    fn rows_are_in_update_order_and_unavailable_nodes_are_counted() {
        let mut lives = [
            life("a", "i:1", [-9.0, -8.0, 3.0]),
            life("b", "i:1", [-9.0, -8.0, 1.0]),
            life("b", "i:2", [2.0, 2.5, 99.0]),
            life("a", "i:2", [4.0, 5.0, 6.5]),
            life("a", "i:1", [7.0, 7.5, 99.0]),
        ];
        lives[3].crashed = Some(6.0);
        let phases = [
            Began {
                at: 0.5,
                phase: Phase::Stage(1),
            },
            Began {
                at: 7.0,
                phase: Phase::Held,
            },
        ];
        let drawing = Drawing {
            lifetimes: &lives,
            phases: &phases,
            stages: "1, 100%",
            from: -1.0,
            to: 8.0,
            max_unavailable: 1,
        };
        assert_eq!(drawing.nodes(), ["b", "a"]);
        assert_eq!(drawing.most_unavailable(), 1);
        let svg = drawing.svg();
        let said = "2 nodes got it, all back after 7.5 s, 1 at most without";
        assert!(svg.contains(said), "{svg}");
        assert!(svg.contains(">stage 1</text>"), "{svg}");
        for class in [
            "\"old\"",
            "\"new\"",
            "\"bad\"",
            "\"old stopping\"",
            "\"wait\"",
        ] {
            assert!(svg.contains(class), "{class}");
        }
    }
}
