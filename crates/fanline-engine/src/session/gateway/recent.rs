//! Interest of this server that other clusters may not know yet.

use std::collections::VecDeque;
use std::time::Duration;

use hashbrown::HashMap;

use crate::auth::AccountId;
use crate::subject::trie::{Trie, Vacant};

/// Time after which other clusters are expected to know new interest.
const KNOWN_AFTER: Duration = Duration::from_secs(2);

/// Largest number of recent filters. The oldest one is forgotten first.
const RECENT_MAX: usize = 64 * 1024;

/// The time until which a filter is recent; `None` if it is not.
#[derive(Default)]
struct Until(Option<Duration>);

impl Vacant for Until {
    fn is_vacant(&self) -> bool {
        self.0.is_none()
    }
}

/// Filters without a queue group that this server has announced recently.
#[derive(Default)]
pub(super) struct Recent {
    accounts: HashMap<AccountId, Trie<Until>>,
    /// The filters in the order in which they cease to be recent.
    order: VecDeque<(Duration, AccountId, Box<[u8]>)>,
}

impl Recent {
    /// Records new interest.
    pub(super) fn record(&mut self, account: AccountId, filter: &[u8], now: Duration) {
        if self.order.len() >= RECENT_MAX {
            self.forget_first();
        }
        let until = now + KNOWN_AFTER;
        let filters = self.accounts.entry(account).or_default();
        let node = filters.insert(filter);
        *filters.value_mut(node) = Until(Some(until));
        self.order.push_back((until, account, filter.into()));
    }

    /// Returns whether recent interest matches a subject.
    pub(super) fn matches(&mut self, account: AccountId, subject: &[u8], now: Duration) -> bool {
        while self.order.front().is_some_and(|(until, ..)| *until <= now) {
            self.forget_first();
        }
        let mut is_matched = false;
        if let Some(filters) = self.accounts.get(&account) {
            filters.filters_matching(subject, &mut |_| is_matched = true);
        }
        is_matched
    }

    fn forget_first(&mut self) {
        let Some((until, account, filter)) = self.order.pop_front() else {
            return;
        };
        let Some(filters) = self.accounts.get_mut(&account) else {
            return;
        };
        if let Some(node) = filters.find(&filter)
            && filters.value(node).0 == Some(until)
        {
            *filters.value_mut(node) = Until(None);
            filters.release(node);
        }
        if filters.is_empty() {
            self.accounts.remove(&account);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interest_is_recent_for_two_seconds() {
        let mut recent = Recent::default();
        let at = Duration::from_millis;
        let account = AccountId::GLOBAL;
        recent.record(account, b"a.*", at(0));
        recent.record(account, b"b", at(1000));
        recent.record(account, b"b", at(1500));
        for (subject, now, expected) in [
            ("a.1", 1999, true),
            ("a.1.2", 1999, false),
            ("b", 1999, true),
            ("a.1", 2000, false),
            ("b", 3499, true),
            ("b", 3500, false),
        ] {
            let found = recent.matches(account, subject.as_bytes(), at(now));
            assert_eq!(found, expected, "{subject} at {now}");
        }
        assert!(!recent.matches(AccountId::SYSTEM, b"b", at(1600)));
        assert!(recent.accounts.is_empty() && recent.order.is_empty());
    }

    #[test]
    fn oldest_interest_is_forgotten_first() {
        let mut recent = Recent::default();
        for number in 0..=RECENT_MAX {
            recent.record(
                AccountId::GLOBAL,
                number.to_string().as_bytes(),
                Duration::ZERO,
            );
        }
        assert_eq!(recent.order.len(), RECENT_MAX);
        assert!(!recent.matches(AccountId::GLOBAL, b"0", Duration::ZERO));
        assert!(recent.matches(AccountId::GLOBAL, b"1", Duration::ZERO));
    }
}
