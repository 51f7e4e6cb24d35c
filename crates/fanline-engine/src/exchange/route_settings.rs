//! The settings of routes, and the lanes on which accounts cross to other servers.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::auth::Rights;
use crate::auth::certificate::CertificateNames;
use crate::codec::compression::LinkCompression;
use crate::codec::nats::info::ClientUrls;
use crate::codec::route::Carries;

/// The settings of routes.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct RouteSettings {
    /// The host name or address that the listener for routes binds.
    pub host: String,
    /// The port that the listener for routes binds.
    pub port: u16,
    /// The address that peers dial, as `host:port`; `None` means the address that they see.
    pub advertise: Option<String>,
    /// The user name that peers must send; empty if they need none.
    pub user: String,
    /// The password that peers must send.
    pub password: String,
    /// The rules by which certificates authorize peers instead of user name and password; `None` without them.
    pub certificates: Option<CertificateRules>,
    /// Whether routes use TLS.
    pub has_tls: bool,
    /// Time until a route must be registered, on both sides. Then it is closed.
    pub auth_timeout: Duration,
    /// Addresses for clients, which peers advertise.
    pub client_urls: ClientUrls,
    /// Number of pooled routes to each peer; 0 means that one route carries all accounts.
    pub pool_size: u32,
    /// Names of the accounts that have a dedicated route to each peer, if there is a pool.
    pub accounts: Vec<String>,
    /// Permissions of peers, if they are restricted: they publish what this server imports, and subscribe to
    /// what it exports.
    pub rights: Option<Arc<Rights>>,
    /// The compression that this server requests; `None` without one.
    pub compression: Option<LinkCompression>,
    /// Number of shards that serve routes, the first ones; 0 means 1.
    pub shards: u16,
    /// Index of the JetStream service among the shards, if the server has JetStream.
    pub jetstream: Option<u16>,
}

/// The rules by which the certificates of other servers authorize them. One of the rules must apply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateRules {
    /// Whether a name in the certificate may be the user name (`verify_and_map`).
    pub maps: bool,
    /// Host names, of which the certificate may be for one (`verify_cert_and_check_known_urls`).
    pub hosts: Vec<String>,
}

impl CertificateRules {
    /// Returns whether a certificate with these names is authorized. `user` is the configured user name.
    pub(crate) fn authorize(&self, names: Option<&CertificateNames>, user: &str) -> bool {
        let Some(names) = names else {
            return false;
        };
        let is_known = |name: &String| self.hosts.iter().any(|host| is_for_host(name, host));
        names.dns_names.iter().any(is_known) || self.maps && names.identify(user)
    }
}

/// Returns whether a host name of a certificate is for a host. The first label of the name may be a wildcard
/// (RFC 6125, 6.4.3).
fn is_for_host(name: &str, host: &str) -> bool {
    let (name, host) = (name.to_ascii_lowercase(), host.to_ascii_lowercase());
    match (name.strip_prefix("*."), host.split_once('.')) {
        (Some(rest), Some((_, domain))) => rest == domain,
        (Some(_), None) => false,
        (None, _) => name == host,
    }
}

impl Carries {
    /// Returns the lane of the route.
    pub(crate) fn lane(&self) -> Lane {
        match self {
            Carries::Slot(slot) => Lane::of(*slot),
            Carries::Account(name) => Lane::of(hash(name.as_bytes())),
        }
    }
}

/// One of four groups of routes that a shard serves together. Lanes make the work of routes divisible among
/// shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    First,
    Second,
    Third,
    Fourth,
}

impl Lane {
    pub(crate) const ALL: [Lane; 4] = [Lane::First, Lane::Second, Lane::Third, Lane::Fourth];

    /// Returns the lane of a slot, or of the hash of an account with a dedicated route.
    fn of(number: u32) -> Lane {
        Lane::ALL[number as usize % Lane::ALL.len()]
    }

    pub(crate) const fn index(self) -> usize {
        self as usize
    }

    /// Returns the shard that serves the lane.
    pub(crate) fn shard(self, lane_shards: u16) -> u16 {
        (self as u16) % lane_shards.max(1)
    }
}

