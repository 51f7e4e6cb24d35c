//! Authentication and authorization: users, accounts, and permissions.
//!
//! [`Access::new`] validates an [`AccessConfig`], and creates the [`Access`] that all shards share. An
//! `Access` is immutable; a reload replaces it as a whole.

mod account;
mod admit;
pub mod callout;
pub mod certificate;
mod check;
mod domains;
mod error;
mod imports;
pub mod jwt;
mod method;
pub mod nkey;
mod operator;
mod peer;
mod permissions;
mod proxies;
mod rights;
pub mod sealed;
mod system;
#[cfg(test)]
mod tests;
mod user;
mod vouched;
mod websocket;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use nkey::{KeyKind, PublicKey};

pub use account::{
    ANYBODY, Account, AccountId, ClientLimits, Destination, Export, ExportKind, GLOBAL_ACCOUNT,
    Import, ImportKind, Latency, Mapping, ResponseKind, SYSTEM_ACCOUNT, Sampling, TraceTo,
};
pub use admit::{AccountExpiry, Credentials, Decision, Dismissal, Grant};
pub use callout::Callout;
pub use check::{Check, SALT_BYTES, hash_password, is_hash_of};
pub use domains::DefaultDomains;
pub use error::AccessError;
pub(crate) use imports::{covers, in_order_of_wildcards, is_exported, overlap};
pub use method::Auth;
pub use operator::{Authority, OperatorError, Operators, UserLimits};
pub use peer::{Peer, TlsPeer};
pub use permissions::{AllowResponses, Allowed, Pattern, Permissions};
pub(crate) use rights::Lists;
pub use rights::Rights;
pub(crate) use rights::{Permitted, RightsId};
pub(crate) use system::{
    JETSTREAM, imports as system_imports, is_answered_by_all, jetstream_imports, own_import,
};
pub use user::{ConnectionKind, Identity, Password, User};
pub use vouched::Vouched;
pub use websocket::ListenerAccess;
use websocket::ListenerOverride;

/// Configuration of accounts and users. The default admits all clients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessConfig {
    /// The token that all clients must send, instead of user credentials.
    pub token: Option<Password>,
    /// Accounts with their users. `$G` and the system account are added if they are missing.
    pub accounts: Vec<Account>,
    /// The user of clients without credentials.
    pub no_auth_user: Option<String>,
    /// Name of the system account; `None` means `$SYS`.
    pub system_account: Option<String>,
    /// Whether the server sends a nonce even if no user must sign it.
    pub always_nonce: bool,
    /// Trusted operators in operator mode. Their tokens define the accounts.
    pub operators: Option<Operators>,
    /// The auth callout service, if configured.
    pub callout: Option<Callout>,
    /// Keys of trusted proxies.
    pub proxies: Vec<PublicKey>,
    /// Whether all clients must connect through a trusted proxy.
    pub proxy_required: bool,
    /// Default JetStream domains by account name.
    pub default_domains: DefaultDomains,
    /// Credentials of WebSocket clients, if they differ from those of other clients.
    pub websocket: ListenerAccess,
    /// Credentials of MQTT clients, if they differ from those of other clients.
    pub mqtt: ListenerAccess,
    /// Connection kinds that identify the user by the client certificate (`verify_and_map`). A user without a
    /// password that may use such a kind is admitted by its certificate only, never by its name.
    pub certificate_kinds: Vec<ConnectionKind>,
}

impl AccessConfig {
    /// Returns the account of this name, and creates it if necessary.
    pub fn account_mut(&mut self, name: &str) -> &mut Account {
        let at = self.accounts.iter().position(|a| a.name == name);
        let at = at.unwrap_or_else(|| {
            self.accounts.push(Account::new(name));
            self.accounts.len() - 1
        });
        &mut self.accounts[at]
    }
}

