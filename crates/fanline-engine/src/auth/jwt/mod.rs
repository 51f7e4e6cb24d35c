//! NATS tokens (JWT): claims signed by a key.
//!
//! A token has three base64url parts separated by dots: header, claims, and signature. The signature covers
//! the first two parts; in version 1, only the second. The claims name their issuer, so a valid signature
//! does not prove that the issuer is trusted.

mod claims;
#[cfg(test)]
mod tests;
mod version1;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::nkey::{KeyKind, PublicKey, SecretKey};

pub use claims::{
    AccountClaims, ActivationClaims, AuthorizationClaims, ExportClaims, GenericClaims,
    ImportClaims, LatencyClaims, LimitClaims, MappingClaims, OperatorClaims, PermissionClaims,
    ResponseClaims, ResponseToCallout, SampleClaims, ScopeClaims, SignerClaims, SubjectClaims,
    TierClaims, TimeRangeClaims, TraceClaims, UserClaims, UserTerms,
};

/// Largest size of a token in bytes. A larger token is refused before it is parsed.
pub const JWT_BYTES_MAX: usize = 1 << 20;
/// Largest size of a header in bytes. A valid header has two short fields.
const HEADER_BYTES_MAX: usize = 1024;
/// Length of an Ed25519 signature in bytes.
const SIGNATURE_BYTES: usize = 64;
/// Latest supported version of claims.
const VERSION_MAX: u64 = 2;

