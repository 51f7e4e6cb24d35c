//! Requests that only servers of a cluster can perform.

use super::{Answer, Call};
use crate::jetstream::ApiError;

pub(super) fn handle(_: &mut Call<'_>) -> Result<Answer, ApiError> {
    Err(ApiError::CLUSTER_REQUIRED)
}
