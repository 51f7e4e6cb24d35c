//! Slow checks of credentials.

use std::sync::Arc;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{GeneralPurpose, general_purpose};

use super::admit::Grant;
use super::callout::Caller;
use super::nkey::PublicKey;
use super::operator::JwtProof;
use super::user::same;

/// A check that takes a millisecond or longer, and runs on a separate thread.
pub struct Check {
    pub(super) proof: Proof,
    /// Rights that the client receives on success; `None` if the check only equalizes the response time.
    pub(super) grant: Option<Grant>,
}

pub(super) enum Proof {
    /// Comparison with a bcrypt hash.
    Password { hash: String, given: String },
    /// Signature of the nonce.
    Signature {
        key: PublicKey,
        nonce: String,
        signature: String,
    },
    /// Token of a user.
    Token(Box<JwtProof>),
    /// The account with this name, which is not loaded yet.
    Account(String),
    /// A request to an auth callout service.
    Callout(Arc<Caller>),
}

// Credentials are secret.
impl std::fmt::Debug for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Check").finish_non_exhaustive()
    }
}

impl Check {
    /// Creates a check that needs an account first.
    pub(super) fn account(name: String) -> Self {
        Check {
            proof: Proof::Account(name),
            grant: None,
        }
    }

    /// Returns the account that must be loaded before the check. The caller looks up the account and passes
    /// an [`Access`](super::Access) that contains it to the shards. Then the caller calls
    /// [`Shard::decide_again`](crate::Shard::decide_again), even if it did not find the account.
    pub fn account_needed(&self) -> Option<&str> {
        match &self.proof {
            Proof::Account(name) => Some(name),
            _ => None,
        }
    }

    /// Returns the client if a service must authenticate it. [`Access::answered`](super::Access::answered)
    /// evaluates the service's response.
    pub fn caller(&self) -> Option<Arc<Caller>> {
        match &self.proof {
            Proof::Callout(caller) => Some(Arc::clone(caller)),
            _ => None,
        }
    }

    /// Performs the check; `now` is in seconds since 1970. Returns `None` if the client may not connect.
    pub fn perform(self, now: i64) -> Option<Grant> {
        let is_proved = match self.proof {
            Proof::Password { hash, given } => is_hash_of(&hash, &given),
            Proof::Signature {
                key,
                nonce,
                signature,
            } => decode(&signature).is_some_and(|sig| key.verifies(nonce.as_bytes(), &sig)),
            Proof::Token(proof) => return proof.perform(now),
            Proof::Account(_) | Proof::Callout(_) => false,
        };
        self.grant.filter(|_| is_proved)
    }
}

/// Decodes Base64 of either alphabet, with or without padding.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let text = text.trim_end_matches('=');
    general_purpose::URL_SAFE_NO_PAD
        .decode(text)
        .or_else(|_| general_purpose::STANDARD_NO_PAD.decode(text))
        .ok()
}

/// bcrypt's variant of Base64.
const BCRYPT_BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::BCRYPT,
    general_purpose::NO_PAD.with_decode_allow_trailing_bits(true),
);
/// Number of salt characters. The characters of the hash follow.
const SALT_CHARS: usize = 22;
/// Number of password bytes that affect the hash.
const PASSWORD_BYTES_MAX: usize = 72;
const COSTS: std::ops::RangeInclusive<u32> = 4..=31;

/// Length of the salt in bytes.
pub const SALT_BYTES: usize = 16;

/// Returns whether `hash` is a bcrypt hash of `password`.
pub fn is_hash_of(hash: &str, password: &str) -> bool {
    hash_again(hash, password).is_some_and(|again| same(&again, hash.get(4..).unwrap_or_default()))
}

/// Hashes `password` with the cost and the salt of `hash`, without the version prefix; `None` if `hash` is
/// invalid.
fn hash_again(hash: &str, password: &str) -> Option<String> {
    let rest = hash.get(4..)?;
    let (cost, rest) = rest.split_once('$')?;
    let salt = BCRYPT_BASE64.decode(rest.get(..SALT_CHARS)?).ok()?;
    let cost = cost.parse().ok().filter(|cost| COSTS.contains(cost))?;
    let salt = salt.try_into().ok()?;
    Some(hash_with(cost, salt, password))
}

/// Returns `<cost>$<salt><hash>`.
fn hash_with(cost: u32, salt: [u8; SALT_BYTES], password: &str) -> String {
    let mut bytes = password.as_bytes().to_vec();
    bytes.push(0);
    bytes.truncate(PASSWORD_BYTES_MAX);
    let hash = bcrypt::bcrypt(cost, salt, &bytes);
    let salt = BCRYPT_BASE64.encode(salt);
    // The encoding omits the last of the 24 bytes.
    format!("{cost:02}${salt}{}", BCRYPT_BASE64.encode(&hash[..23]))
}

/// Returns the bcrypt hash of a password; `None` if the cost is not between 4 and 31.
pub fn hash_password(cost: u32, salt: [u8; SALT_BYTES], password: &str) -> Option<String> {
    COSTS
        .contains(&cost)
        .then(|| format!("$2a${}", hash_with(cost, salt, password)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Widely published test vectors.
    #[test]
    fn hashes_match_published_vectors() {
        for (password, hash) in [
            (
                "",
                "$2a$06$DCq7YPn5Rq63x1Lad4cll.TV4S6ytwfsfvkgY8jIucDrjc8deX1s.",
            ),
            (
                "a",
                "$2a$06$m0CrhHm10qJ3lXRY.5zDGO3rS2KdeeWLuGmsfGlMfOxih58VYVfxe",
            ),
            (
                "abc",
                "$2a$06$If6bvum7DFjUnE9p2uDeDu0YHzrHM6tf.iqN8.yx.jNN1ILEf7h0i",
            ),
        ] {
            assert!(is_hash_of(hash, password), "{password:?}");
            assert!(!is_hash_of(hash, "b"), "{password:?}");
        }
    }

    #[test]
    fn hashed_passwords_are_accepted() {
        let long = "x".repeat(100);
        for password in ["", "s3cret", "pässword", &long] {
            let hash = hash_password(4, [7; SALT_BYTES], password).unwrap();
            assert!(hash.len() == 60 && is_hash_of(&hash, password), "{hash}");
            assert!(!is_hash_of(&hash, "other"));
            assert!(is_hash_of(&hash.replacen("$2a", "$2y", 1), password));
        }
        assert_eq!(hash_password(3, [0; SALT_BYTES], ""), None);
    }

    #[test]
    fn invalid_hashes_match_no_password() {
        for hash in [
            "",
            "$2a$",
            "$2a$99$abc",
            "$2a$04$",
            "$2a$04$é",
            "$2a$04$...............",
        ] {
            assert!(!is_hash_of(hash, "") && !is_hash_of(hash, "a"), "{hash}");
        }
    }

    #[test]
    fn signatures_are_decoded_in_both_alphabets() {
        assert_eq!(decode("-_8="), Some(vec![0xfb, 0xff]));
        assert_eq!(decode("+/8"), Some(vec![0xfb, 0xff]));
        assert_eq!(decode("?"), None);
    }
}
