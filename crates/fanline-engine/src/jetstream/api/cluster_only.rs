//! What only the servers of a cluster can do.

use super::{Answer, Call};
use crate::jetstream::ApiError;

pub(super) fn handle(_: &mut Call<'_>) -> Result<Answer, ApiError> {
    Err(ApiError::CLUSTER_REQUIRED)
}
