//! Codecs between values and messages.

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::client::{Headers, Message};

/// An error of a codec.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The error reported if a codec panics. The panic hook reports the panic itself.
pub(super) const PANICKED: &str = "the codec panicked";

/// Encodes values as messages, for [`publish_from`](super::Bridge::publish_from).
///
/// ```
/// use fanline_server::bridge::{BoxError, Draft, Encode};
///
/// /// Temperatures in tenths of a degree, each under the name of its room.
/// struct Tenths;
///
/// impl Encode<(&'static str, f64)> for Tenths {
///     fn encode(&mut self, value: &(&'static str, f64), draft: &mut Draft) -> Result<(), BoxError> {
///         draft.set_subject(&format!("rooms.{}", value.0));
///         draft.payload().extend_from_slice(format!("{:.0}", value.1 * 10.0).as_bytes());
///         Ok(())
///     }
/// }
/// ```
pub trait Encode<T>: Send + 'static {
    /// Writes the message for a value into an empty draft.
    ///
    /// # Errors
    ///
    /// If this fails or panics, the value is not published, and the error is reported by the bridge's
    /// [faults](super::Bridge::faults).
    fn encode(&mut self, value: &T, draft: &mut Draft) -> Result<(), BoxError>;

    /// Returns a codec that also sets the subject of each value, for a source whose values go to several
    /// subjects.
    ///
    /// ```
    /// use fanline_server::bridge::{Encode, Json};
    /// use serde::Serialize;
    ///
    /// #[derive(Serialize)]
    /// struct Tick { symbol: &'static str, price: f64 }
    ///
    /// let codec = Json.to(|tick: &Tick| format!("ticks.{}", tick.symbol));
    /// # let _ = codec;
    /// ```
    fn to<F>(self, subject: F) -> To<Self, F>
    where
        Self: Sized,
        F: FnMut(&T) -> String + Send + 'static,
    {
        To {
            codec: self,
            subject,
        }
    }
}

/// Decodes messages, for [`observe_as`](super::Bridge::observe_as).
pub trait Decode<T>: Send + Sync + 'static {
    /// Returns the value in a message.
    ///
    /// # Errors
    ///
    /// If this fails or panics, the message does not reach observers, and the error is reported by the
    /// bridge's [faults](super::Bridge::faults).
    fn decode(&self, message: &Message) -> Result<T, BoxError>;
}

/// A message while a codec writes it.
#[derive(Debug, Default)]
pub struct Draft {
    pub(super) subject: String,
    pub(super) reply: Option<String>,
    pub(super) headers: Headers,
    bytes: Vec<u8>,
    shared: Option<Bytes>,
}

impl Draft {
    /// Sets the subject of a value, for a source bound to a filter with wildcards. A source bound to one
    /// subject ignores the value's subject.
    pub fn set_subject(&mut self, subject: &str) {
        self.subject.clear();
        self.subject.push_str(subject);
    }

    /// Sets the reply subject.
    pub fn set_reply(&mut self, reply: &str) {
        self.reply = Some(reply.to_owned());
    }

    /// Returns the headers, which are sent if there is at least one.
    pub fn headers(&mut self) -> &mut Headers {
        &mut self.headers
    }

