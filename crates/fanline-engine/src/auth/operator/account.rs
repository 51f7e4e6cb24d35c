//! Conversion of account tokens to accounts.

use std::sync::Arc;
use std::time::Duration;

use super::OperatorError;
use crate::auth::account::{
    Account, ClientLimits, Export, ExportKind, Import, ImportKind, Latency, Mapping, ResponseKind,
    Sampling, TraceTo,
};
use crate::auth::error::AccessError;
use crate::auth::jwt::{
    self, AccountClaims, ActivationClaims, AuthorizationClaims, Claims, ExportClaims, ImportClaims,
    LimitClaims, PermissionClaims, SampleClaims, SignerClaims, SubjectClaims, TierClaims,
    UserTerms,
};
use crate::auth::nkey::{KeyKind, PublicKey};
use crate::auth::permissions::{AllowResponses, Allowed, Permissions};
use crate::limits::AccountLimits as JetStreamLimits;

/// Key in the list of revocations that stands for all users.
const EVERYBODY: &str = "*";
/// Entry in a service's list of accounts that stands for all accounts.
const ANY_ACCOUNT: &str = "*";
/// Kind of a signing key whose users have the rights of its template.
const USER_SCOPE: &str = "user_scope";

/// In operator mode, the account's token. It determines the keys that sign the account's users.
#[derive(Clone, PartialEq, Eq)]
pub struct Authority {
    pub(super) claims: Claims<AccountClaims>,
    token: Arc<str>,
    /// Imports that the token requests, with their activation tokens.
    pub(super) requested: Vec<RequestedImport>,
    default_permissions: Option<Permissions>,
    service: Option<Service>,
}

/// The auth callout service of an account, for clients with a token of this account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::auth) struct Service {
    /// Users that the service does not authenticate, such as the user of the service.
    users: Vec<String>,
    /// Other accounts that the service may assign users to.
    accounts: Vec<String>,
    /// Curve key with which requests are encrypted for the service.
    pub(in crate::auth) xkey: Option<PublicKey>,
}

impl Service {
    /// Creates the service. Returns `None` if no user is configured for the service: then the service cannot
    /// connect.
    fn new(claims: &AuthorizationClaims) -> Result<Option<Self>, String> {
        if claims.auth_users.is_empty() {
            return Ok(None);
        }
        let xkey = match claims.xkey.as_str() {
            "" => None,
            key => {
                let parsed = PublicKey::parse_as(KeyKind::Curve, key);
                Some(parsed.ok_or_else(|| format!("{key:?} is not a public curve key (`X…`)"))?)
            }
        };
        Ok(Some(Service {
            users: claims.auth_users.clone(),
            accounts: claims.allowed_accounts.clone(),
            xkey,
        }))
    }

    /// Returns whether the service may assign users to another account.
    pub(in crate::auth) fn may_use(&self, account: &str) -> bool {
        let mut accounts = self.accounts.iter();
        accounts.any(|known| known == account || known == ANY_ACCOUNT)
    }
}

/// An import that the token requests. Its export may not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RequestedImport {
    pub(super) import: Import,
    pub(super) activation: Option<Claims<ActivationClaims>>,
}

// The token is long, and the account's key is sufficient for a log.
impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority")
            .field("account", &self.claims.subject)
            .finish_non_exhaustive()
    }
}

impl Authority {
    pub(super) fn new(
        mut claims: Claims<AccountClaims>,
        token: &str,
    ) -> Result<Self, OperatorError> {
        let wrong = |error: &dyn std::fmt::Display| {
            OperatorError::Content(claims.subject.clone(), error.to_string())
        };
        for signer in &claims.body.signing_keys {
            let key = signer.key();
            if PublicKey::parse_as(KeyKind::Account, key).is_none() {
                return Err(AccessError::InvalidAccountNkey(key.into()).into());
            }
            if let SignerClaims::Scoped(scope) = signer
                && scope.kind != USER_SCOPE
            {
                return Err(wrong(&format!(
                    "signing key of unknown kind {:?}",
                    scope.kind
                )));
            }
        }
        let requested: Result<Vec<RequestedImport>, String> =
            claims.body.imports.iter().map(requested).collect();
        let requested = requested.map_err(|error| wrong(&error))?;
        let permissions = permissions(&claims.body.default_permissions);
        let permissions = permissions.map_err(|error| wrong(&error))?;
        check_counts(&claims.body).map_err(|error| wrong(&error))?;
        let service = Service::new(&claims.body.authorization).map_err(|error| wrong(&error))?;
        // The imports are in `requested`, with their tokens.
        claims.body.imports = Vec::new();
        Ok(Authority {
            token: token.trim().into(),
            requested,
            default_permissions: (permissions != Permissions::default()).then_some(permissions),
            service,
            claims,
        })
    }

