//! Clients that another part of the server has let in already.

use std::sync::Arc;

use super::Access;
use super::admit::{Decision, Grant};
use super::rights::Rights;
use super::user::ConnectionKind;

/// What the server itself says of a client: who it is, so that it has to show nothing more, and what
/// it may do at most.
#[derive(Clone, Debug)]
pub struct Vouched {
    /// What it was granted when it showed its credentials.
    pub grant: Grant,
    /// What it may do at most, whatever its user may.
    pub within: Option<Arc<Rights>>,
}

impl Access {
    /// Whether what a client was granted elsewhere still holds.
    pub(super) fn admit_vouched(&self, vouched: &Vouched, kind: ConnectionKind) -> Decision {
        match self.renew(&vouched.grant, kind) {
            Some(grant) => Decision::Admitted(Grant {
                expires_in: vouched.grant.expires_in,
                ..grant
            }),
            None => Decision::Refused,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{AccessConfig, Credentials, User};
    use super::*;
    use crate::auth::Peer;

    fn access(users: &[(&str, &str)]) -> Access {
        let mut config = AccessConfig::default();
        let users = users
            .iter()
            .map(|(name, password)| User::new(*name, *password));
        config.account_mut("A").users = users.collect();
        Access::new(config).unwrap()
    }

    #[test]
    fn holds_for_as_long_as_the_user_does() {
        let before = access(&[("ada", "pw")]);
        let ada = Credentials {
            user: "ada",
            pass: "pw",
            ..Credentials::default()
        };
        let Decision::Admitted(grant) = before.admit(&ada, &Peer::default()) else {
            panic!("ada is let in");
        };
        let within = None;
        let peer = Peer {
            vouched: Some(Box::new(Vouched { grant, within })),
            ..Peer::default()
        };
        for (now, is_admitted) in [
            (before, true),
            (access(&[("ada", "pw"), ("bob", "pw")]), true),
            (access(&[("ada", "other")]), false),
            (access(&[("bob", "pw")]), false),
            (access(&[]), false),
        ] {
            // Whatever it shows.
            for shown in [Credentials::default(), ada.clone()] {
                let decision = now.admit(&shown, &peer);
                assert_eq!(matches!(decision, Decision::Admitted(_)), is_admitted);
            }
        }
    }
}
