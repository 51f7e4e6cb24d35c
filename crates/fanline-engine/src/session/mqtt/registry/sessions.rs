//! All sessions by client id, with their connections: takeover (3.1.4), expiry (4.1), and delayed wills
//! (3.1.3.2.2).

use std::time::Duration;

use hashbrown::HashMap;

use crate::auth::AccountId;
use crate::codec::mqtt::Will;
use crate::timers::Timers;

/// The name of a session. Each account has client ids of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SessionKey {
    /// The account of the client.
    pub(crate) account: AccountId,
    /// The client id of CONNECT, or the one that was assigned.
    pub(crate) client_id: Box<str>,
}

/// The result of [`Sessions::open`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Opened<P> {
    /// Whether a session existed and is resumed (3.2.2.1.1). The registry itself checks the session's record
    /// instead.
    pub(crate) is_present: bool,
    /// Whether this connection has ended an existing session.
    pub(crate) was_discarded: bool,
    /// The earlier connection of the client id, to be closed with 0x8E (MQTT-3.1.4-3).
    pub(crate) taken_over: Option<P>,
    /// A delayed will that is due, because its session has ended. MQTT-3.1.3-9, by which a reconnection
    /// cancels the will, does not apply then.
    pub(crate) will: Option<Box<Will>>,
}

/// An action that is due.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Publish a will.
    Will(SessionKey, Box<Will>),
    /// Remove the records of a session that has expired.
    Expired(SessionKey),
}

/// One session.
#[derive(Debug)]
struct Entry<P> {
    connection: Option<P>,
    /// The will and its due time, while the client is not connected.
    will: Option<(Duration, Box<Will>)>,
    /// Expiry time of the session, while the client is not connected.
    ends_at: Option<Duration>,
    /// Earlier connections that are not closed yet, each with whether its session was discarded.
    superseded: Vec<(P, bool)>,
}

impl<P> Default for Entry<P> {
    fn default() -> Self {
        Entry {
            connection: None,
            will: None,
            ends_at: None,
            superseded: Vec::new(),
        }
    }
}

/// All sessions. `P` identifies a connection.
#[derive(Debug)]
pub(crate) struct Sessions<P> {
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
    /// Begins or resumes a session.
    pub(crate) fn open(&mut self, key: &SessionKey, connection: P, clean_start: bool) -> Opened<P> {
        let was_there = self.all.contains_key(key);
        let entry = self.all.entry(key.clone()).or_default();
        let taken_over = entry.connection.replace(connection);
        let was_session = was_there && (taken_over.is_some() || entry.ends_at.is_some());
        let was_discarded = was_session && clean_start;
        if let Some(old) = taken_over {
            entry.superseded.push((old, clean_start));
        }
        entry.ends_at = None;
        let delayed = entry.will.take();
        self.due.set(key.clone(), None);
        Opened {
            is_present: was_session && !clean_start,
            was_discarded,
            taken_over,
            // MQTT-3.1.3-9: if the client reconnects in time, its will is not published.
            will: delayed.filter(|_| clean_start).map(|(_, will)| will),
        }
    }

    /// Handles a closed connection. Returns the will to publish now. `expiry` is in seconds, `u32::MAX` means
    /// never. A session that expires at once is returned by [`next_due`](Sessions::next_due).
    pub(crate) fn close(
        &mut self,
        key: &SessionKey,
        connection: P,
        expiry: u32,
        will: Option<Box<Will>>,
        now: Duration,
    ) -> Option<Box<Will>> {
        let entry = self.all.get_mut(key)?;
        if let Some(at) = entry
            .superseded
            .iter()
            .position(|(old, _)| *old == connection)
        {
            let (_, was_discarded) = entry.superseded.swap_remove(at);
            self.forget_if_empty(key);
            // The client has reconnected. A delayed will is published only if its session has ended.
            return will.filter(|will| was_discarded || will.delay.is_zero());
        }
        if entry.connection != Some(connection) {
            return None;
        }
        entry.connection = None;
        let ends_at = match expiry {
            u32::MAX => Duration::MAX,
            seconds => now + Duration::from_secs(u64::from(seconds)),
        };
        entry.ends_at = Some(ends_at);
        // 3.1.3.2.2: the will is due after its delay or at the end of its session, whichever is first.
        let (due, delayed) = match will {
            Some(will) if will.delay.is_zero() => (Some(will), None),
            Some(will) => (None, Some(((now + will.delay).min(ends_at), will))),
            None => (None, None),
        };
        entry.will = delayed;
        self.schedule(key);
        due
    }

    /// Restores a session whose records survived a restart.
    pub(crate) fn restore(
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

    /// Returns the time at which the caller must call [`next_due`](Sessions::next_due).
    pub(crate) fn next_timeout(&self) -> Option<Duration> {
        self.due.next()
    }

    /// Returns the next action that is due. The caller repeats the call until it returns `None`.
    pub(crate) fn next_due(&mut self, now: Duration) -> Option<Due> {
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

    /// Removes the entry of a client id that has neither a session nor a connection.
    fn forget_if_empty(&mut self, key: &SessionKey) {
        let is_empty = |entry: &Entry<P>| {
            entry.connection.is_none() && entry.ends_at.is_none() && entry.superseded.is_empty()
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
    fn session_is_resumed_until_it_expires() {
        let mut sessions = Sessions::default();
        assert_eq!(sessions.open(&key(), 1, false), opened(false, false, None));
        assert_eq!(sessions.close(&key(), 1, 10, None, at(0)), None);
        assert_eq!(sessions.next_timeout(), Some(at(10)));
        assert_eq!(sessions.open(&key(), 2, false), opened(true, false, None));
        assert_eq!(sessions.next_timeout(), None);
        sessions.close(&key(), 2, 10, None, at(20));
        assert_eq!(sessions.next_due(at(29)), None);
        assert_eq!(sessions.next_due(at(30)), Some(Due::Expired(key())));
        assert!(sessions.all.is_empty());
        assert_eq!(sessions.open(&key(), 3, false), opened(false, false, None));
        sessions.close(&key(), 3, NEVER, None, at(40));
        assert_eq!(
            (sessions.next_timeout(), sessions.next_due(at(1 << 40))),
            (None, None)
        );
        assert_eq!(sessions.open(&key(), 4, true), opened(false, true, None));
    }

    #[test]
    fn client_id_is_taken_over() {
        let mut sessions = Sessions::default();
        sessions.open(&key(), 1, false);
        assert_eq!(
            sessions.open(&key(), 2, false),
            opened(true, false, Some(1))
        );
        // The client of the delayed will has reconnected; a will without a delay is published.
        assert_eq!(sessions.close(&key(), 1, NEVER, will(5), at(1)), None);
        assert_eq!(
            sessions.open(&key(), 3, false),
            opened(true, false, Some(2))
        );
        assert_eq!(sessions.close(&key(), 2, NEVER, will(0), at(1)), will(0));
        // A discarded session has ended, and its will is due.
        assert_eq!(sessions.open(&key(), 4, true), opened(false, true, Some(3)));
        assert_eq!(sessions.close(&key(), 3, NEVER, will(5), at(2)), will(5));
        assert_eq!(sessions.close(&key(), 3, NEVER, will(5), at(2)), None);
        assert_eq!(sessions.close(&key(), 4, 0, None, at(3)), None);
        assert_eq!(sessions.next_due(at(3)), Some(Due::Expired(key())));
        assert!(sessions.all.is_empty());
    }

    #[test]
    fn will_is_delayed() {
        // Columns: delay of the will, session expiry, and time at which the will is published, all in
        // seconds.
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