    /// Returns the account without imports, because they depend on the exports of other accounts.
    pub(super) fn account(self) -> Result<Account, OperatorError> {
        let subject = &self.claims.subject;
        let body = &self.claims.body;
        let wrong = |error: AccessError| OperatorError::Content(subject.clone(), error.to_string());
        let mut mappings = Vec::new();
        for (source, destinations) in &body.mappings {
            let destinations: Vec<(&str, u8, Option<&str>)> = destinations
                .iter()
                .map(|to| {
                    let weight = if to.weight == 0 { 100 } else { to.weight };
                    let cluster = (!to.cluster.is_empty()).then_some(to.cluster.as_str());
                    (to.subject.as_str(), weight, cluster)
                })
                .collect();
            mappings.push(Mapping::weighted(source, &destinations).map_err(wrong)?);
        }
        let exports: Result<Vec<Export>, String> = body.exports.iter().map(export).collect();
        let exports = exports.map_err(|error| OperatorError::Content(subject.clone(), error))?;
        let limits = &body.limits;
        Ok(Account {
            name: subject.clone(),
            nkey: Some(subject.clone()),
            users: Vec::new(),
            default_permissions: self.default_permissions.clone(),
            limits: ClientLimits {
                connections_max: limit(limits.conn),
                subscriptions_max: limit(limits.subs),
                payload_bytes_max: limit(limits.payload),
                leafnodes_max: limit(limits.leaf),
            },
            jetstream: jetstream(limits),
            exports,
            imports: Vec::new(),
            mappings,
            trace: body.trace.as_ref().map(|trace| TraceTo {
                dest: trace.dest.clone(),
                // A missing percentage means 100.
                percent: u8::try_from(trace.sampling)
                    .ok()
                    .filter(|n| *n > 0)
                    .unwrap_or(100),
            }),
            authority: Some(Arc::new(self)),
        })
    }

    /// Returns the token in its received form.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Returns the time of issue, in seconds since 1970. Of two tokens for one account, the later one is
    /// valid.
    pub fn issued_at(&self) -> i64 {
        self.claims.issued_at
    }

    /// Returns the auth callout service of the account, if it has one.
    pub(in crate::auth) fn service(&self) -> Option<&Service> {
        self.service.as_ref()
    }

    /// Returns whether the account's service authenticates a user.
    pub(super) fn is_authenticated_by_service(&self, user: &str) -> bool {
        let service = self.service.as_ref();
        service.is_some_and(|service| service.users.iter().all(|known| known != user))
    }

    /// Returns the account's name in its token.
    pub(in crate::auth) fn tag(&self) -> &str {
        &self.claims.name
    }

    /// Returns the account's public key.
    pub(in crate::auth) fn account_key(&self) -> &str {
        &self.claims.subject
    }

    /// Returns whether the token is valid at this time.
    pub(super) fn holds_at(&self, now: i64) -> bool {
        self.claims.holds_at(now)
    }

    /// Returns the accounts from which this account imports.
    pub(super) fn exporters(&self) -> impl Iterator<Item = &str> {
        self.requested
            .iter()
            .map(|requested| requested.import.account.as_str())
    }

    pub(super) fn default_permissions(&self) -> Option<&Permissions> {
        self.default_permissions.as_ref()
    }

    /// Returns whether the account has revoked the token of a user that was issued at this time.
    pub(super) fn has_revoked(&self, user: &str, issued_at: i64) -> bool {
        is_revoked(&self.claims.body.revocations, user, issued_at)
    }

