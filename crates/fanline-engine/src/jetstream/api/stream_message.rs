//! `STREAM.MSG.GET` and `STREAM.MSG.DELETE`: read and delete single records.

use serde::{Deserialize, Serialize};

use super::{Answer, Call, json, success};
use crate::jetstream::stream::{DirectGet, Selection, Stream};
use crate::jetstream::{ApiError, Storage, Timestamp};
use crate::store::StoreError;

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct DeleteRequest {
    seq: u64,
    no_erase: bool,
}

#[derive(Serialize)]
struct GetReply {
    message: StoredMessage,
}

#[derive(Serialize)]
struct StoredMessage {
    subject: String,
    seq: u64,
    #[serde(skip_serializing_if = "String::is_empty")]
    hdrs: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    data: String,
    time: Timestamp,
}

pub(super) fn get(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    if call.message.payload.is_empty() {
        return Err(ApiError::BAD_REQUEST);
    }
    let request: DirectGet = call.body()?;
    let selection = selection(&request).ok_or(ApiError::BAD_REQUEST)?;
    let key = call.stream_key()?;
    let stream = call.stream(key)?;
    let record = match stream.message(selection) {
        Ok(Some(record)) => record,
        Ok(None) | Err(StoreError::Damaged(_)) => return Err(ApiError::NO_MESSAGE_FOUND),
        Err(error) => return Err(ApiError::stream_store_failed(error)),
    };
    let hdrs = match request.no_hdr {
        true => String::new(),
        false => base64(record.headers),
    };
    json(&GetReply {
        message: StoredMessage {
            subject: String::from_utf8_lossy(record.subject).into_owned(),
            seq: record.sequence,
            hdrs,
            data: base64(record.payload),
            time: Timestamp::from_unix_nanos(record.unix_nanos),
        },
    })
}

/// Returns the way in which the request selects its record. Returns `None` if the request selects no record,
/// selects several records, or mixes several ways.
fn selection(request: &DirectGet) -> Option<Selection<'_>> {
    let DirectGet {
        seq,
        last_by_subj: last,
        next_by_subj: next,
        start_time,
        ..
    } = request;
    let of_many = request.batch != 0
        || request.max_bytes != 0
        || !request.multi_last.is_empty()
        || request.up_to_seq != 0
        || request.up_to_time.is_some();
    if of_many {
        return None;
    }
    match (*seq, last.as_bytes(), next.as_bytes(), start_time) {
        (0, b"", b"", None) => None,
        (seq, b"", b"", None) => Some(Selection::Sequence(seq)),
        (0, last, b"", None) => Some(Selection::Last(last)),
        (seq, b"", next, None) => Some(Selection::Next(next, seq)),
        (0, b"", next, Some(time)) => Some(Selection::NextAt(next, time.unix_nanos())),
        _ => None,
    }
}

pub(super) fn delete(call: &mut Call<'_>) -> Result<Answer, ApiError> {
    if call.has_empty_body() {
        return Err(ApiError::BAD_REQUEST);
    }
    let request: DeleteRequest = call.body()?;
    let key = call.stream_key()?;
    let now = call.now;
    let stream = call
        .js
        .streams
        .touch(key)
        .ok_or(ApiError::STREAM_NOT_FOUND)?;
    if matches!(stream.store().read(request.seq), Ok(None)) {
        return Err(delete_error(stream, request.seq));
    }
    stream.delete_message(request.seq, !request.no_erase, now)?;
    call.changes = Some(key);
    Ok(success())
}

/// Returns the error for a record that cannot be deleted. For streams on disk, nats-server distinguishes a
/// deleted sequence from one outside the stream.
fn delete_error(stream: &mut Stream, sequence: u64) -> ApiError {
    let is_on_disk = stream.config().storage == Storage::File;
    let store = stream.store();
    if is_on_disk && sequence > store.last_sequence() {
        ApiError::stream_msg_delete_failed("stream store EOF")
    } else if is_on_disk && sequence < store.first_sequence() {
        ApiError::stream_msg_delete_failed("no message found")
    } else {
        ApiError::sequence_not_found(sequence)
    }
}

/// Encodes bytes as base64 with padding, like Go in JSON.
fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |nth: usize| u32::from(chunk.get(nth).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for nth in 0..4 {
            let digit = usize::try_from(bits >> (18 - 6 * nth) & 63).unwrap_or(0);
            text.push(match nth <= chunk.len() {
                true => char::from(BASE64[digit]),
                false => '=',
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn base64() {
        for (plain, coded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("hello0", "aGVsbG8w"),
        ] {
            assert_eq!(super::base64(plain.as_bytes()), coded);
        }
    }
}
