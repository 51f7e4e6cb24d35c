//! `INFO`: usage and limits of the account.

use super::{Answer, Call, json};
use crate::jetstream::{AccountInfo, ApiError, Overview, OverviewWanted, TierInfo};
use crate::limits::tier_name;

pub(super) fn handle(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let sums = OverviewWanted::default();
    let mut overview = call.js.overview(sums, call.now, call.port);
    let elsewhere = call.elsewhere.sums;
    overview.memory += elsewhere.memory;
    overview.storage += elsewhere.storage;
    overview.reserved_memory += elsewhere.reserved_memory;
    overview.reserved_storage += elsewhere.reserved_storage;
    overview.streams += elsewhere.streams;
    overview.consumers += elsewhere.consumers;
    overview.api.total += elsewhere.requests;
    overview.api.errors += elsewhere.errors;
    let limits = &call.js.settings.limits;
    let tiers = limits.tiers.iter().map(|(name, limits)| {
        // All streams have one replica, so the limits of one replica apply to all of them.
        let has_all = *name == tier_name(1);
        let used = if has_all {
            &overview
        } else {
            &Overview::default()
        };
        let tier = TierInfo {
            memory: used.memory,
            storage: used.storage,
            reserved_memory: used.reserved_memory,
            reserved_storage: used.reserved_storage,
            streams: used.streams,
            consumers: used.consumers,
            limits: limits.clone(),
        };
        (name.clone(), tier)
    });
    json(&AccountInfo {
        memory: overview.memory,
        storage: overview.storage,
        reserved_memory: overview.reserved_memory,
        reserved_storage: overview.reserved_storage,
        streams: overview.streams,
        consumers: overview.consumers,
        limits: limits.shown(),
        domain: call.js.settings.domain.clone(),
        api: overview.api,
        tiers: tiers.collect(),
    })
}
