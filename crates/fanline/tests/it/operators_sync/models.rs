//! Compares each operator with the iterator adaptor that has the same effect.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

/// Returns the output that is expected if the source ends with `end`: `values`, then `late` if the source
/// completes, then the end.
fn expected<T: Clone>(
    end: End,
    values: impl IntoIterator<Item = T>,
    late: impl IntoIterator<Item = T>,
) -> Vec<Notification<T, Failure>> {
    let mut values: Vec<_> = values.into_iter().collect();
    match end {
        End::Completes => {
            values.extend(late);
            completes(values)
        }
        End::Fails(error) => fails(values, error),
        End::Never => open(values),
    }
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![
        Just(End::Completes),
        Just(End::Fails("no")),
        Just(End::Never)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn element_wise_operators_match_iterators(values in prop::collection::vec(0_u8..8, 0..12), end in end()) {
        let v = || values.iter().copied();
        let same = |got: Vec<u8>| expected(end, got, []);
        check(&values, end, |s| s.map(|n| n ^ 5), &same(v().map(|n| n ^ 5).collect()));
        check(&values, end, |s| s.filter(|n| n % 3 == 0), &same(v().filter(|n| n % 3 == 0).collect()));
        check(&values, end, |s| s.filter_map(|n| n.checked_sub(3)), &same(v().filter_map(|n| n.checked_sub(3)).collect()));
        check(&values, end, |s| s.skip_while(|n| *n < 4), &same(v().skip_while(|n| *n < 4).collect()));
        let sums = v().scan(0, |sum, n| {
            *sum += n;
            Some(*sum)
        });
        check(&values, end, |s| s.scan(0, |sum, n| sum + n), &same(sums.collect()));
        let mut deduplicated = values.clone();
        deduplicated.dedup();
        check(&values, end, |s| s.distinct_until_changed(), &same(deduplicated));
        let mut by_key = values.clone();
        by_key.dedup_by_key(|n| *n / 2);
        check(&values, end, |s| s.distinct_until_changed_by_key(|n| n / 2), &same(by_key));
        let mut seen = HashSet::new();
        check(&values, end, |s| s.distinct(), &same(v().filter(|n| seen.insert(*n)).collect()));
        let pairs = values.windows(2).map(|pair| (pair[0], pair[1]));
        check(&values, end, |s| s.pairwise(), &expected(end, pairs, []));
        check(&values, end, |s| s.enumerate(), &expected(end, v().enumerate(), []));
    }

    #[test]
    fn counting_operators_match_iterators(values in prop::collection::vec(0_u8..8, 0..12), n in 0_usize..14, end in end()) {
        let v = || values.iter().copied();
        let taken: Vec<_> = v().take(n).collect();
        let all = if n <= values.len() { completes(&taken) } else { expected(end, v(), []) };
        check(&values, end, |s| s.take(n), &all);
        check(&values, end, |s| s.skip(n), &expected(end, v().skip(n), []));
        let split = values.len().saturating_sub(n);
        check(&values, end, |s| s.take_last(n), &expected(end, [], values[split..].iter().copied()));
        check(&values, end, |s| s.skip_last(n), &expected(end, values[..split].iter().copied(), []));
        let at = match values.get(n) {
            Some(value) => completes([*value]),
            None => expected(end, [], []),
        };
        check(&values, end, |s| s.element_at(n), &at);
    }

    #[test]
    fn predicate_operators_match_iterators(values in prop::collection::vec(0_u8..8, 0..12), limit in 0_u8..9, end in end()) {
        let stop = values.iter().position(|n| *n >= limit);
        let until = |last: usize| match stop {
            Some(stop) => completes(&values[..stop + last]),
            None => expected(end, values.iter().copied(), []),
        };
        check(&values, end, |s| s.take_while(move |n| *n < limit), &until(0));
        check(&values, end, |s| s.take_while_inclusive(move |n| *n < limit), &until(1));
        let verdict = |settled: bool, found: bool| {
            if found { completes([settled]) } else { expected(end, [], [!settled]) }
        };
        let found = stop.is_some();
        check(&values, end, |s| s.any(move |n| *n >= limit), &verdict(true, found));
        check(&values, end, |s| s.all(move |n| *n < limit), &verdict(false, found));
        check(&values, end, |s| s.contains(limit), &verdict(true, values.contains(&limit)));
        check(&values, end, |s| s.is_empty(), &verdict(false, !values.is_empty()));
    }

    #[test]
    fn buffer_operators_match_slices(values in prop::collection::vec(0_u8..8, 0..12), count in 1_usize..5, every in 1_usize..5, end in end()) {
        let begun = (0..values.len()).step_by(every);
        let (full, rest): (Vec<_>, Vec<_>) = begun
            .map(|from| values[from..values.len().min(from + count)].to_vec())
            .partition(|buffer| buffer.len() == count);
        check(&values, end, |s| s.buffer_count_every(count, every), &expected(end, full, rest));
        let chunks = values.chunks_exact(count);
        let rest = Some(chunks.remainder().to_vec()).filter(|rest| !rest.is_empty());
        check(&values, end, |s| s.buffer_count(count), &expected(end, chunks.map(<[_]>::to_vec), rest));
    }

    #[test]
    fn folding_operators_match_iterators(values in prop::collection::vec(0_u8..8, 0..12), end in end()) {
        let v = || values.iter().copied();
        check(&values, end, |s| s.count(), &expected(end, [], [values.len()]));
        check(&values, end, |s| s.sum(), &expected(end, [], [v().sum()]));
        check(&values, end, |s| s.min(), &expected(end, [], v().min()));
        check(&values, end, |s| s.max(), &expected(end, [], v().max()));
        check(&values, end, |s| s.last(), &expected(end, [], v().last()));
        check(&values, end, |s| s.reduce(|a, b| a ^ b), &expected(end, [], v().reduce(|a, b| a ^ b)));
        check(&values, end, |s| s.fold(9, |a, b| a * 2 % 31 + b), &expected(end, [], [v().fold(9, |a, b| a * 2 % 31 + b)]));
        check(&values, end, |s| s.collect::<Vec<_>>(), &expected(end, [], [values.clone()]));
        let pairs = || v().enumerate().map(|(at, n)| (n, at));
        check(&values, end, |s| s.enumerate().min_by(|a, b| a.1.cmp(&b.1)).map(|(at, n)| (*n, *at)), &expected(end, [], pairs().min_by(|a, b| a.0.cmp(&b.0))));
        check(&values, end, |s| s.enumerate().max_by(|a, b| a.1.cmp(&b.1)).map(|(at, n)| (*n, *at)), &expected(end, [], pairs().max_by(|a, b| a.0.cmp(&b.0))));
    }
}
