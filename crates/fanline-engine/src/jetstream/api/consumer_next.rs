//! `CONSUMER.MSG.NEXT`: a pull request.

use super::no_responders;
use crate::jetstream::account::JetStream;
use crate::jetstream::{Message, Now, Port};

/// Passes a pull request to its consumer. `names` is the rest of the request's subject: a stream and a
/// consumer.
pub(super) fn handle(
    js: &mut JetStream,
    names: &[u8],
    message: &Message<'_>,
    now: Now,
    port: &mut dyn Port,
) {
    let names = std::str::from_utf8(names).unwrap_or_default();
    let (stream, consumer) = names.split_once('.').unwrap_or((names, ""));
    let key = js.streams.find(stream);
    let id = key
        .and_then(|key| js.streams.get(key))
        .and_then(|stream| stream.consumers().find(consumer));
    let (Some(key), Some(id)) = (key, id) else {
        return no_responders(message, port);
    };
    if let Some(stream) = js.streams.touch(key) {
        stream.with_consumers(now, port, |consumers, context| {
            consumers.handle_pull(id, message, context);
        });
    }
}
