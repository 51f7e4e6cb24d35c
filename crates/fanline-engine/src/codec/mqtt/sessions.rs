//! Which client ids have a session, where each is connected, and what becomes of it when it is not: takeover
//! (3.1.4), expiry (4.1) and wills that wait (3.1.3.2.2).

use std::time::Duration;

use hashbrown::HashMap;

use super::verb::Will;
use crate::auth::AccountId;
use crate::timers::Timers;

/// A session's name: ids are an account's own.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey {
    /// Whose client.
    pub account: AccountId,
    /// The id in its CONNECT, or the one that it was assigned.
    pub client_id: Box<str>,
}

/// What became of a CONNECT.
#[derive(Debug, PartialEq, Eq)]
pub struct Opened<P> {
    /// There was a session and it goes on (3.2.2.1.1).
    pub is_present: bool,
    /// There was one and it is over: remove what was kept of it.
    pub was_discarded: bool,
    /// Where the id was connected: close that with 0x8E (MQTT-3.1.4-3).
    pub taken_over: Option<P>,
    /// A will that waited and is due, since its session is over (MQTT-3.1.3-9 does not hold then).
    pub will: Option<Box<Will>>,
}

/// What time brings.
#[derive(Debug, PartialEq, Eq)]
pub enum Due {
    /// A will is to be published.
    Will(SessionKey, Box<Will>),
    /// A session is over: remove what was kept of it.
    Expired(SessionKey),
}

/// One session.
#[derive(Debug)]
struct Entry<P> {
    place: Option<P>,
    /// Its will, and when that is due, while it is not connected.
    will: Option<(Duration, Box<Will>)>,
    /// When it is over, while it is not connected.
    ends_at: Option<Duration>,
    /// Connections that were taken over and are not closed yet, and whether their session was discarded.
    superseded: Vec<(P, bool)>,
}

impl<P> Default for Entry<P> {
    fn default() -> Self {
        Entry {
            place: None,
            will: None,
            ends_at: None,
            superseded: Vec::new(),
        }
    }
}

/// All sessions. `P` says where one is connected.
#[derive(Debug)]
pub struct Sessions<P> {
    all: HashMap<SessionKey, Entry<P>>,
    due: Timers<SessionKey>,
}

impl<P> Default for Sessions<P> {
    fn default() -> Self {
        Sessions {
            all: HashMap::new(),
            due: Timers::default(),
        }
    }
}

impl<P: Copy + PartialEq> Sessions<P> {
    /// A client is let in.
    pub fn open(&mut self, key: &SessionKey, place: P, clean_start: bool) -> Opened<P> {
        let was_there = self.all.contains_key(key);
        let entry = self.all.entry(key.clone()).or_default();
        let taken_over = entry.place.replace(place);
        let was_session = was_there && (taken_over.is_some() || entry.ends_at.is_some());
        let was_discarded = was_session && clean_start;
        if let Some(old) = taken_over {
            entry.superseded.push((old, clean_start));
        }
        entry.ends_at = None;
        let waiting = entry.will.take();
        self.due.set(key.clone(), None);
        Opened {
            is_present: was_session && !clean_start,
            was_discarded,
            taken_over,
            // MQTT-3.1.3-9: one that came back in time leaves no will.
            will: waiting.filter(|_| clean_start).map(|(_, will)| will),
        }
    }

    /// A connection is gone. Returns the will to publish now. `expiry` is in seconds, `u32::MAX` is for ever; what is
    /// over at once is said by [`next_due`](Sessions::next_due).
    pub fn close(
        &mut self,
        key: &SessionKey,
        place: P,
        expiry: u32,
        will: Option<Box<Will>>,
        now: Duration,
    ) -> Option<Box<Will>> {
        let entry = self.all.get_mut(key)?;
        if let Some(at) = entry.superseded.iter().position(|(old, _)| *old == place) {
            let (_, was_discarded) = entry.superseded.swap_remove(at);
            self.forget_if_empty(key);
            // The client is back: what waits is not sent, unless its session is over.
            return will.filter(|will| was_discarded || will.delay.is_zero());
        }
        if entry.place != Some(place) {
            return None;
        }
        entry.place = None;
        let ends_at = match expiry {
            u32::MAX => Duration::MAX,
            seconds => now + Duration::from_secs(u64::from(seconds)),
        };
        entry.ends_at = Some(ends_at);
        // 3.1.3.2.2: whichever comes first.
        let (now_due, waiting) = match will {
            Some(will) if will.delay.is_zero() => (Some(will), None),
            Some(will) => (None, Some(((now + will.delay).min(ends_at), will))),
            None => (None, None),
        };
        entry.will = waiting;
        self.schedule(key);
        now_due
    }

    /// A session that was kept when the server stopped.
    pub fn restore(
        &mut self,
        key: SessionKey,
        ends_at: Duration,
        will: Option<(Duration, Box<Will>)>,
    ) {
        let entry = self.all.entry(key.clone()).or_default();
        entry.ends_at = Some(ends_at);
        entry.will = will;
        self.schedule(&key);
    }

    /// When [`next_due`](Sessions::next_due) is to be called.
    pub fn next_timeout(&self) -> Option<Duration> {
        self.due.next()
    }