/// The accounts and users of a server, shared by all shards.
#[derive(Debug)]
pub struct Access {
    token: Option<Password>,
    /// Accounts by [`AccountId`].
    accounts: Vec<Account>,
    by_name: HashMap<String, AccountId>,
    users: Users,
    /// Rights of each user, by account and user index; `None` allows everything.
    rights: Vec<Vec<Option<Arc<Rights>>>>,
    no_auth_user: Option<UserPosition>,
    always_nonce: bool,
    operators: Option<Operators>,
    callout: Option<Callout>,
    proxies: Vec<PublicKey>,
    proxy_required: bool,
    default_domains: DefaultDomains,
    /// Replacement of `token` and `no_auth_user` for WebSocket clients.
    websocket: Option<ListenerOverride>,
    /// Replacement of `token` and `no_auth_user` for MQTT clients.
    mqtt: Option<ListenerOverride>,
    certificate_kinds: Vec<ConnectionKind>,
    /// Time at which account tokens were last added, in seconds since 1970.
    as_of: i64,
}

/// Position of a user: its account, and its index there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct UserPosition {
    account: AccountId,
    at: usize,
}

#[derive(Debug, Default)]
struct Users {
    by_name: HashMap<String, UserPosition>,
    by_nkey: HashMap<String, UserPosition>,
}

impl Eq for Access {}

/// Compares the configurations from which both were created.
impl PartialEq for Access {
    fn eq(&self, other: &Self) -> bool {
        self.token == other.token
            && self.accounts == other.accounts
            && self.no_auth_user == other.no_auth_user
            && self.always_nonce == other.always_nonce
            && self.operators == other.operators
            && self.callout == other.callout
            && self.proxies == other.proxies
            && self.proxy_required == other.proxy_required
            && self.default_domains == other.default_domains
            && self.websocket == other.websocket
            && self.mqtt == other.mqtt
            && self.certificate_kinds == other.certificate_kinds
    }
}

impl Default for Access {
    fn default() -> Self {
        Access::open()
    }
}

