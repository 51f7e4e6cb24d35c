//! What is kept beside a log.

use crate::store::{Store, StoreError};

pub(super) fn write(_: &mut Store, _: &str, _: &[u8]) -> Result<(), StoreError> {
    Ok(())
}

pub(super) fn read(_: &mut Store, _: &str) -> Result<Option<Vec<u8>>, StoreError> {
    Ok(None)
}

pub(super) fn remove(_: &mut Store, _: &str) -> Result<(), StoreError> {
    Ok(())
}

pub(super) fn names(_: &mut Store) -> Result<Vec<String>, StoreError> {
    Ok(Vec::new())
}
