//! Claims of each type of token. Unknown fields are ignored, and null is the same as a missing field. A limit
//! of -1 means unlimited.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::Body;
use crate::auth::nkey::KeyKind;

/// Deserializes a value that may be null.
fn or_default<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::<T>::deserialize(from).map(Option::unwrap_or_default)
}

macro_rules! claims {
    ($(#[$about:meta])* $name:ident { $($(#[$field_about:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
        #[allow(missing_docs, reason = "named as in the tokens of NATS")]
        pub struct $name {
            $(
                $(#[$field_about])*
                #[serde(default, deserialize_with = "or_default")]
                pub $field: $type,
            )*
        }
    };
}

claims!(
    /// An operator, and the keys that sign accounts.
    OperatorClaims {
        signing_keys: Vec<String>,
        system_account: String,
        strict_signing_key_usage: bool,
    }
);

impl Body for OperatorClaims {
    const TYPE: &'static str = "operator";
    const ISSUERS: &'static [KeyKind] = &[KeyKind::Operator];
    const SUBJECTS: &'static [KeyKind] = &[KeyKind::Operator];
}

claims!(
    /// An account.
    AccountClaims {
        imports: Vec<ImportClaims>,
        exports: Vec<ExportClaims>,
        limits: LimitClaims,
        signing_keys: Vec<SignerClaims>,
        /// Revocation times by user key; `*` is all users. A token that was issued at or before the time is
        /// revoked.
        revocations: BTreeMap<String, i64>,
        default_permissions: PermissionClaims,
        mappings: BTreeMap<String, Vec<MappingClaims>>,
        authorization: AuthorizationClaims,
        trace: Option<TraceClaims>,
        cluster_traffic: String,
        tags: Vec<String>,
    }
);

impl Body for AccountClaims {
    const TYPE: &'static str = "account";
    const ISSUERS: &'static [KeyKind] = &[KeyKind::Operator];
    const SUBJECTS: &'static [KeyKind] = &[KeyKind::Account];
}

/// A user.
// Flattened fields must not use `or_default`, which would replace a value of the wrong type by the default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "named as in the tokens of NATS")]
pub struct UserClaims {
    pub issuer_account: String,
    #[serde(deserialize_with = "or_default")]
    pub tags: Vec<String>,
    #[serde(flatten)]
    pub terms: UserTerms,
}

impl Body for UserClaims {
    const TYPE: &'static str = "user";
    const ISSUERS: &'static [KeyKind] = &[KeyKind::Account];
    const SUBJECTS: &'static [KeyKind] = &[KeyKind::User];
}

claims!(
    /// Permission of an account to import an export.
    ActivationClaims {
        subject: String,
        kind: String,
        issuer_account: String,
    }
);

impl Body for ActivationClaims {
    const TYPE: &'static str = "activation";
    const ISSUERS: &'static [KeyKind] = &[KeyKind::Account];
    const SUBJECTS: &'static [KeyKind] = &[KeyKind::Account];
}

claims!(
    /// Response of an auth callout service.
    ResponseToCallout {
        /// Token of the admitted user.
        jwt: String,
        /// Reason for a refusal.
        error: String,
        issuer_account: String,
    }
);

impl Body for ResponseToCallout {
    const TYPE: &'static str = "authorization_response";
    const ISSUERS: &'static [KeyKind] = &[KeyKind::Account];
    const SUBJECTS: &'static [KeyKind] = &[KeyKind::User];
}

/// Any signed claims.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct GenericClaims(pub serde_json::Map<String, Value>);

impl Body for GenericClaims {
    const TYPE: &'static str = "generic";
    const ISSUERS: &'static [KeyKind] = &[
        KeyKind::Operator,
        KeyKind::Account,
        KeyKind::User,
        KeyKind::Server,
        KeyKind::Cluster,
    ];
    const SUBJECTS: &'static [KeyKind] = &[];
}

claims!(
    /// An import.
    ImportClaims {
        name: String,
        subject: String,
        account: String,
        token: String,
        /// The older field for the local subject. For a stream it is a prefix. For a service it is the
        /// subject in the *exporting* account.
        to: String,
        local_subject: String,
        #[serde(rename = "type")]
        kind: String,
        share: bool,
        allow_trace: bool,
    }
);

claims!(
    /// An export.
    ExportClaims {
        name: String,
        subject: String,
        #[serde(rename = "type")]
        kind: String,
        token_req: bool,
        revocations: BTreeMap<String, i64>,
        response_type: String,
        /// Maximum response time in nanoseconds.
        response_threshold: i64,
        service_latency: Option<LatencyClaims>,
        account_token_position: u16,
        allow_trace: bool,
    }
);

claims!(
    /// Configuration of latency reports.
    LatencyClaims {
        /// A percentage, or `headers`.
        sampling: SampleClaims,
        results: String,
    }
);

/// A percentage, or `headers`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct SampleClaims(pub Value);

/// Limits of an account. A missing limit is 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "named as in the tokens of NATS")]
pub struct LimitClaims {
    pub subs: i64,
    pub data: i64,
    pub payload: i64,
    pub imports: i64,
    pub exports: i64,
    pub wildcards: bool,
    pub disallow_bearer: bool,
    pub conn: i64,
    pub leaf: i64,
    #[serde(flatten)]
    pub flat: TierClaims,
    /// Limits by number of replicas, with keys such as `R1` and `R3`.
    #[serde(deserialize_with = "or_default")]
    pub tiered_limits: BTreeMap<String, TierClaims>,
}

claims!(
    /// JetStream limits of an account.
    TierClaims {
        mem_storage: i64,
        disk_storage: i64,
        streams: i64,
        consumer: i64,
        max_ack_pending: i64,
        mem_max_stream_bytes: i64,
        disk_max_stream_bytes: i64,
        max_bytes_required: bool,
    }
);

/// A key that signs users.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum SignerClaims {
    /// A key that may grant any rights.
    Plain(String),
    /// A key whose users have the rights of its template.
    Scoped(Box<ScopeClaims>),
}