impl Access {
    /// Creates an `Access` in which every client may connect and do everything.
    #[expect(
        clippy::missing_panics_doc,
        reason = "the configuration is always valid"
    )]
    pub fn open() -> Self {
        Access::new(AccessConfig::default()).expect("the default configuration is valid")
    }

    /// Creates an `Access` with one token for all clients.
    #[expect(
        clippy::missing_panics_doc,
        reason = "the configuration is always valid"
    )]
    pub fn token(token: impl Into<Password>) -> Self {
        let config = AccessConfig {
            token: Some(token.into()),
            ..AccessConfig::default()
        };
        Access::new(config).expect("a token without users is valid")
    }

    /// Creates an `Access` with one user and password.
    #[expect(
        clippy::missing_panics_doc,
        reason = "the configuration is always valid"
    )]
    pub fn user(name: impl Into<String>, password: impl Into<Password>) -> Self {
        let mut config = AccessConfig::default();
        let user = User::new(name, password);
        config.account_mut(GLOBAL_ACCOUNT).users.push(user);
        Access::new(config).expect("a single user is valid")
    }

    /// Validates a configuration.
    ///
    /// # Errors
    ///
    /// Returns the first error, with the name of the account, user, or subject.
    pub fn new(config: AccessConfig) -> Result<Self, AccessError> {
        Access::after(&[], config)
    }

    /// Validates a configuration that replaces this one. Accounts keep their ids. A removed account keeps its
    /// id too, but has no users.
    ///
    /// # Errors
    ///
    /// Returns the first error, with the name of the account, user, or subject.
    pub fn successor(&self, config: AccessConfig) -> Result<Self, AccessError> {
        Access::after(&self.accounts, config)
    }

    /// Returns the same accounts and users, with the account ids of `before`.
    ///
    /// # Errors
    ///
    /// Returns the first error, with the name of the account, user, or subject.
    pub fn in_place_of(&self, before: &Access) -> Result<Self, AccessError> {
        Ok(Access {
            as_of: self.as_of,
            ..before.successor(self.config())?
        })
    }

    /// Returns the configuration from which the `Access` was created.
    fn config(&self) -> AccessConfig {
        let name_of = |position: UserPosition| self.user_at(position).name().to_owned();
        AccessConfig {
            token: self.token.clone(),
            accounts: self.accounts.clone(),
            no_auth_user: self.no_auth_user.map(name_of),
            system_account: Some(self.accounts[AccountId::SYSTEM.index()].name.clone()),
            always_nonce: self.always_nonce,
            operators: self.operators.clone(),
            callout: self.callout.clone(),
            proxies: self.proxies.clone(),
            proxy_required: self.proxy_required,
            default_domains: self.default_domains.clone(),
            websocket: self.websocket_access(),
            mqtt: self.mqtt_access(),
            certificate_kinds: self.certificate_kinds.clone(),
        }
    }

    fn after(known: &[Account], config: AccessConfig) -> Result<Self, AccessError> {
        let accounts = ordered_by_id(known, &config)?;
        let by_name: HashMap<String, AccountId> = (0..)
            .map(AccountId)
            .zip(&accounts)
            .map(|(id, account)| (account.name.clone(), id))
            .collect();
        let users = Users::new(&accounts)?;
        if config.token.is_some() && !(users.by_name.is_empty() && users.by_nkey.is_empty()) {
            return Err(AccessError::TokenAndUsers);
        }
        if config.operators.is_some()
            && let Some(name) = users.by_name.keys().chain(users.by_nkey.keys()).next()
        {
            return Err(AccessError::OperatorAndUsers(name.clone()));
        }
        let no_auth_user = config
            .no_auth_user
            .map(|name| users.find(name))
            .transpose()?;
        let websocket = ListenerOverride::new(config.websocket, &users)?;
        let mqtt = ListenerOverride::new(config.mqtt, &users)?;
        imports::check(&accounts, &by_name)?;
        domains::check(
            &config.default_domains,
            &accounts,
            config.operators.is_some(),
        )?;
        let callout = config.callout.as_ref();
        if let Some(callout) = callout
            && !by_name.contains_key(&callout.account)
        {
            return Err(AccessError::UnknownCalloutAccount(callout.account.clone()));
        }
        let rights = accounts.iter().map(|a| rights_of(a, callout)).collect();
        Ok(Access {
            token: config.token,
            accounts,
            by_name,
            users,
            rights,
            no_auth_user,
            always_nonce: config.always_nonce,
            operators: config.operators,
            callout: config.callout,
            proxies: config.proxies,
            proxy_required: config.proxy_required,
            default_domains: config.default_domains,
            websocket,
            mqtt,
            certificate_kinds: config.certificate_kinds,
            as_of: 0,
        })
    }

    /// Returns all accounts by [`AccountId`].
    pub fn accounts(&self) -> &[Account] {
        &self.accounts
    }

    /// Returns an account's imports, including those that every account has from the system account.
    pub fn imports_of(&self, id: AccountId) -> Vec<Import> {
        let Some(account) = self.account(id) else {
            return Vec::new();
        };
        let system = &self.accounts[AccountId::SYSTEM.index()];
        let mut imports = account.imports.clone();
        imports.extend(system_imports(account, &system.name));
        imports
    }

    /// Returns an account.
    pub fn account(&self, id: AccountId) -> Option<&Account> {
        self.accounts.get(id.index())
    }

    /// Returns the name of an account, as in lines of a protocol; empty if it was removed.
    pub(crate) fn name_of(&self, id: AccountId) -> &[u8] {
        self.account(id)
            .map_or(&[], |account| account.name.as_bytes())
    }

    /// Returns the id of the account of this name.
    pub fn account_id(&self, name: &str) -> Option<AccountId> {
        self.by_name.get(name).copied()
    }

    /// Returns the user of clients without credentials.
    pub fn no_auth_user(&self) -> Option<&User> {
        self.no_auth_user.map(|position| self.user_at(position))
    }

    fn user_at(&self, position: UserPosition) -> &User {
        &self.accounts[position.account.index()].users[position.at]
    }

    /// Returns whether a TCP client must authenticate, with credentials or through a proxy.
    pub fn is_required(&self) -> bool {
        self.proxy_required || self.requires_credentials()
    }

    fn requires_credentials(&self) -> bool {
        self.token.is_some()
            || self.operators.is_some()
            || self.callout.is_some()
            || !self.users.by_name.is_empty()
            || !self.users.by_nkey.is_empty()
    }

    /// Returns whether clients receive a nonce, which they can sign.
    pub fn needs_nonce(&self) -> bool {
        self.always_nonce
            || self.operators.is_some()
            || !self.users.by_nkey.is_empty()
            || !self.proxies.is_empty()
    }
}

