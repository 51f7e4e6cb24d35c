//! Errors in the configuration of accounts and users.

/// An error in the configuration of accounts and users. If nats-server reports the same error, the message is
/// the same.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each one is its text")]
pub enum AccessError {
    #[error("subject {0:?} is not a valid subject")]
    InvalidSubject(String),
    #[error("Can not have a token and users")]
    TokenAndUsers,
    #[error("Duplicate user {0:?} detected")]
    DuplicateUser(String),
    #[error("Duplicate nkey {0:?} detected")]
    DuplicateNkey(String),
    #[error("Not a valid public nkey for a user: {0:?}")]
    InvalidUserNkey(String),
    #[error("Not a valid public nkey for an account: {0:?}")]
    InvalidAccountNkey(String),
    #[error("Duplicate Account Entry: {0}")]
    DuplicateAccount(String),
    #[error(
        "no_auth_user: {0:?} not present as user or nkey in authorization block or account configuration"
    )]
    UnknownNoAuthUser(String),
    #[error(
        "account {account:?} imports {subject:?} from {exporter:?}, an account that is not configured"
    )]
    UnknownExporter {
        account: String,
        subject: String,
        exporter: String,
    },
    #[error("account {account:?}: stream import {subject:?} not authorized by {exporter:?}")]
    StreamImportDenied {
        account: String,
        subject: String,
        exporter: String,
    },
    #[error("account {account:?}: service import {subject:?} not authorized by {exporter:?}")]
    ServiceImportDenied {
        account: String,
        subject: String,
        exporter: String,
    },
    #[error("account {0:?}: import of {1:?} forms a cycle")]
    ImportCycle(String, String),
    #[error("account {0:?}: import of {1:?} can not be mapped to {2:?}")]
    ImportMapping(String, String, String),
    #[error("account {0:?}: export {1:?} is allowed for {2:?}, an account that is not configured")]
    UnknownImporter(String, String, String),
    #[error("account {0:?}: export {1:?}: account_token_position must be that of a `*`")]
    AccountTokenPosition(String, String),
    #[error("auth callout: account {0:?} is not configured")]
    UnknownCalloutAccount(String),
    #[error("in non operator mode, `default_js_domain` references non existing account {0:?}")]
    UnknownDomainAccount(String),
    #[error("default_js_domain contains account name {0:?} with enabled JetStream")]
    DomainAndJetStream(String),
    #[error("invalid domain name {0:?}: may not contain ., * or >")]
    InvalidDomain(String),
    #[error("users are signed by their accounts in operator mode, and not configured: {0:?}")]
    OperatorAndUsers(String),
    #[error("Unknown connection type {0:?}")]
    UnknownConnectionKind(String),
    #[error("mapping of {0:?}: {1}")]
    Mapping(String, String),
    #[error("mapping of {0:?}: total weight needs to be <= 100")]
    MappingWeights(String),
    #[error("mapping of {0:?}: duplicate entry")]
    DuplicateMapping(String),
}
