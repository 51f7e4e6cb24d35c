//! Sessions of the dashboard, and tickets for its WebSockets.

use std::collections::HashMap;
use std::time::Duration;

use fanline_engine::auth::{Access, ConnectionKind, Grant};

use crate::identity::{new_nonce, new_secret};

/// Lifetime of a session.
const SESSION_TIME: Duration = Duration::from_secs(12 * 60 * 60);
/// Lifetime of a ticket. The page uses a ticket at once.
const TICKET_TIME: Duration = Duration::from_secs(10);
/// Largest number of sessions. A further session ends the one that would expire first.
const SESSIONS_MAX: usize = 1024;
/// Largest number of unused tickets. A further ticket removes the one that would expire first.
const TICKETS_MAX: usize = 256;

/// Lifetime of a nonce. The page signs a nonce at once.
const NONCE_TIME: Duration = Duration::from_secs(10);
/// Largest number of unsigned nonces. A further nonce removes the one that would expire first.
const NONCES_MAX: usize = 256;

/// Sessions, tickets, and nonces. A session's secret replaces the credentials after sign-in.
#[derive(Default)]
pub(super) struct Sessions {
    signed_in: Secrets,
    /// Tickets. A ticket opens one WebSocket. Unlike a session's secret, it may be part of a URL.
    tickets: Secrets,
    /// Nonces with their expiry.
    nonces: HashMap<String, Duration>,
}

impl Sessions {
    /// Returns a new nonce. Returns `None` if the system provides no random bytes.
    pub(super) fn nonce(&mut self, now: Duration) -> Option<String> {
        self.nonces.retain(|_, ends_at| now < *ends_at);
        if self.nonces.len() >= NONCES_MAX {
            let first = self.nonces.iter().min_by_key(|(_, ends_at)| **ends_at);
            let first = first.map(|(nonce, _)| nonce.clone())?;
            self.nonces.remove(&first);
        }
        let nonce = Some(new_nonce()).filter(|nonce| !nonce.is_empty())?;
        self.nonces.insert(nonce.clone(), now + NONCE_TIME);
        Some(nonce)
    }

    /// Removes a nonce. Returns whether it was known and has not expired.
    pub(super) fn take_nonce(&mut self, nonce: &str, now: Duration) -> bool {
        let ends_at = self.nonces.remove(nonce);
        ends_at.is_some_and(|ends_at| now < ends_at)
    }

    /// Starts a session and returns its secret. Returns `None` if the system provides no random bytes.
    pub(super) fn sign_in(&mut self, grant: Grant, now: Duration) -> Option<String> {
        let time = grant.expires_in.unwrap_or(SESSION_TIME).min(SESSION_TIME);
        self.signed_in.insert(grant, now + time, now, SESSIONS_MAX)
    }

    pub(super) fn sign_out(&mut self, session: &str) {
        self.signed_in.0.remove(session);
    }

    /// Returns the current grant of a session. A session ends if its user was removed or has other
    /// credentials.
    pub(super) fn grant(&mut self, session: &str, access: &Access, now: Duration) -> Option<Grant> {
        let (known, ends_at) = self.signed_in.get(session, now)?;
        let renewed = access.renew(known, ConnectionKind::WebSocket);
        let expires_in = known.expires_in.map(|_| ends_at.saturating_sub(now));
        let Some(mut grant) = renewed else {
            self.sign_out(session);
            return None;
        };
        grant.expires_in = expires_in;
        Some(grant)
    }

    /// Returns a ticket for one WebSocket.
    pub(super) fn ticket(&mut self, grant: Grant, now: Duration) -> Option<String> {
        self.tickets
            .insert(grant, now + TICKET_TIME, now, TICKETS_MAX)
    }

    /// Removes a ticket, and returns its grant.
    pub(super) fn redeem(&mut self, ticket: &str, now: Duration) -> Option<Grant> {
        let entry = self.tickets.0.remove(ticket)?;
        (now < entry.ends_at).then_some(entry.grant)
    }
}

/// Grants, by a secret.
#[derive(Default)]
struct Secrets(HashMap<String, Entry>);

struct Entry {
    grant: Grant,
    ends_at: Duration,
}