    /// The next thing that is due, if there is one; call it until there is none.
    pub fn next_due(&mut self, now: Duration) -> Option<Due> {
        let key = self.due.pop(now)?;
        let entry = self.all.get_mut(&key)?;
        if let Some((_, will)) = entry.will.take_if(|(at, _)| *at <= now) {
            self.schedule(&key);
            return Some(Due::Will(key, will));
        }
        entry.ends_at = None;
        self.forget_if_empty(&key);
        Some(Due::Expired(key))
    }

    /// How many there are, connected or not.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    fn schedule(&mut self, key: &SessionKey) {
        let Some(entry) = self.all.get(key) else {
            return;
        };
        let will_at = entry.will.as_ref().map(|(at, _)| *at);
        let first = [will_at, entry.ends_at].into_iter().flatten().min();
        // A session that never ends needs no timer.
        self.due
            .set(key.clone(), first.filter(|at| *at != Duration::MAX));
    }

    /// Nothing is kept of an id that nobody has.
    fn forget_if_empty(&mut self, key: &SessionKey) {
        let is_empty = |entry: &Entry<P>| {
            entry.place.is_none() && entry.ends_at.is_none() && entry.superseded.is_empty()
        };
        if self.all.get(key).is_some_and(is_empty) {
            self.all.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::mqtt::Qos;

    const NEVER: u32 = u32::MAX;

    fn key() -> SessionKey {
        SessionKey {
            account: AccountId::GLOBAL,
            client_id: "device".into(),
        }
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn will(delay: u64) -> Option<Box<Will>> {
        Some(Box::new(Will {
            topic: "gone".into(),
            payload: Box::default(),
            qos: Qos::AtMostOnce,
            retain: false,
            properties: Box::default(),
            delay: at(delay),
        }))
    }

    fn opened(is_present: bool, was_discarded: bool, taken_over: Option<u8>) -> Opened<u8> {
        Opened {
            is_present,
            was_discarded,
            taken_over,
            will: None,
        }
    }

    #[test]
    fn a_session_goes_on_until_it_is_over() {
        let mut sessions = Sessions::default();
        assert_eq!(sessions.open(&key(), 1, false), opened(false, false, None));
        assert_eq!(sessions.close(&key(), 1, 10, None, at(0)), None);
        assert_eq!(sessions.next_timeout(), Some(at(10)));
        assert_eq!(sessions.open(&key(), 2, false), opened(true, false, None));
        assert_eq!(sessions.next_timeout(), None);
        sessions.close(&key(), 2, 10, None, at(20));
        assert_eq!(sessions.next_due(at(29)), None);
        assert_eq!(sessions.next_due(at(30)), Some(Due::Expired(key())));
        assert!(sessions.is_empty());
        assert_eq!(sessions.open(&key(), 3, false), opened(false, false, None));
        sessions.close(&key(), 3, NEVER, None, at(40));
        assert_eq!(
            (sessions.next_timeout(), sessions.next_due(at(1 << 40))),
            (None, None)
        );
        assert_eq!(sessions.open(&key(), 4, true), opened(false, true, None));
    }

    #[test]
    fn an_id_is_taken_over() {
        let mut sessions = Sessions::default();
        sessions.open(&key(), 1, false);
        assert_eq!(
            sessions.open(&key(), 2, false),
            opened(true, false, Some(1))
        );
        // What delays its will is back; one without a delay is sent.
        assert_eq!(sessions.close(&key(), 1, NEVER, will(5), at(1)), None);
        assert_eq!(
            sessions.open(&key(), 3, false),
            opened(true, false, Some(2))
        );
        assert_eq!(sessions.close(&key(), 2, NEVER, will(0), at(1)), will(0));
        // A session that is discarded is over, and its will due.
        assert_eq!(sessions.open(&key(), 4, true), opened(false, true, Some(3)));
        assert_eq!(sessions.close(&key(), 3, NEVER, will(5), at(2)), will(5));
        assert_eq!(sessions.close(&key(), 3, NEVER, will(5), at(2)), None);
        assert_eq!(sessions.close(&key(), 4, 0, None, at(3)), None);
        assert_eq!(sessions.next_due(at(3)), Some(Due::Expired(key())));
        assert!(sessions.is_empty());
    }

    #[test]
    fn a_will_waits_as_long_as_it_says() {
        // Delay, expiry, and when it is sent.
        for (delay, expiry, sent) in [(5, 10, 5), (10, 5, 5), (5, NEVER, 5)] {
            let mut sessions = Sessions::default();
            sessions.open(&key(), 1, false);
            assert_eq!(sessions.close(&key(), 1, expiry, will(delay), at(0)), None);
            assert_eq!(sessions.next_due(at(sent - 1)), None);
            let due = sessions.next_due(at(sent));
            assert_eq!(due, will(delay).map(|will| Due::Will(key(), will)));
        }
        let mut sessions = Sessions::default();
        sessions.open(&key(), 1, false);
        sessions.close(&key(), 1, 10, will(5), at(0));
        assert_eq!(sessions.open(&key(), 2, false).will, None, "MQTT-3.1.3-9");
        sessions.close(&key(), 2, 10, will(5), at(0));
        assert_eq!(sessions.open(&key(), 3, true).will, will(5));
    }
}
