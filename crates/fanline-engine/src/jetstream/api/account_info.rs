//! `INFO`: what the account uses and may use.

use super::{Answer, Call, json};
use crate::jetstream::{AccountInfo, ApiError, Storage};

pub(super) fn handle(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    let js = &mut *call.js;
    let reserved = js.reserved(None);
    let mut info = AccountInfo {
        memory: 0,
        storage: 0,
        reserved_memory: reserved.memory,
        reserved_storage: reserved.storage,
        streams: js.streams.len() as u64,
        consumers: 0,
        limits: js.settings.limits.clone(),
        domain: js.settings.domain.clone(),
        api: js.stats,
    };
    let keys: Vec<_> = js.streams.iter().map(|(key, _)| key).collect();
    for key in keys {
        let Some(stream) = js.streams.get_mut(key) else {
            continue;
        };
        let bytes = stream.state().bytes;
        match stream.config().storage {
            Storage::Memory => info.memory += bytes,
            Storage::File => info.storage += bytes,
        }
        let consumers = stream.consumers().iter();
        info.consumers += consumers.filter(|(_, c)| !c.config().direct).count() as u64;
    }
    json(&info)
}
