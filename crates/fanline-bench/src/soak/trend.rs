//! The growth of a value over time.

/// A straight line through points, fitted by least squares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Trend {
    /// Growth per unit of time.
    pub(super) slope: f64,
    /// Mean of the values.
    pub(super) mean: f64,
    /// Time from the first point to the last.
    pub(super) span: f64,
}

impl Trend {
    /// Fits a line through points, which are pairs of time and value. Returns `None` if there are fewer than
    /// two different times.
    pub(super) fn of(points: &[(f64, f64)]) -> Option<Self> {
        let count = points.len() as f64;
        let (first, last) = (points.first()?.0, points.last()?.0);
        let mean_time = points.iter().map(|point| point.0).sum::<f64>() / count;
        let mean = points.iter().map(|point| point.1).sum::<f64>() / count;
        let squares: f64 = points.iter().map(|p| (p.0 - mean_time).powi(2)).sum();
        let products = points.iter().map(|p| (p.0 - mean_time) * (p.1 - mean));
        (squares > 0.0).then(|| Self {
            slope: products.sum::<f64>() / squares,
            mean,
            span: last - first,
        })
    }

    /// Returns the growth from the first point to the last.
    pub(super) fn growth(&self) -> f64 {
        self.slope * self.span
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trend_fits_line_and_ignores_noise() {
        let check = |values: &[f64], growth: f64| {
            let points: Vec<_> = (0..).map(f64::from).zip(values.iter().copied()).collect();
            let found = Trend::of(&points).expect("a line");
            assert!((found.growth() - growth).abs() < 1e-9, "{found:?}");
        };
        check(&[5.0, 5.0, 5.0], 0.0);
        check(&[1.0, 2.0, 3.0, 4.0], 3.0);
        check(&[4.0, 2.0, 0.0], -4.0);
        check(&[1.0, 3.0, 3.0, 1.0], 0.0);
        assert_eq!(Trend::of(&[(1.0, 1.0)]), None);
        assert_eq!(Trend::of(&[]), None);
    }
}
