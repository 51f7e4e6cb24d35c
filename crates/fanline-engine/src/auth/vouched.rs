//! Clients that another part of the server has authenticated already.

use std::sync::Arc;

use super::Access;
use super::admit::{Decision, Grant};
use super::rights::Rights;
use super::user::ConnectionKind;

/// A client that the server itself has authenticated, and an upper bound of its permissions.
#[derive(Clone, Debug)]
pub struct Vouched {
    /// The grant of its credentials.
    pub grant: Grant,
    /// The most that it may do, whatever its user may do.
    pub within: Option<Arc<Rights>>,
}

impl Access {
    /// Returns whether an earlier grant is still valid.
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
    fn grant_ends_with_the_user() {
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
            // Whatever credentials it sends.
            for shown in [Credentials::default(), ada.clone()] {
                let decision = now.admit(&shown, &peer);
                assert_eq!(matches!(decision, Decision::Admitted(_)), is_admitted);
            }
        }
    }
}
