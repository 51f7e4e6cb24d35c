//! Clients that another part of the server, such as the dashboard, has already authenticated.

use std::sync::Arc;

use super::Access;
use super::admit::{Decision, Grant};
use super::rights::Rights;
use super::user::ConnectionKind;

/// An identity that the server itself confirms: the client needs no credentials, and its permissions may be
/// reduced.
#[derive(Clone, Debug)]
pub struct Vouched {
    /// Rights of the user that was authenticated.
    pub grant: Grant,
    /// Further rights, which must also allow each operation.
    pub within: Option<Arc<Rights>>,
}

impl Access {
    /// Admits a client whose rights are still valid.
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
    fn vouched_identity_is_valid_as_long_as_its_user() {
        let before = access(&[("ada", "pw")]);
        let ada = Credentials {
            user: "ada",
            pass: "pw",
            ..Credentials::default()
        };
        let Decision::Admitted(grant) = before.admit(&ada, &Peer::default()) else {
            panic!("ada should be admitted");
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
            // Credentials of the connection itself are ignored.
            for shown in [Credentials::default(), ada.clone()] {
                let decision = now.admit(&shown, &peer);
                assert_eq!(matches!(decision, Decision::Admitted(_)), is_admitted);
            }
        }
    }
}
