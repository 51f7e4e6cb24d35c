//! Signed claims (JWT) as NATS writes them: who is who, vouched for by a key.
//!
//! Three parts in base64url, joined by points: a header, the claims and a signature. What is signed are
//! the first two parts; of tokens of version 1, the second alone. The signer is who
//! the claims say has issued them, so that a signature alone says nothing of whether he may.

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

/// No token is longer; a longer one is refused before it is looked at.
pub const JWT_BYTES_MAX: usize = 1 << 20;
/// The header says two words.
const HEADER_BYTES_MAX: usize = 1024;
/// Bytes of a signature by Ed25519.
const SIGNATURE_BYTES: usize = 64;
/// What this code understands.
const VERSION_MAX: u64 = 2;

/// Why a token is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each one is its text")]
pub enum JwtError {
    #[error("the token is longer than {} bytes", JWT_BYTES_MAX)]
    TooLong,
    #[error("a token has three parts")]
    Parts,
    #[error("the token's {0} is not base64url")]
    Encoding(&'static str),
    #[error("the token's {0} is not what it should be: {1}")]
    Content(&'static str, String),
    #[error("the token is signed by {0:?}, which is not understood")]
    Algorithm(String),
    #[error("the token is of version {0}, which is not understood")]
    Version(u64),
    #[error("the token is of type {0:?} and not {1:?}")]
    Type(String, &'static str),
    #[error("the token's issuer is not of the right kind")]
    Issuer,
    #[error("the token's subject is not of the right kind")]
    Subject,
    #[error("the token's signature is not its issuer's")]
    Signature,
}

/// What a token of some type says beside who it is about.
pub trait Body: DeserializeOwned {
    /// Its type.
    const TYPE: &'static str;
    /// Who may issue it.
    const ISSUERS: &'static [KeyKind];
    /// Whom it may be about; anything when empty.
    const SUBJECTS: &'static [KeyKind];
}

/// What a token says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claims<B> {
    /// A name for the token itself.
    pub id: String,
    /// Who says it.
    pub issuer: PublicKey,
    /// Whom it is about; of most types, a public key.
    pub subject: String,
    /// For whom it is.
    pub audience: String,
    /// When it was said, in seconds since 1970.
    pub issued_at: i64,
    /// From when on it does not hold any more.
    pub expires_at: Option<i64>,
    /// From when on it holds.
    pub not_before: Option<i64>,
    /// How its subject is called.
    pub name: String,
    /// The rest.
    pub body: B,
}

impl<B> Claims<B> {
    /// Whether it holds at this time, in seconds since 1970.
    pub fn holds_at(&self, now: i64) -> bool {
        self.expires_at.is_none_or(|end| now < end)
            && self.not_before.is_none_or(|from| now >= from)
    }
}

/// A token as it was read, not yet known to be signed by its issuer.
#[derive(Clone, Debug)]
pub struct Unverified<B> {
    claims: Claims<B>,
    signed: Vec<u8>,
    signature: Vec<u8>,
}

impl<B: Body> Unverified<B> {
    /// Takes a token apart.
    ///
    /// # Errors
    /// When it is none, or one of another type.
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
        // The version says what is signed. Generic claims need not have one: of them it is the algorithm.
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

    /// What it says, which anybody may have written.
    pub fn peek(&self) -> &Claims<B> {
        &self.claims
    }

    /// What it says, if its issuer has signed it.
    ///
    /// # Errors
    /// When he has not.
    pub fn verify(self) -> Result<Claims<B>, JwtError> {
        match self.claims.issuer.verifies(&self.signed, &self.signature) {
            true => Ok(self.claims),
            false => Err(JwtError::Signature),
        }
    }
}

/// Reads a token and checks that its issuer has signed it.
///
/// # Errors
/// When it is none of this type, or he has not.
pub fn verified<B: Body>(text: &str) -> Result<Claims<B>, JwtError> {
    Unverified::read(text)?.verify()
}

/// The token that says `claims`, signed. Who signs is set as its issuer.
///
/// # Panics
/// When `claims` is something else than an object.
pub fn sign(mut claims: Value, key: &SecretKey) -> String {
    claims["iss"] = key.public().encode().into();
    let header = json!({"typ": "JWT", "alg": "ed25519-nkey"});
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", part(&header), part(&claims));
    let signature = URL_SAFE_NO_PAD.encode(key.sign(signed.as_bytes()));
    format!("{signed}.{signature}")
}

/// How a token says that it is signed. The bytes of a signature are the same in both cases.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Algorithm {
    /// `ed25519`, as libraries of version 1 write it.
    Old,
    /// `ed25519-nkey`.
    Nkey,
}

/// The algorithm that a header names.
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
        return Err(JwtError::Content("header", "its type is not JWT".into()));
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

/// Claims as they are written.
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
    /// Where version 1 has it.
    #[serde(default, rename = "type")]
    old_type: String,
    /// Where version 1 has it.
    #[serde(default)]
    issuer_account: String,
    /// Where version 1 has them.
    #[serde(default)]
    tags: Value,
    #[serde(default)]
    nats: Value,
}

impl Raw {
    /// The claims and the token's version.
    fn check<B: Body>(mut self) -> Result<(Claims<B>, u64), JwtError> {
        let (version, kind) = self.version_and_type()?;
        // Nobody else decides what generic claims are about.
        if kind != B::TYPE && B::TYPE != GenericClaims::TYPE {
            return Err(JwtError::Type(kind, B::TYPE));
        }
        // Answers to an auth callout exist since version 2, and are taken without a version.
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

    /// The token's version, which is 0 when it has none, and its type.
    fn version_and_type(&self) -> Result<(u64, String), JwtError> {
        if !self.old_type.is_empty() {
            return Ok((1, self.old_type.clone()));
        }
        let Value::Object(nats) = &self.nats else {
            return Err(JwtError::Content("payload", "`nats` is no object".into()));
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