/// Returns the FNV-1a hash by which nats-server assigns accounts to slots.
fn hash(name: &[u8]) -> u32 {
    name.iter().fold(2_166_136_261, |hash: u32, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(16_777_619)
    })
}

impl RouteSettings {
    /// Returns the slot of an account; `None` if it has a dedicated route.
    pub(crate) fn slot_of(&self, account: &[u8]) -> Option<u32> {
        if self.pool_size > 0 && self.accounts.iter().any(|own| own.as_bytes() == account) {
            return None;
        }
        Some(hash(account).checked_rem(self.pool_size).unwrap_or(0))
    }

    /// Returns whether the messages of a filter may come from peers.
    pub(crate) fn may_import(&self, filter: &[u8]) -> bool {
        let rights = self.rights.as_ref();
        rights.is_none_or(|rights| rights.may_publish(filter))
    }

    /// Returns whether a route that is registered under other settings must be opened again, because these
    /// divide the accounts among routes in another way.
    pub(crate) fn divides_as(&self, other: &Self) -> bool {
        (self.pool_size, &self.accounts) == (other.pool_size, &other.accounts)
    }

    /// Returns the shard that serves a route.
    pub fn shard_of(&self, carries: &Carries) -> u16 {
        carries.lane().shard(self.shards)
    }
}

// Secrets never reach a log, not even through `{:?}`.
impl fmt::Debug for RouteSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RouteSettings")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("advertise", &self.advertise)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_authorize_by_host_or_user_name() {
        let names = |dns_name: &str| CertificateNames {
            dns_names: vec![dns_name.into()],
            subject: "CN=b,O=Example".into(),
            ..CertificateNames::default()
        };
        let check = |maps, host: &str, name: &str, user: &str, expected| {
            let hosts = (!host.is_empty()).then(|| host.to_owned());
            let rules = CertificateRules {
                maps,
                hosts: hosts.into_iter().collect(),
            };
            let found = rules.authorize(Some(&names(name)), user);
            assert_eq!(found, expected, "{maps} {host} {name} {user}");
            assert!(!rules.authorize(None, user));
        };
        check(false, "B.example", "b.Example", "", true);
        check(false, "b.example", "*.example", "", true);
        check(false, "a.b.example", "*.example", "", false);
        check(false, "a.b.example", "a.*.example", "", false);
        check(false, "example", "*.example", "", false);
        check(false, "", "b.example", "b.example", false);
        check(true, "", "b.example", "b.example", true);
        check(true, "", "b.example", "CN=b,O=Example", true);
        check(true, "", "b.example", "", false);
        check(true, "a.example", "b.example", "a.example", false);
        check(true, "a.example", "a.example", "other", true);
    }

    #[test]
    fn accounts_have_the_slots_of_nats_server() {
        for (pool_size, account, slot) in [
            (3, "$G", Some(2)),
            (3, "$SYS", None),
            (3, "A", Some(0)),
            (3, "B", Some(0)),
            (3, "C", Some(1)),
            (2, "A", Some(0)),
            (2, "B", Some(1)),
            (5, "$G", Some(3)),
            (5, "A", Some(2)),
            (5, "B", Some(4)),
            (5, "C", Some(0)),
            (1, "$G", Some(0)),
            (0, "$SYS", Some(0)),
        ] {
            let settings = RouteSettings {
                pool_size,
                accounts: vec!["$SYS".into()],
                ..RouteSettings::default()
            };
            assert_eq!(
                settings.slot_of(account.as_bytes()),
                slot,
                "{pool_size} {account}"
            );
        }
    }

    #[test]
    fn shards_share_the_lanes() {
        let settings = |shards| RouteSettings {
            shards,
            ..RouteSettings::default()
        };
        for (shards, slot, shard) in [
            (0, 3, 0),
            (1, 3, 0),
            (2, 0, 0),
            (2, 3, 1),
            (3, 3, 0),
            (8, 7, 3),
        ] {
            let found = settings(shards).shard_of(&Carries::Slot(slot));
            assert_eq!(found, shard, "slot {slot} of {shards} shards");
        }
    }
}