    /// Returns the template of a key that signs for this account: `Some(None)` for a key without a template,
    /// `None` for a key that does not sign for the account.
    #[expect(clippy::option_option, reason = "no key, a key, a scoped key")]
    pub(in crate::auth) fn signer(&self, key: &PublicKey) -> Option<Option<&UserTerms>> {
        let key = key.encode();
        if key == self.claims.subject {
            return Some(None);
        }
        let mut signers = self.claims.body.signing_keys.iter();
        match signers.find(|signer| signer.key() == key)? {
            SignerClaims::Plain(_) => Some(None),
            SignerClaims::Scoped(scope) => Some(Some(&scope.template)),
        }
    }
}

impl SignerClaims {
    /// Returns the key.
    fn key(&self) -> &str {
        match self {
            SignerClaims::Plain(key) => key,
            SignerClaims::Scoped(scope) => &scope.key,
        }
    }
}

pub(super) fn is_revoked(
    revocations: &std::collections::BTreeMap<String, i64>,
    subject: &str,
    issued_at: i64,
) -> bool {
    let until = [EVERYBODY, subject].map(|key| revocations.get(key));
    until.into_iter().flatten().any(|until| issued_at <= *until)
}

fn check_counts(body: &AccountClaims) -> Result<(), String> {
    let exceeds = |limit: i64, count: usize| {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        limit >= 0 && count > limit
    };
    if exceeds(body.limits.imports, body.imports.len()) {
        return Err("it has more imports than its limit allows".into());
    }
    if exceeds(body.limits.exports, body.exports.len()) {
        return Err("it has more exports than its limit allows".into());
    }
    let has_wildcard = |subject: &str| subject.split('.').any(|token| matches!(token, "*" | ">"));
    if !body.limits.wildcards
        && body
            .exports
            .iter()
            .any(|export| has_wildcard(&export.subject))
    {
        return Err("its limits do not allow exports with wildcards".into());
    }
    Ok(())
}

/// Converts a limit; a negative one is unlimited.
pub(super) fn limit(given: i64) -> Option<u64> {
    u64::try_from(given).ok()
}

/// Converts the JetStream limits. Returns `None` if no tier allows storage, which means no JetStream.
fn jetstream(limits: &LimitClaims) -> Option<JetStreamLimits> {
    let stores = |tier: &TierClaims| tier.mem_storage != 0 || tier.disk_storage != 0;
    let tiers = &limits.tiered_limits;
    if tiers.is_empty() {
        return stores(&limits.flat).then(|| tier_limits(&limits.flat));
    }
    let named = tiers.iter();
    let named = named.map(|(name, tier)| (name.clone(), tier_limits(tier)));
    let has_any = tiers.values().any(stores);
    has_any.then(|| JetStreamLimits::tiered(named.collect()))
}

fn tier_limits(tier: &TierClaims) -> JetStreamLimits {
    // For these limits 0 means unlimited.
    let some = |given: i64| if given == 0 { -1 } else { given };
    JetStreamLimits {
        max_memory: tier.mem_storage,
        max_storage: tier.disk_storage,
        max_streams: some(tier.streams),
        max_consumers: some(tier.consumer),
        max_ack_pending: some(tier.max_ack_pending),
        memory_max_stream_bytes: some(tier.mem_max_stream_bytes),
        storage_max_stream_bytes: some(tier.disk_max_stream_bytes),
        max_bytes_required: tier.max_bytes_required,
        ..JetStreamLimits::default()
    }
}

fn nanos(given: i64) -> Option<Duration> {
    let nanos = u64::try_from(given).ok().filter(|nanos| *nanos > 0);
    nanos.map(Duration::from_nanos)
}

