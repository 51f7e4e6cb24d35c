//! The lanes of this server whose streams no server leads now.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Time after a lane's service has announced itself until its streams are announced, too.
const KNOWN_DELAY: Duration = Duration::from_millis(500);

/// Which lanes have no service in the cluster, as far as this server knows.
#[derive(Default)]
pub(super) struct Absence {
    /// Since when each lane has a service; `None` if it has none.
    since: BTreeMap<u16, Option<Duration>>,
    /// The lanes that counted as absent at the last call.
    absent: BTreeSet<u16>,
}

impl Absence {
    /// Notes which lanes have a service. Returns the absent lanes, if these are others than before.
    pub(super) fn update(
        &mut self,
        lanes: impl Iterator<Item = (u16, bool)>,
        now: Duration,
    ) -> Option<&BTreeSet<u16>> {
        for (lane, has_service) in lanes {
            let since = self.since.entry(lane).or_default();
            *since = has_service.then(|| since.unwrap_or(now));
        }
        let is_absent =
            |since: &Option<Duration>| since.is_none_or(|since| now < since + KNOWN_DELAY);
        let absent = self.since.iter().filter(|(_, since)| is_absent(since));
        let absent: BTreeSet<u16> = absent.map(|(lane, _)| *lane).collect();
        if absent == self.absent {
            return None;
        }
        self.absent = absent;
        Some(&self.absent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_is_absent_until_its_streams_are_known() {
        let mut absence = Absence::default();
        let mut update = |has_service: bool, millis: u64| {
            let lanes = [(0, true), (1, has_service)].into_iter();
            let absent = absence.update(lanes, Duration::from_millis(millis));
            absent.map(|absent| absent.iter().copied().collect::<Vec<_>>())
        };
        assert_eq!(update(false, 0), Some(vec![0, 1]));
        assert_eq!(update(false, 400), None);
        assert_eq!(update(true, 500), Some(vec![1]));
        assert_eq!(update(true, 900), None);
        assert_eq!(update(true, 1000), Some(vec![]));
        assert_eq!(update(false, 1100), Some(vec![1]));
        assert_eq!(update(true, 1200), None);
        assert_eq!(update(true, 1700), Some(vec![]));
    }
}