impl Secrets {
    fn insert(
        &mut self,
        grant: Grant,
        ends_at: Duration,
        now: Duration,
        most: usize,
    ) -> Option<String> {
        self.0.retain(|_, entry| now < entry.ends_at);
        if self.0.len() >= most {
            let first = self.0.iter().min_by_key(|(_, entry)| entry.ends_at);
            let first = first.map(|(secret, _)| secret.clone())?;
            self.0.remove(&first);
        }
        let secret = new_secret()?;
        self.0.insert(secret.clone(), Entry { grant, ends_at });
        Some(secret)
    }

    fn get(&self, secret: &str, now: Duration) -> Option<(&Grant, Duration)> {
        let entry = self.0.get(secret).filter(|entry| now < entry.ends_at)?;
        Some((&entry.grant, entry.ends_at))
    }
}

#[cfg(test)]
mod tests {
    use fanline_engine::Peer;
    use fanline_engine::auth::{AccessConfig, Credentials, Decision, User};

    use super::*;

    const NOON: Duration = Duration::from_secs(43_200);

    fn access(password: &str) -> Access {
        let mut config = AccessConfig::default();
        config.account_mut("A").users = vec![User::new("ada", password)];
        Access::new(config).expect("a directory")
    }

    fn ada() -> Grant {
        let shown = Credentials {
            user: "ada",
            pass: "pw",
            ..Credentials::default()
        };
        match access("pw").admit(&shown, &Peer::default()) {
            Decision::Admitted(grant) => grant,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_session_lasts_half_a_day_and_no_longer_than_its_user() {
        let mut sessions = Sessions::default();
        let session = sessions.sign_in(ada(), NOON).expect("a secret");
        let known = access("pw");
        assert!(sessions.grant(&session, &known, NOON).is_some());
        assert!(sessions.grant("", &known, NOON).is_none());
        assert!(sessions.grant(&session, &known, NOON * 2).is_none());
        // A changed password ends the session permanently.
        assert!(sessions.grant(&session, &access("new"), NOON).is_none());
        assert!(sessions.grant(&session, &known, NOON).is_none());
        let mut short = ada();
        short.expires_in = Some(Duration::from_secs(5));
        let session = sessions.sign_in(short, NOON).expect("a secret");
        let later = NOON + Duration::from_secs(3);
        let left = sessions.grant(&session, &known, later).expect("it holds");
        assert_eq!(left.expires_in, Some(Duration::from_secs(2)));
        sessions.sign_out(&session);
        assert!(sessions.grant(&session, &known, later).is_none());
    }

    #[test]
    fn a_ticket_is_used_once_and_soon() {
        let mut sessions = Sessions::default();
        let ticket = sessions.ticket(ada(), NOON).expect("a secret");
        assert!(sessions.redeem(&ticket, NOON).is_some());
        assert!(sessions.redeem(&ticket, NOON).is_none());
        let ticket = sessions.ticket(ada(), NOON).expect("a secret");
        assert!(sessions.redeem(&ticket, NOON + TICKET_TIME).is_none());
    }

    #[test]
    fn a_nonce_is_signed_once_and_soon() {
        let mut sessions = Sessions::default();
        let nonce = sessions.nonce(NOON).expect("a nonce");
        assert!(sessions.take_nonce(&nonce, NOON));
        assert!(!sessions.take_nonce(&nonce, NOON));
        let nonce = sessions.nonce(NOON).expect("a nonce");
        assert!(!sessions.take_nonce(&nonce, NOON + NONCE_TIME));
        assert!(!sessions.take_nonce("", NOON));
        for _ in 0..2 * NONCES_MAX {
            sessions.nonce(NOON);
        }
        assert_eq!(sessions.nonces.len(), NONCES_MAX);
    }

    #[test]
    fn sessions_tickets_and_nonces_are_bounded() {
        let mut sessions = Sessions::default();
        let first = sessions.sign_in(ada(), NOON).expect("a secret");
        for n in 1..=SESSIONS_MAX {
            let at = NOON + Duration::from_millis(u64::try_from(n).expect("few"));
            sessions.sign_in(ada(), at);
        }
        assert_eq!(sessions.signed_in.0.len(), SESSIONS_MAX);
        assert!(sessions.grant(&first, &access("pw"), NOON).is_none());
        for _ in 0..2 * TICKETS_MAX {
            sessions.ticket(ada(), NOON);
        }
        assert_eq!(sessions.tickets.0.len(), TICKETS_MAX);
    }
}
