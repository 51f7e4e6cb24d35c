//! The comparison of a repeated measurement with the ratios of the previous one.

use std::collections::BTreeMap;

use crate::report::metric::three_digits;

/// Two ratios count as equal if they differ by less than this share. A ratio is not more precise, because it
/// is computed from the medians of only a few rounds.
const SAME: f64 = 0.15;

/// Returns a summary that compares two pages of one table, or `None` if they have no ratio in common.
pub(super) fn compare(before: &str, now: &str) -> Option<String> {
    let (before, now) = (ratios(before), ratios(now));
    let distances: Vec<(&String, f64)> = now
        .iter()
        .filter_map(|(row, ratio)| Some((row, (ratio / before.get(row)?).ln().abs())))
        .filter(|(_, distance)| distance.is_finite())
        .collect();
    let furthest = distances
        .iter()
        .max_by(|one, other| one.1.total_cmp(&other.1));
    let row = furthest?.0;
    let same = distances.iter().filter(|one| one.1 <= SAME.ln_1p());
    Some(format!(
        "{} of {} ratios are within {:.0} % of those before; furthest: {row}, {}× was {}×",
        same.count(),
        distances.len(),
        SAME * 100.0,
        three_digits(now[row]),
        three_digits(before[row]),
    ))
}

/// Returns the values of the ratio columns. A key is the text at the beginning of a row.
fn ratios(page: &str) -> BTreeMap<String, f64> {
    let mut ratios = BTreeMap::new();
    let (mut column, mut title) = (None, "");
    for line in page.lines() {
        let Some(row) = line.strip_prefix('|') else {
            column = None;
            continue;
        };
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let Some(at) = column else {
            column = cells.iter().position(|cell| *cell == "ratio");
            continue;
        };
        let [first, result, ..] = cells[..] else {
            continue;
        };
        // A row may omit its first cell if that cell equals the one above.
        if !first.is_empty() {
            title = first;
        }
        let ratio = cells.get(at).and_then(|cell| cell.strip_suffix('×'));
        if let Some(ratio) = ratio.and_then(|ratio| ratio.parse().ok()) {
            ratios.insert(format!("{title}, {result}"), ratio);
        }
    }
    ratios
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "# Title\n\n| shape | result | ratio | verdict |\n|---|---|---|---|\n\
        | 1 to 1 | rate | 4.00× | met |\n| | CPU | 0.50× | met |\n| gone | rate | 2.00× | |\n\n\
        | other | ratios |\n|---|---|\n| a | 3.00× |\n";

    #[test]
    fn ratios_are_read_from_ratio_column() {
        let expected = [
            ("1 to 1, CPU", 0.5),
            ("1 to 1, rate", 4.0),
            ("gone, rate", 2.0),
        ];
        let expected = expected.map(|(row, ratio)| (row.to_owned(), ratio));
        assert_eq!(ratios(BEFORE), BTreeMap::from(expected));
    }

    #[test]
    fn largest_change_is_named() {
        let now = BEFORE.replace("4.00×", "4.40×").replace("0.50×", "0.25×");
        let now = now.replace("gone", "new");
        assert_eq!(
            compare(BEFORE, &now).as_deref(),
            Some(
                "1 of 2 ratios are within 15 % of those before; furthest: 1 to 1, CPU, 0.25× was 0.50×"
            )
        );
        assert_eq!(compare("", &now), None);
    }
}
