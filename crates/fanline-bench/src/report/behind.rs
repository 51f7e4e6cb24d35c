//! Notes on systems that are better than Fanline.

use super::metric::{Summary, three_digits};

/// Relative difference below which two medians are treated as equal.
const NOISE: f64 = 0.05;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Better {
    More,
    Less,
}

/// The condition under which another system counts as better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// The medians differ by more than noise. For rows with many runs.
    Median,
    /// Even the best run is worse than the other system's worst run. For rows with few runs.
    Range,
    /// Never, because the other system or the metric is only a reference.
    Never,
}

impl Rule {
    pub(crate) fn is_behind(self, own: Summary, other: Summary, better: Better) -> bool {
        match (self, better) {
            (Self::Median, _) => is_worse(own.median / other.median, better),
            (Self::Range, Better::More) => own.max < other.min,
            (Self::Range, Better::Less) => own.min > other.max,
            (Self::Never, _) => false,
        }
    }
}

/// Returns whether a ratio of Fanline's median to that of another system shows a difference beyond noise.
fn is_worse(ratio: f64, better: Better) -> bool {
    match better {
        Better::More => ratio < 1.0 - NOISE,
        Better::Less => ratio > 1.0 + NOISE,
    }
}

/// Returns the note on a better system. `ratio` is Fanline's median divided by that of the other system.
pub(crate) fn line(rival: &str, what: &str, ratio: f64) -> String {
    format!("Behind {rival}: {what}, {}×.", three_digits(ratio))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_worse_than_noise_is_noted() {
        for (ratio, better, expected) in [
            (0.9, Better::More, true),
            (0.96, Better::More, false),
            (1.5, Better::More, false),
            (1.5, Better::Less, true),
            (1.04, Better::Less, false),
            (0.5, Better::Less, false),
            (f64::NAN, Better::Less, false),
        ] {
            let (own, other) = (Summary::single(ratio), Summary::single(1.0));
            let is_noted = Rule::Median.is_behind(own, other, better);
            assert_eq!(is_noted, expected, "{ratio} {better:?}");
        }
        let note = line("other", "a load", 0.5);
        assert_eq!(note, "Behind other: a load, 0.50×.");
    }

    #[test]
    fn overlapping_ranges_are_equal() {
        let range = |min, max| Summary {
            median: f64::midpoint(min, max),
            min,
            max,
        };
        for (own, better, expected) in [
            (range(1.0, 2.9), Better::More, true),
            (range(1.0, 3.1), Better::More, false),
            (range(4.9, 9.0), Better::Less, false),
            (range(5.1, 9.0), Better::Less, true),
        ] {
            let is_behind = Rule::Range.is_behind(own, range(3.0, 5.0), better);
            assert_eq!(is_behind, expected, "{own:?} {better:?}");
            assert!(!Rule::Never.is_behind(own, range(3.0, 5.0), better));
        }
    }
}