    /// Returns the payload, so that bytes can be appended.
    pub fn payload(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Sets an existing payload. Observers in this process share the bytes without a copy.
    pub fn share(&mut self, payload: Bytes) {
        self.shared = Some(payload);
    }

    /// Clears the draft without freeing its buffers.
    pub(super) fn clear(&mut self) {
        self.subject.clear();
        self.reply = None;
        if !self.headers.is_empty() {
            self.headers = Headers::new();
        }
        self.bytes.clear();
        self.shared = None;
    }

    /// Returns the payload.
    pub(super) fn content(&self) -> &[u8] {
        self.shared.as_deref().unwrap_or(&self.bytes)
    }

    /// Returns the payload as shared bytes. Bytes that the codec has written are moved, not copied.
    pub(super) fn share_content(&mut self) -> Bytes {
        let bytes = &mut self.bytes;
        let shared = self.shared.get_or_insert_with(|| {
            let next = Vec::with_capacity(bytes.len());
            Bytes::from(std::mem::replace(bytes, next))
        });
        shared.clone()
    }
}

/// A codec for payloads without conversion. [`Bytes`] and [`Message`]s are shared and never copied in the
/// process; strings and vectors are copied once. A [`Message`] is published with its reply subject and
/// headers, and with its own subject if the source is bound to a wildcard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Raw;

/// A codec for JSON, by serde.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Json;

/// A codec for MessagePack, by serde. Structs are maps with field names, as other languages expect.
#[cfg(feature = "msgpack")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessagePack;

/// A codec with a subject for each value; see [`Encode::to`].
#[derive(Clone, Copy, Debug)]
pub struct To<C, F> {
    codec: C,
    subject: F,
}

impl<T, C, F> Encode<T> for To<C, F>
where
    C: Encode<T>,
    F: FnMut(&T) -> String + Send + 'static,
{
    fn encode(&mut self, value: &T, draft: &mut Draft) -> Result<(), BoxError> {
        self.codec.encode(value, draft)?;
        draft.subject = (self.subject)(value);
        Ok(())
    }
}

impl Encode<Bytes> for Raw {
    fn encode(&mut self, value: &Bytes, draft: &mut Draft) -> Result<(), BoxError> {
        draft.share(value.clone());
        Ok(())
    }
}

impl Encode<Message> for Raw {
    fn encode(&mut self, value: &Message, draft: &mut Draft) -> Result<(), BoxError> {
        draft.set_subject(value.subject());
        draft.reply = value.reply().map(str::to_owned);
        if let Some(headers) = value.headers() {
            draft.headers = headers.clone();
        }
        draft.share(value.payload_bytes());
        Ok(())
    }
}

macro_rules! raw {
    ($($text:ty),*) => {
        $(
            impl Encode<$text> for Raw {
                fn encode(&mut self, value: &$text, draft: &mut Draft) -> Result<(), BoxError> {
                    draft.payload().extend_from_slice(value.as_ref());
                    Ok(())
                }
            }
        )*
    };
}

raw!(Vec<u8>, String, &'static str, &'static [u8]);

impl Decode<Message> for Raw {
    fn decode(&self, message: &Message) -> Result<Message, BoxError> {
        Ok(message.clone())
    }
}

impl Decode<Bytes> for Raw {
    fn decode(&self, message: &Message) -> Result<Bytes, BoxError> {
        Ok(message.payload_bytes())
    }
}

impl Decode<Vec<u8>> for Raw {
    fn decode(&self, message: &Message) -> Result<Vec<u8>, BoxError> {
        Ok(message.payload().to_vec())
    }
}

impl Decode<String> for Raw {
    fn decode(&self, message: &Message) -> Result<String, BoxError> {
        Ok(std::str::from_utf8(message.payload())?.to_owned())
    }
}

impl<T: Serialize> Encode<T> for Json {
    fn encode(&mut self, value: &T, draft: &mut Draft) -> Result<(), BoxError> {
        Ok(serde_json::to_writer(draft.payload(), value)?)
    }
}

impl<T: DeserializeOwned> Decode<T> for Json {
    fn decode(&self, message: &Message) -> Result<T, BoxError> {
        Ok(serde_json::from_slice(message.payload())?)
    }
}

#[cfg(feature = "msgpack")]
impl<T: Serialize> Encode<T> for MessagePack {
    fn encode(&mut self, value: &T, draft: &mut Draft) -> Result<(), BoxError> {
        Ok(rmp_serde::encode::write_named(draft.payload(), value)?)
    }
}

#[cfg(feature = "msgpack")]
impl<T: DeserializeOwned> Decode<T> for MessagePack {
    fn decode(&self, message: &Message) -> Result<T, BoxError> {
        Ok(rmp_serde::from_slice(message.payload())?)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn message(payload: &'static [u8]) -> Message {
        Message::in_process(Arc::from("a.b"), 3, None, Bytes::from_static(payload))
    }

    fn draft<T>(mut codec: impl Encode<T>, value: T) -> Draft {
        let mut draft = Draft::default();
        codec.encode(&value, &mut draft).expect("it can be encoded");
        draft
    }

    #[test]
    fn encoded_values_are_decoded_back() {
        let values = vec![("mug".to_owned(), 1.5), (String::new(), -0.0)];
        let encoded = draft(Json, values.clone()).content().to_vec();
        let decoded: Vec<(String, f64)> = Json
            .decode(&Message::in_process(
                Arc::from("a"),
                1,
                None,
                encoded.into(),
            ))
            .expect("JSON");
        assert_eq!(decoded, values);
        for text in ["", "é", "a\r\nb"] {
            assert_eq!(draft(Raw, text).content(), text.as_bytes());
            assert_eq!(draft(Raw, text.to_owned()).content(), text.as_bytes());
            let bytes: Bytes = Raw.decode(&message(b"xy")).expect("bytes");
            assert_eq!(bytes, "xy");
        }
    }

    #[test]
    fn invalid_payload_is_a_decode_error() {
        let text: Result<String, _> = Raw.decode(&message(b"\xff"));
        assert!(text.is_err());
        let number: Result<u32, _> = Json.decode(&message(b"{"));
        assert!(number.is_err());
    }

    #[test]
    fn bytes_are_shared() {
        let payload = Bytes::from(vec![7; 100]);
        let mut draft = draft(Raw, payload.clone());
        assert_eq!(draft.share_content().as_ptr(), payload.as_ptr());
        let mut written = Draft::default();
        written.payload().extend_from_slice(b"written");
        let at = written.content().as_ptr();
        assert_eq!(written.share_content().as_ptr(), at);
        assert_eq!(written.share_content(), "written");
    }

    #[test]
    fn raw_message_keeps_reply_and_headers() {
        let mut headers = Headers::new();
        headers.append("A", "1").expect("valid");
        let names = Arc::from("a.binbox");
        let whole = Message::in_process(names, 3, Some(headers), Bytes::from_static(b"x"));
        let draft = draft(Raw, whole);
        assert_eq!(draft.subject, "a.b");
        assert_eq!(draft.reply.as_deref(), Some("inbox"));
        assert_eq!(draft.headers.get("A"), Some("1"));
        assert_eq!(draft.content(), b"x");
    }

    #[cfg(feature = "msgpack")]
    #[test]
    fn structs_are_maps_in_messagepack() {
        #[derive(Serialize, serde::Deserialize, PartialEq, Debug)]
        struct Tick {
            price: u8,
        }
        let encoded = draft(MessagePack, Tick { price: 7 }).content().to_vec();
        assert_eq!(encoded, b"\x81\xa5price\x07");
        let names = Arc::from("a");
        let message = Message::in_process(names, 1, None, encoded.into());
        let decoded: Tick = MessagePack.decode(&message).expect("MessagePack");
        assert_eq!(decoded, Tick { price: 7 });
    }
}
