//! Credentials that apply only to WebSocket clients or to MQTT clients.

use super::error::AccessError;
use super::user::{ConnectionKind, Password};
use super::{ANYBODY, Access, AccessConfig, UserPosition, Users};

/// Credentials of a listener that replace the server's. The default changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListenerAccess {
    /// One token for all clients of the listener.
    pub token: Option<Password>,
    /// One user with name and password, in `$G`. It takes precedence over the token.
    pub user: Option<(String, Password)>,
    /// The user of clients without credentials. If `token` and `user` are `None`, the server's users may
    /// connect too.
    pub no_auth_user: Option<String>,
}

/// Validated credentials of a listener. If present, the server's token and `no_auth_user` do not apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ListenerOverride {
    pub(super) token: Option<Password>,
    pub(super) user: Option<(String, Password)>,
    pub(super) no_auth_user: Option<UserPosition>,
}

impl ListenerOverride {
    /// Validates the credentials. Returns `None` if they change nothing.
    pub(super) fn new(given: ListenerAccess, users: &Users) -> Result<Option<Self>, AccessError> {
        if given == ListenerAccess::default() {
            return Ok(None);
        }
        let no_auth_user = given
            .no_auth_user
            .map(|name| users.find(name))
            .transpose()?;
        Ok(Some(ListenerOverride {
            token: given.token,
            user: given.user,
            no_auth_user,
        }))
    }

    /// Returns whether the server's users may not connect to this listener.
    pub(super) fn replaces_users(&self) -> bool {
        self.token.is_some() || self.user.is_some()
    }
}

impl Access {
    /// Returns an [`Access`] with other credentials for WebSocket and MQTT clients.
    ///
    /// # Errors
    ///
    /// If a `no_auth_user` is unknown.
    pub fn with_listeners(
        &self,
        websocket: ListenerAccess,
        mqtt: ListenerAccess,
    ) -> Result<Self, AccessError> {
        self.successor(AccessConfig {
            websocket,
            mqtt,
            ..self.config()
        })
    }

    /// Returns an [`Access`] with other connection kinds that identify the user by the client certificate.
    ///
    /// # Errors
    ///
    /// If the unchanged part of the configuration is invalid. All `kinds` are valid.
    pub fn with_certificate_kinds(&self, kinds: &[ConnectionKind]) -> Result<Self, AccessError> {
        self.successor(AccessConfig {
            certificate_kinds: kinds.to_vec(),
            ..self.config()
        })
    }

    /// Returns the connection kinds that identify the user by the client certificate.
    pub fn certificate_kinds(&self) -> &[ConnectionKind] {
        &self.certificate_kinds
    }

    /// Returns the credentials that differ for WebSocket clients.
    pub fn websocket_access(&self) -> ListenerAccess {
        self.listener_access(self.websocket.as_ref())
    }

    /// Returns the credentials that differ for MQTT clients.
    pub fn mqtt_access(&self) -> ListenerAccess {
        self.listener_access(self.mqtt.as_ref())
    }

    fn listener_access(&self, listener: Option<&ListenerOverride>) -> ListenerAccess {
        let Some(listener) = listener else {
            return ListenerAccess::default();
        };
        let name_of = |position: UserPosition| self.user_at(position).name().to_owned();
        ListenerAccess {
            token: listener.token.clone(),
            user: listener.user.clone(),
            no_auth_user: listener.no_auth_user.map(name_of),
        }
    }

    /// Returns the credentials that replace the server's for this kind of connection.
    pub(super) fn listener(&self, kind: ConnectionKind) -> Option<&ListenerOverride> {
        match kind {
            ConnectionKind::WebSocket => self.websocket.as_ref(),
            ConnectionKind::Mqtt | ConnectionKind::MqttWebSocket => self.mqtt.as_ref(),
            _ => None,
        }
    }

    /// Returns whether a client of this kind must authenticate, with credentials or through a proxy.
    pub fn is_required_of(&self, kind: ConnectionKind) -> bool {
        self.proxy_required || self.requires_credentials_of(kind)
    }

    /// Returns whether a client of this kind needs credentials.
    pub(super) fn requires_credentials_of(&self, kind: ConnectionKind) -> bool {
        match self.listener(kind) {
            Some(listener) if listener.replaces_users() => true,
            _ => self.requires_credentials(),
        }
    }

    /// Returns whether INFO announces that clients of this kind need no credentials, although there are
    /// users. The user [`ANYBODY`] does not count, because clients of the system account send their
    /// credentials only if INFO requires them.
    pub fn has_no_auth_user(&self, kind: ConnectionKind) -> bool {
        let position = self
            .listener(kind)
            .map_or(self.no_auth_user, |listener| listener.no_auth_user);
        position.is_some_and(|position| self.user_at(position).name() != ANYBODY)
    }
}

#[cfg(test)]
mod tests {
    use super::super::*;
    use super::*;
    use crate::auth::Peer;

