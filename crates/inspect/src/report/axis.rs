//! Time to the right.

/// The steps between ticks, in milliseconds.
const STEPS: [u64; 20] = [
    100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000,
    900_000, 1_800_000, 3_600_000, 7_200_000, 21_600_000, 43_200_000, 86_400_000,
];
/// Ticks at most.
const TICKS_MAX: u64 = 10;

/// The horizontal axis of a picture.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    pub(super) left: f64,
    pub(super) right: f64,
    /// In milliseconds; at least one.
    pub(super) length: u64,
}

impl Axis {
    #[expect(clippy::cast_precision_loss, reason = "milliseconds of a picture")]
    pub(super) fn x(&self, at: u64) -> f64 {
        let part = at.min(self.length) as f64 / self.length as f64;
        self.left + part * (self.right - self.left)
    }

    /// When a column begins, of so many.
    pub(super) fn column(&self, index: usize, of: usize) -> u64 {
        let (index, of) = (index as u128, of.max(1) as u128);
        let at = u128::from(self.length) * index / of;
        u64::try_from(at).unwrap_or(u64::MAX)
    }

    pub(super) fn ticks(&self) -> Vec<(u64, String)> {
        let fits = |step: &&u64| self.length / **step <= TICKS_MAX;
        let days = STEPS[STEPS.len() - 1];
        let step = STEPS.iter().find(fits).copied();
        let step = step.unwrap_or_else(|| self.length.div_ceil(TICKS_MAX).next_multiple_of(days));
        let ticks = (0..=self.length / step).map(|tick| tick * step);
        ticks.map(|at| (at, label(at, step))).collect()
    }
}

fn label(at: u64, step: u64) -> String {
    let seconds = at / 1000;
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    match step {
        0..1_000 => format!("{seconds}.{} s", at % 1000 / 100),
        1_000..60_000 if minutes == 0 => format!("{seconds} s"),
        1_000..60_000 => format!("{minutes}:{:02}", seconds % 60),
        60_000..3_600_000 if hours == 0 => format!("{minutes} min"),
        60_000..86_400_000 => format!("{hours}:{:02} h", minutes % 60),
        _ => format!("{} d", hours / 24),
    }
}