fn export(claims: &ExportClaims) -> Result<Export, String> {
    let kind = match claims.kind.as_str() {
        "stream" => ExportKind::Stream,
        "service" => ExportKind::Service {
            response: match claims.response_type.as_str() {
                "" | "Singleton" => ResponseKind::Single,
                "Stream" => ResponseKind::Stream,
                "Chunked" => ResponseKind::Chunked,
                other => return Err(format!("export of unknown response type {other:?}")),
            },
            response_threshold: nanos(claims.response_threshold),
            latency: claims.service_latency.as_ref().and_then(|latency| {
                Some(Latency {
                    subject: latency.results.clone(),
                    sampling: sampling(&latency.sampling)?,
                })
            }),
        },
        other => return Err(format!("export of unknown type {other:?}")),
    };
    let position = usize::from(claims.account_token_position);
    Ok(Export {
        kind,
        subject: claims.subject.clone(),
        // Accounts with an activation token are added when imports are resolved; see `settle`.
        accounts: claims.token_req.then(Vec::new),
        account_token_position: (position > 0).then_some(position),
        allow_trace: claims.allow_trace,
    })
}

fn sampling(claims: &SampleClaims) -> Option<Sampling> {
    if claims.0.as_str() == Some("headers") {
        return Some(Sampling::Headers);
    }
    let percent = u8::try_from(claims.0.as_u64()?).ok()?;
    (1..=100)
        .contains(&percent)
        .then_some(Sampling::Percent(percent))
}

fn requested(claims: &ImportClaims) -> Result<RequestedImport, String> {
    let (kind, is_stream) = match claims.kind.as_str() {
        "stream" => (ImportKind::Stream, true),
        "service" => (
            ImportKind::Service {
                share: claims.share,
            },
            false,
        ),
        other => return Err(format!("import of unknown type {other:?}")),
    };
    let subject = &claims.subject;
    let (there, here) = match (claims.local_subject.as_str(), claims.to.as_str()) {
        ("", "") => (subject.clone(), None),
        // For a stream, `to` is a prefix. For a service, `to` is the subject in the exporting account.
        ("", prefix) if is_stream => (subject.clone(), Some(format!("{prefix}.{subject}"))),
        ("", there) => (there.to_owned(), Some(subject.clone())),
        (local, _) => (subject.clone(), Some(with_wildcards(local))),
    };
    let activation = match claims.token.as_str() {
        "" => None,
        token => {
            let read = jwt::verified(token);
            Some(read.map_err(|error| format!("activation for {subject:?}: {error}"))?)
        }
    };
    Ok(RequestedImport {
        import: Import {
            kind,
            account: claims.account.clone(),
            to: here.filter(|here| *here != there),
            subject: there,
            allow_trace: claims.allow_trace,
        },
        activation,
    })
}

/// Replaces numbered wildcards: `a.$1` becomes `a.*`.
fn with_wildcards(local: &str) -> String {
    let is_number = |token: &str| {
        let digits = token.strip_prefix('$');
        digits.is_some_and(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()))
    };
    let tokens = local.split('.');
    let tokens = tokens.map(|token| if is_number(token) { "*" } else { token });
    tokens.collect::<Vec<_>>().join(".")
}

/// Converts permissions that contain no templates.
pub(in crate::auth) fn permissions(claims: &PermissionClaims) -> Result<Permissions, AccessError> {
    let publish = direction(&claims.publish, Allowed::publish)?;
    let subscribe = direction(&claims.subscribe, Allowed::subscribe)?;
    let responses = claims.resp.as_ref().map(|resp| AllowResponses {
        max: match resp.max {
            0 => AllowResponses::default().max,
            max => limit(max),
        },
        expires: match resp.ttl {
            0 => AllowResponses::default().expires,
            ttl => nanos(ttl),
        },
    });
    Ok(Permissions {
        publish,
        subscribe,
        responses,
    })
}

/// A function that creates an [`Allowed`] from allowed and denied patterns.
type Parse = fn(Option<&[&str]>, &[&str]) -> Result<Allowed, AccessError>;

fn direction(claims: &SubjectClaims, parse: Parse) -> Result<Allowed, AccessError> {
    let allow: Vec<&str> = claims.allow.iter().map(String::as_str).collect();
    let deny: Vec<&str> = claims.deny.iter().map(String::as_str).collect();
    parse((!allow.is_empty()).then_some(&allow), &deny)
}
