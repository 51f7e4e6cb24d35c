//! `DIRECT.GET`: returns records as messages instead of JSON.

use super::{no_responders, requires_newer_level};
use crate::jetstream::account::JetStream;
use crate::jetstream::{Message, Now, Port};

/// Answers a request. `names` is the rest of the request's subject: a stream and an optional subject.
pub(super) fn handle(
    js: &mut JetStream,
    names: &[u8],
    message: &Message<'_>,
    now: Now,
    port: &mut dyn Port,
) {
    if message.reply.is_empty() {
        return;
    }
    let dot = names.iter().position(|b| *b == b'.');
    let (name, subject) = match dot {
        Some(dot) => (&names[..dot], &names[dot + 1..]),
        None => (names, &b""[..]),
    };
    let name = std::str::from_utf8(name).unwrap_or_default();
    let key = js.streams.find(name).filter(|key| {
        let stream = js.streams.get(*key);
        stream.is_some_and(|stream| stream.config().allow_direct)
    });
    // `allow_direct` needs no check: a stream without this option does not subscribe to these requests.
    let key = key.or_else(|| js.streams.mirror_of(name));
    let Some(stream) = key.and_then(|key| js.streams.get_mut(key)) else {
        return no_responders(message, port);
    };
    if requires_newer_level(message.headers) {
        port.publish(&Message {
            subject: message.reply,
            headers: b"NATS/1.0 412 Required Api Level\r\n\r\n",
            ..Message::default()
        });
        return;
    }
    stream.direct_get(subject, message.payload, message.reply, now, port);
}