/// The reason why a token is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each one is its text")]
pub enum JwtError {
    #[error("the token is longer than {} bytes", JWT_BYTES_MAX)]
    TooLong,
    #[error("the token does not have three parts separated by dots")]
    Parts,
    #[error("the token's {0} is not base64url")]
    Encoding(&'static str),
    #[error("the token's {0} is invalid: {1}")]
    Content(&'static str, String),
    #[error("the token's algorithm {0:?} is not supported; expected \"ed25519-nkey\"")]
    Algorithm(String),
    #[error("token version {0} is not supported; expected 1 or 2")]
    Version(u64),
    #[error("the token has type {0:?}, expected {1:?}")]
    Type(String, &'static str),
    #[error("the token's issuer is not a key of the right kind")]
    Issuer,
    #[error("the token's subject is not a key of the right kind")]
    Subject,
    #[error("the token's signature does not match its issuer")]
    Signature,
}

/// The fields of a token that depend on its type, for example those of an account or a user.
pub trait Body: DeserializeOwned {
    /// Name of the type, as in the token.
    const TYPE: &'static str;
    /// Kinds of keys that may issue tokens of this type.
    const ISSUERS: &'static [KeyKind];
    /// Kinds of keys that may be the subject of the token; empty allows any subject.
    const SUBJECTS: &'static [KeyKind];
}

/// The claims of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claims<B> {
    /// Id of the token itself.
    pub id: String,
    /// Key that signed the token.
    pub issuer: PublicKey,
    /// Subject of the token; in most types, a public key.
    pub subject: String,
    /// Audience of the token.
    pub audience: String,
    /// Time of issue, in seconds since 1970.
    pub issued_at: i64,
    /// Time when the token expires, in seconds since 1970.
    pub expires_at: Option<i64>,
    /// Time when the token becomes valid, in seconds since 1970.
    pub not_before: Option<i64>,
    /// Display name of the subject.
    pub name: String,
    /// The fields that depend on the token's type.
    pub body: B,
}

impl<B> Claims<B> {
    /// Returns whether the token is valid at this time, in seconds since 1970.
    pub fn holds_at(&self, now: i64) -> bool {
        self.expires_at.is_none_or(|end| now < end)
            && self.not_before.is_none_or(|from| now >= from)
    }
}

/// A parsed token whose signature is not verified yet.
#[derive(Clone, Debug)]
pub struct Unverified<B> {
    claims: Claims<B>,
    signed: Vec<u8>,
    signature: Vec<u8>,
}

impl<B: Body> Unverified<B> {
    /// Parses a token.
    ///
    /// # Errors
    ///
    /// If it is malformed, or has another type.
    pub fn read(text: &str) -> Result<Self, JwtError> {
        let text = text.trim();
        if text.len() > JWT_BYTES_MAX {
            return Err(JwtError::TooLong);
        }
        let mut parts = text.split('.');
        let (Some(header), Some(payload), Some(signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(JwtError::Parts);
        };
        let algorithm = read_header(header)?;
        let payload_bytes = decode("payload", payload)?;
        let raw: Raw = content("payload", &payload_bytes)?;
        let signature = decode("signature", signature)?;
        if signature.len() != SIGNATURE_BYTES {
            return Err(JwtError::Signature);
        }
        let (claims, version) = raw.check()?;
        // The version determines which bytes are signed. Generic claims may have no version: then the
        // algorithm determines it.
        let is_old = match B::TYPE {
            GenericClaims::TYPE => algorithm == Algorithm::Old,
            _ => version <= 1,
        };
        let signed = match is_old {
            true => payload,
            false => &text[..header.len() + 1 + payload.len()],
        };
        Ok(Unverified {
            claims,
            signed: signed.as_bytes().to_vec(),
            signature,
        })
    }

    /// Returns the claims without verification. An attacker may have written them.
    pub fn peek(&self) -> &Claims<B> {
        &self.claims
    }

    /// Returns the claims if their issuer signed them.
    ///
    /// # Errors
    ///
    /// If the signature is not the issuer's.
    pub fn verify(self) -> Result<Claims<B>, JwtError> {
        match self.claims.issuer.verifies(&self.signed, &self.signature) {
            true => Ok(self.claims),
            false => Err(JwtError::Signature),
        }
    }
}

/// Parses a token and verifies its issuer's signature.
///
/// # Errors
///
/// If it is malformed, has another type, or the signature is not the issuer's.
pub fn verified<B: Body>(text: &str) -> Result<Claims<B>, JwtError> {
    Unverified::read(text)?.verify()
}

/// Signs `claims` and returns the token. The key becomes its issuer.
///
/// # Panics
///
/// If `claims` is not an object.
pub fn sign(mut claims: Value, key: &SecretKey) -> String {
    claims["iss"] = key.public().encode().into();
    let header = json!({"typ": "JWT", "alg": "ed25519-nkey"});
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", part(&header), part(&claims));
    let signature = URL_SAFE_NO_PAD.encode(key.sign(signed.as_bytes()));
    format!("{signed}.{signature}")
}

/// The algorithm that a header names. Both names stand for the same kind of signature.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Algorithm {
    /// `ed25519`, used by version 1 of the libraries.
    Old,
    /// `ed25519-nkey`.
    Nkey,
}

/// Returns the algorithm of a header.
fn read_header(text: &str) -> Result<Algorithm, JwtError> {
    #[derive(Deserialize)]
    struct Header {
        #[serde(default)]
        typ: String,
        #[serde(default)]
        alg: String,
    }
    if text.len() > HEADER_BYTES_MAX {
        return Err(JwtError::TooLong);
    }
    let header: Header = content("header", &decode("header", text)?)?;
    if !header.typ.eq_ignore_ascii_case("jwt") {
        return Err(JwtError::Content("header", "its `typ` is not JWT".into()));
    }
    match header.alg.to_ascii_lowercase().as_str() {
        "ed25519-nkey" => Ok(Algorithm::Nkey),
        "ed25519" => Ok(Algorithm::Old),
        _ => Err(JwtError::Algorithm(header.alg)),
    }
}

fn decode(part: &'static str, text: &str) -> Result<Vec<u8>, JwtError> {
    let text = text.trim_end_matches('=');
    URL_SAFE_NO_PAD
        .decode(text)
        .map_err(|_| JwtError::Encoding(part))
}

fn content<T: DeserializeOwned>(part: &'static str, json: &[u8]) -> Result<T, JwtError> {
    serde_json::from_slice(json).map_err(|error| JwtError::Content(part, error.to_string()))
}

/// The JSON form of claims.
#[derive(Deserialize)]
struct Raw {
    #[serde(default)]
    jti: String,
    iss: String,
    #[serde(default)]
    sub: String,
    #[serde(default)]
    aud: String,
    #[serde(default)]
    iat: i64,
    #[serde(default)]
    exp: i64,
    #[serde(default)]
    nbf: i64,
    #[serde(default)]
    name: String,
    /// Type of the token in version 1.
    #[serde(default, rename = "type")]
    old_type: String,
    /// Account that signed the token, in version 1.
    #[serde(default)]
    issuer_account: String,
    /// Tags in version 1.
    #[serde(default)]
    tags: Value,
    #[serde(default)]
    nats: Value,
}

impl Raw {
    /// Returns the claims and the token's version.
    fn check<B: Body>(mut self) -> Result<(Claims<B>, u64), JwtError> {
        let (version, kind) = self.version_and_type()?;
        // Generic claims may have any type.
        if kind != B::TYPE && B::TYPE != GenericClaims::TYPE {
            return Err(JwtError::Type(kind, B::TYPE));
        }
        // Auth callout responses did not exist in version 1, so they are accepted without a version.
        if version == 0 && !matches!(B::TYPE, GenericClaims::TYPE | ResponseToCallout::TYPE) {
            return Err(JwtError::Version(version));
        }
        if version == 1 && B::TYPE != GenericClaims::TYPE {
            self.nats = version1::migrate(&kind, &mut self)?.into();
        }
        let issuer = PublicKey::parse(&self.iss).filter(|key| B::ISSUERS.contains(&key.kind()));
        let subject = PublicKey::parse(&self.sub);
        if !B::SUBJECTS.is_empty() && !subject.is_some_and(|key| B::SUBJECTS.contains(&key.kind()))
        {
            return Err(JwtError::Subject);
        }
        let body = serde_json::from_value(self.nats)
            .map_err(|error| JwtError::Content("payload", error.to_string()))?;
        let claims = Claims {
            id: self.jti,
            issuer: issuer.ok_or(JwtError::Issuer)?,
            subject: self.sub,
            audience: self.aud,
            issued_at: self.iat,
            expires_at: (self.exp != 0).then_some(self.exp),
            not_before: (self.nbf != 0).then_some(self.nbf),
            name: self.name,
            body,
        };
        Ok((claims, version))
    }

    /// Returns the token's version and type. The version is 0 if the token has none.
    fn version_and_type(&self) -> Result<(u64, String), JwtError> {
        if !self.old_type.is_empty() {
            return Ok((1, self.old_type.clone()));
        }
        let Value::Object(nats) = &self.nats else {
            return Err(JwtError::Content(
                "payload",
                "`nats` is not an object".into(),
            ));
        };
        let version = nats.get("version").map_or(Some(0), Value::as_u64);
        let version = version.unwrap_or(u64::MAX);
        if version > VERSION_MAX {
            return Err(JwtError::Version(version));
        }
        let kind = nats.get("type").and_then(Value::as_str);
        Ok((version, kind.unwrap_or_default().to_owned()))
    }
}