claims!(
    /// A signing key whose users all have the same rights.
    ScopeClaims {
        kind: String,
        key: String,
        role: String,
        template: UserTerms,
    }
);

claims!(
    /// Permissions to publish and subscribe.
    PermissionClaims {
        #[serde(rename = "pub")]
        publish: SubjectClaims,
        #[serde(rename = "sub")]
        subscribe: SubjectClaims,
        resp: Option<ResponseClaims>,
    }
);

claims!(
    /// Permissions in one direction. Without any subject, everything is allowed.
    SubjectClaims {
        allow: Vec<String>,
        deny: Vec<String>,
    }
);

claims!(
    /// Permission to publish responses.
    ResponseClaims {
        max: i64,
        /// Time limit for responses in nanoseconds.
        ttl: i64,
    }
);

claims!(
    /// A destination of a mapping.
    MappingClaims {
        subject: String,
        /// Weight in percent; 0 means 100.
        weight: u8,
        cluster: String,
    }
);

claims!(
    /// Configuration of the account's auth callout.
    AuthorizationClaims {
        auth_users: Vec<String>,
        allowed_accounts: Vec<String>,
        xkey: String,
    }
);

claims!(
    /// Destination of traces.
    TraceClaims {
        dest: String,
        sampling: i64,
    }
);

/// Limits, connection rules, and permissions of a user. A missing limit is 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "named as in the tokens of NATS")]
pub struct UserTerms {
    #[serde(flatten)]
    pub permissions: PermissionClaims,
    /// Networks such as `10.0.0.0/8`.
    #[serde(deserialize_with = "networks")]
    pub src: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    pub times: Vec<TimeRangeClaims>,
    /// Time zone of `times`.
    pub times_location: String,
    pub subs: i64,
    pub data: i64,
    pub payload: i64,
    pub bearer_token: bool,
    pub proxy_required: bool,
    #[serde(deserialize_with = "or_default")]
    pub allowed_connection_types: Vec<String>,
}

impl UserTerms {
    /// Returns whether no field is set. This is required for users of a scoped key, whose template has all
    /// values.
    pub fn is_empty(&self) -> bool {
        *self == UserTerms::default()
    }
}

claims!(
    /// A range of times of day, such as `08:00:00`.
    TimeRangeClaims {
        start: String,
        end: String,
    }
);

/// Deserializes a list of networks. In version 1, it is a text with commas.
fn networks<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Networks {
        List(Vec<String>),
        Text(String),
    }
    let texts = match Option::<Networks>::deserialize(from)? {
        None => Vec::new(),
        Some(Networks::List(texts)) => texts,
        Some(Networks::Text(text)) => text.split(',').map(String::from).collect(),
    };
    let texts = texts.iter().map(|text| text.trim().to_owned());
    Ok(texts.filter(|text| !text.is_empty()).collect())
}