/// Returns the accounts in the order of their ids: `$G`, the system account, the accounts in `known`, then
/// the others in configuration order.
fn ordered_by_id(known: &[Account], config: &AccessConfig) -> Result<Vec<Account>, AccessError> {
    let system = config.system_account.as_deref().unwrap_or(SYSTEM_ACCOUNT);
    let given = |name: &str| {
        let mut found = config.accounts.iter().find(|a| a.name == name);
        if found.is_none() && config.operators.is_some() {
            // In operator mode, an account that the new configuration does not contain keeps its token.
            let known = known.iter().find(|a| a.name == name);
            found = known.filter(|account| account.authority.is_some());
        }
        found.cloned().unwrap_or_else(|| Account::new(name))
    };
    let mut accounts = vec![given(GLOBAL_ACCOUNT), given(system)];
    for name in known
        .iter()
        .chain(&config.accounts)
        .map(|account| &account.name)
    {
        if !accounts.iter().any(|account| account.name == *name) {
            accounts.push(given(name));
        }
    }
    let mut names = HashSet::new();
    for account in config.accounts.iter() {
        if !names.insert(account.name.as_str()) {
            return Err(AccessError::DuplicateAccount(account.name.clone()));
        }
    }
    Ok(accounts)
}

/// Returns the rights of each user of an account.
fn rights_of(account: &Account, callout: Option<&Callout>) -> Vec<Option<Arc<Rights>>> {
    let compile = |permissions: &Permissions| {
        let restricted = callout.map(|callout| callout.restrict(&account.name, permissions));
        let permissions = restricted.as_ref().unwrap_or(permissions);
        let is_all = *permissions == Permissions::default();
        (!is_all).then(|| Arc::new(Rights::new(permissions)))
    };
    let default = account.default_permissions.clone().unwrap_or_default();
    let default = compile(&default);
    let of_user = |user: &User| match &user.permissions {
        Some(own) => compile(own),
        None => default.clone(),
    };
    account.users.iter().map(of_user).collect()
}

impl Users {
    /// Returns the position of the user with this name or public key. Clients without credentials get the
    /// rights of this user.
    fn find(&self, name: String) -> Result<UserPosition, AccessError> {
        let known = self.by_name.get(&name).or_else(|| self.by_nkey.get(&name));
        known.copied().ok_or(AccessError::UnknownNoAuthUser(name))
    }

    fn new(accounts: &[Account]) -> Result<Self, AccessError> {
        let mut users = Users::default();
        for (id, account) in (0..).map(AccountId).zip(accounts) {
            for (at, user) in account.users.iter().enumerate() {
                let position = UserPosition { account: id, at };
                if let Identity::Nkey(public) = &user.identity
                    && PublicKey::parse_as(KeyKind::User, public).is_none()
                {
                    return Err(AccessError::InvalidUserNkey(public.clone()));
                }
                let (known, duplicate): (_, fn(String) -> AccessError) = match &user.identity {
                    Identity::Name(..) => (&mut users.by_name, AccessError::DuplicateUser),
                    Identity::Nkey(_) => (&mut users.by_nkey, AccessError::DuplicateNkey),
                };
                if known.insert(user.name().into(), position).is_some() {
                    return Err(duplicate(user.name().into()));
                }
            }
        }
        Ok(users)
    }
}
