//! Notes on systems that are faster than Fanline.

use super::metric::three_digits;

/// Relative difference below which two medians are treated as equal.
const NOISE: f64 = 0.05;

/// Whether a larger or a smaller result is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Better {
    More,
    Less,
}

/// Returns a note if Fanline's result is worse by more than noise. `ratio` is Fanline's median divided by
/// that of the other system. The subcommand `all` searches reports for lines that start like this note.
pub(crate) fn line(rival: &str, what: &str, ratio: f64, better: Better) -> Option<String> {
    let is_behind = match better {
        Better::More => ratio < 1.0 - NOISE,
        Better::Less => ratio > 1.0 + NOISE,
    };
    is_behind.then(|| format!("Behind {rival}: {what}, {}×.", three_digits(ratio)))
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
            let note = line("other", "a load", ratio, better);
            assert_eq!(note.is_some(), expected, "{ratio} {better:?}");
        }
        let note = line("other", "a load", 0.5, Better::More);
        assert_eq!(note.as_deref(), Some("Behind other: a load, 0.50×."));
    }
}
