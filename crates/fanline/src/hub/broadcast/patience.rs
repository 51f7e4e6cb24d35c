//! Whether one that cannot go on asks for another turn before it waits.
//!
//! A consumer that has run out of elements:
//!
//! While a producer on another thread sends one element after the other, a consumer that waits at once
//! is woken for each, and so are all the others: waking takes all the time, and nobody ever finds a
//! batch. To leave somebody unwoken is no way out, as only another's poll could make up for it, and
//! nobody has to poll. But a consumer may ask its executor for another turn: by then all the others have
//! had theirs, elements have gathered, and nobody had to wake it.
//!
//! Where elements are few that turn is for nothing. So it is asked for only where wake-ups come from
//! another thread, and by those for whom it has paid lately; the others try it now and then.
//!
//! A producer that has run out of room: on several threads the slowest consumer is somebody else each
//! time it looks, so waiting for each of them in turn is a heavy fence and a wake-up for a few places.
//! After another turn all those who ran meanwhile have moved on. If the slowest runs on another thread, that
//! turn comes at once, and a few more are no dearer than to be woken from there: so the caller says how many
//! are worth it.

/// Turns in a row that may be for nothing.
const FAILURES_MAX: u8 = 3;
/// Then so many times it waits at once, before it tries again.
const REST: u8 = 16;

pub(super) struct Patience {
    /// So many more turns may be for nothing.
    credit: u8,
    /// So many more times it waits at once.
    rest: u8,
    /// It has asked for so many turns, and this may be the last of them.
    asked: u8,
}

impl Patience {
    pub(super) fn new() -> Self {
        Self {
            credit: 1,
            rest: REST,
            asked: 0,
        }
    }

    /// There is something.
    pub(super) fn found(&mut self) {
        if self.asked > 0 {
            self.asked = 0;
            self.credit = FAILURES_MAX;
        }
    }

    /// There is nothing: whether to ask for another turn. `turns` are worth it at most, one after the
    /// other; none, where it is not likely that one helps.
    pub(super) fn asks(&mut self, turns: u8) -> bool {
        if self.asked > 0 {
            if self.asked < turns {
                self.asked += 1;
                return true;
            }
            self.asked = 0;
            self.credit -= 1;
            if self.credit == 0 {
                self.credit = 1;
                self.rest = REST;
            }
            return false;
        }
        if turns == 0 {
            return false;
        }
        if self.rest > 0 {
            self.rest -= 1;
            return false;
        }
        self.asked = 1;
        true
    }
}

#[cfg(test)]
#[cfg(not(fanline_loom))]
mod tests {
    use super::*;

    /// Runs out so many times; whether each time another turn was asked for, which was in
    /// vain.
    fn in_vain(patience: &mut Patience, times: usize) -> Vec<bool> {
        (0..times)
            .map(|_| patience.asks(1) && !patience.asks(1))
            .collect()
    }

    #[test]
    fn one_try_now_and_then_and_several_after_a_success() {
        let mut patience = Patience::new();
        let mut expected = vec![false; 16];
        expected.push(true);
        assert_eq!(in_vain(&mut patience, 17), expected);
        assert_eq!(in_vain(&mut patience, 17), expected);
        assert_eq!(in_vain(&mut patience, 16), [false; 16]);
        for _ in 0..100 {
            assert!(patience.asks(1));
            patience.found();
        }
        expected.splice(0..0, [true; 3]);
        assert_eq!(in_vain(&mut patience, 20), expected);
    }

    #[test]
    fn several_turns_where_they_are_worth_it() {
        let mut patience = Patience::new();
        assert!((0..16).all(|_| !patience.asks(3)));
        let asked: Vec<_> = (0..4).map(|_| patience.asks(3)).collect();
        assert_eq!(asked, [true, true, true, false]);
        // Fewer are worth it by now.
        assert!((0..16).all(|_| !patience.asks(3)));
        assert_eq!(
            [3, 3, 1].map(|turns| patience.asks(turns)),
            [true, true, false]
        );
    }

    #[test]
    fn never_where_it_is_not_likely() {
        let mut patience = Patience::new();
        assert!((0..100).all(|_| !patience.asks(0)));
    }
}
