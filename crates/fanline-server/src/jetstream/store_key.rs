//! The encryption key of a store folder. It is generated once, and stored in two copies that are encrypted
//! with the configured secret.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use fanline_engine::store::Key;
use fanline_engine::store::wrapped::{self, UnwrapError};
use ring::rand::{SecureRandom, SystemRandom};

use crate::error::StoreKeyError;
use crate::options::Encryption;
use crate::private_files;

const NAMES: [&str; 2] = ["key", "key.copy"];
const NEW_SUFFIX: &str = ".new";

/// Returns the key of a store folder; `None` if the store is not encrypted. Writes nothing if the secret is
/// wrong.
pub(super) fn open(
    folder: &Path,
    encryption: Option<&Encryption>,
) -> Result<Option<Key>, StoreKeyError> {
    let mut copies = Vec::new();
    for name in NAMES {
        match fs::read(folder.join(name)) {
            Ok(bytes) => copies.push(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => copies.push(None),
            Err(error) => return Err(error.into()),
        }
    }
    let is_sealed = copies.iter().any(Option::is_some);
    let Some(encryption) = encryption else {
        return match is_sealed {
            true => Err(StoreKeyError::Missing),
            false => Ok(None),
        };
    };
    if encryption.secret.bytes().is_empty() {
        return Err(StoreKeyError::Empty);
    }
    let key = match is_sealed {
        true => unwrap(folder, &copies, encryption)?,
        false => {
            let key = Key::new(random()?);
            let bytes = wrapped::wrap(encryption.secret.bytes(), &key, random()?);
            write(folder, &copies, &bytes)?;
            key
        }
    };
    Ok(Some(key.with_algorithm(encryption.cipher)))
}

/// Returns the key from the first copy that the secret decrypts. Repairs the other copy.
fn unwrap(
    folder: &Path,
    copies: &[Option<Vec<u8>>],
    encryption: &Encryption,
) -> Result<Key, StoreKeyError> {
    let mut different: Vec<&Vec<u8>> = copies.iter().flatten().collect();
    different.dedup();
    let mut is_wrong = false;
    let secret = &encryption.secret;
    for tried in [secret].into_iter().chain(&encryption.previous_secret) {
        for copy in &different {
            match wrapped::unwrap(tried.bytes(), copy) {
                Ok(key) => {
                    let bytes = match tried == secret {
                        true => (*copy).clone(),
                        false => wrapped::wrap(secret.bytes(), &key, random()?),
                    };
                    write(folder, copies, &bytes)?;
                    return Ok(key);
                }
                Err(UnwrapError::WrongSecret) => is_wrong = true,
                Err(UnwrapError::Damaged) => {}
            }
        }
    }
    Err(match is_wrong {
        true => StoreKeyError::Wrong,
        false => StoreKeyError::Damaged,
    })
}

/// Writes both copies, one after the other, so that one is intact at any time.
fn write(folder: &Path, copies: &[Option<Vec<u8>>], bytes: &[u8]) -> Result<(), StoreKeyError> {
    for (name, copy) in NAMES.iter().zip(copies) {
        if copy.as_deref() == Some(bytes) {
            continue;
        }
        let new = folder.join(format!("{name}{NEW_SUFFIX}"));
        let mut options = private_files::file_options();
        let mut file = options.write(true).create(true).truncate(true).open(&new)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&new, folder.join(name))?;
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

fn random<const BYTES: usize>() -> Result<[u8; BYTES], StoreKeyError> {
    let mut bytes = [0; BYTES];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| io::Error::other("the system provides no random numbers"))?;
    Ok(bytes)
}
