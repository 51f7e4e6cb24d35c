//! `INFO`: what the account uses and may use.

use super::{Answer, Call, json};
use crate::jetstream::{AccountInfo, ApiError, OverviewWanted};

pub(super) fn handle(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let sums = OverviewWanted::default();
    let overview = call.js.overview(sums, call.now, call.port);
    json(&AccountInfo {
        memory: overview.memory,
        storage: overview.storage,
        reserved_memory: overview.reserved_memory,
        reserved_storage: overview.reserved_storage,
        streams: overview.streams,
        consumers: overview.consumers,
        limits: call.js.settings.limits.clone(),
        domain: call.js.settings.domain.clone(),
        api: overview.api,
    })
}