    fn access(change: impl FnOnce(&mut AccessConfig)) -> Access {
        let mut config = AccessConfig::default();
        change(&mut config);
        Access::new(config).unwrap()
    }

    /// Returns the rights of a client with these credentials; `None` if it is refused.
    fn admitted(access: &Access, kind: ConnectionKind, shown: &Credentials<'_>) -> Option<Grant> {
        let peer = Peer {
            kind,
            ..Peer::default()
        };
        match access.admit(shown, &peer) {
            Decision::Admitted(grant) => Some(grant),
            Decision::Refused => None,
            Decision::Later(check) => panic!("{check:?} takes no work"),
        }
    }

    fn by_name<'a>(user: &'a str, pass: &'a str) -> Credentials<'a> {
        Credentials {
            user,
            pass,
            ..Credentials::default()
        }
    }

    fn by_token(auth_token: &str) -> Credentials<'_> {
        Credentials {
            auth_token,
            ..Credentials::default()
        }
    }

    fn check(access: &Access, shown: &Credentials<'_>, over_tcp: bool, over_websocket: bool) {
        for (kind, expected) in [
            (ConnectionKind::Standard, over_tcp),
            (ConnectionKind::WebSocket, over_websocket),
        ] {
            let grant = admitted(access, kind, shown);
            let who = (shown.user, shown.auth_token);
            assert_eq!(grant.is_some(), expected, "{who:?} {kind:?}");
        }
    }

    #[test]
    fn listener_user_replaces_the_servers_users() {
        let access = access(|config| {
            config.account_mut("A").users.push(User::new("ada", "pw"));
            config.no_auth_user = Some("ada".into());
            config.websocket.user = Some(("web".into(), "wpw".into()));
        });
        check(&access, &by_name("ada", "pw"), true, false);
        check(&access, &by_name("web", "wpw"), false, true);
        check(&access, &by_name("web", "pw"), false, false);
        check(&access, &by_name("", "wpw"), false, false);
        check(&access, &by_token("wpw"), false, false);
        check(&access, &Credentials::default(), true, false);
        let grant = admitted(&access, ConnectionKind::WebSocket, &by_name("web", "wpw")).unwrap();
        assert_eq!((grant.account, &*grant.user), (AccountId::GLOBAL, "web"));
    }

    #[test]
    fn listener_token_replaces_the_servers_users() {
        let access = access(|config| {
            config.token = Some("tcp".into());
            config.websocket.token = Some("web".into());
        });
        check(&access, &by_token("tcp"), true, false);
        check(&access, &by_token("web"), false, true);
        check(&access, &Credentials::default(), false, false);
        // A server may admit all clients except those of this listener.
        let access =
            Access::open().with_listeners(access.websocket_access(), ListenerAccess::default());
        let access = access.unwrap();
        check(&access, &Credentials::default(), true, false);
        check(&access, &by_token("web"), true, true);
    }

    #[test]
    fn no_auth_user_of_the_listener_applies() {
        let access = access(|config| {
            let users = &mut config.account_mut("A").users;
            users.push(User::new("ada", "pw"));
            users.push(User::new("guest", "gpw"));
            config.no_auth_user = Some("ada".into());
            config.websocket.no_auth_user = Some("guest".into());
        });
        for (kind, name) in [
            (ConnectionKind::Standard, "ada"),
            (ConnectionKind::WebSocket, "guest"),
        ] {
            let grant = admitted(&access, kind, &Credentials::default()).unwrap();
            assert_eq!(&*grant.user, name);
        }
        check(&access, &by_name("ada", "pw"), true, true);
        check(&access, &by_name("ada", "no"), false, false);
        let nobody = ListenerAccess {
            no_auth_user: Some("nobody".into()),
            ..ListenerAccess::default()
        };
        let error = Access::open()
            .with_listeners(nobody, ListenerAccess::default())
            .unwrap_err();
        assert!(error.to_string().contains("not present as user"), "{error}");
    }

    #[test]
    fn admitted_client_stays_while_its_credentials_are_valid() {
        let with = |password: &str| {
            access(|config| config.websocket.user = Some(("web".into(), password.into())))
        };
        let first = with("one");
        let kind = ConnectionKind::WebSocket;
        let grant = admitted(&first, kind, &by_name("web", "one")).unwrap();
        assert!(with("one").renew(&grant, kind).is_some());
        assert!(with("two").renew(&grant, kind).is_none());
        assert!(Access::open().renew(&grant, kind).is_none());
        let same = first.in_place_of(&Access::open()).unwrap();
        assert!(same.renew(&grant, kind).is_some());
        // If credentials become required, a client that was admitted without credentials is disconnected.
        let open = admitted(&Access::open(), kind, &Credentials::default()).unwrap();
        assert!(first.renew(&open, kind).is_none());
        assert!(first.renew(&open, ConnectionKind::Standard).is_some());
    }
}
