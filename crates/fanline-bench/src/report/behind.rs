//! Where somebody else is ahead, said as plainly as where nobody is.

use super::metric::three_digits;

/// Medians that are nearer to each other than this share say nothing.
const NOISE: f64 = 0.05;

/// Which figures are good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Better {
    More,
    Less,
}

/// What is said when Fanline's median, `ratio` times the rival's, is worse by more than noise. `all` of the
/// report looks for lines that begin so.
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
    fn only_what_is_worse_by_more_than_noise_is_told() {
        for (ratio, better, expected) in [
            (0.9, Better::More, true),
            (0.96, Better::More, false),
            (1.5, Better::More, false),
            (1.5, Better::Less, true),
            (1.04, Better::Less, false),
            (0.5, Better::Less, false),
            (f64::NAN, Better::Less, false),
        ] {
            let told = line("other", "a load", ratio, better);
            assert_eq!(told.is_some(), expected, "{ratio} {better:?}");
        }
        let told = line("other", "a load", 0.5, Better::More);
        assert_eq!(told.as_deref(), Some("Behind other: a load, 0.50×."));
    }
}
