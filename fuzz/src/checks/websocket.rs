//! The first byte chooses the meaning of the rest. From 0 to 127, the rest is frames, cut into chunks of that
//! many bytes plus one. If the byte is 254, the rest is a server's response to an upgrade request. Otherwise
//! it is an upgrade request.

use fanline_engine::codec::websocket::{
    Event, Inflater, Unframer, UpgradeRequest, UpgradeResponse, UpgradeResult, UpgradeRules, Wrong,
    upgrade,
};

/// Maximum number of bytes of a message.
const MESSAGE_BYTES_MAX: usize = 1000;

/// Checks that frames decode to the same result wherever they are cut, that ranges are inside the input, and
/// that the result of an upgrade request does not change when more bytes follow it.
pub fn check(data: &[u8]) {
    let Some((&first, rest)) = data.split_first() else {
        return;
    };
    match first {
        254 => return check_response(rest),
        128.. => return check_upgrade(rest),
        _ => {}
    }
    let whole = read(rest, rest.len().max(1));
    assert_eq!(read(rest, usize::from(first) + 1), whole);
}

/// The error of a compressed message that is damaged or too large. The cuts determine which of the two errors
/// is found first.
#[derive(Debug, PartialEq)]
struct NotInflated;

/// The data, the control frames in order, and the error at the end if there is one.
type Outcome = (Vec<u8>, Vec<Event>, Option<Wrong>);

fn read(bytes: &[u8], step: usize) -> Result<Outcome, NotInflated> {
    let mut unframer = Unframer::new(true, true, MESSAGE_BYTES_MAX);
    let mut inflater = Inflater::new(MESSAGE_BYTES_MAX);
    let (mut data, mut control) = (Vec::new(), Vec::new());
    for piece in bytes.chunks(step) {
        let mut piece = piece.to_vec();
        let mut at = 0;
        while at < piece.len() {
            let (taken, event) = match unframer.next(&mut piece[at..]) {
                Ok(next) => next,
                Err(wrong) => return Ok((data, control, Some(wrong))),
            };
            assert!(taken > 0 && taken <= piece.len() - at);
            match event {
                Event::Nothing => {}
                Event::Data {
                    range,
                    is_compressed,
                    ends_message,
                } => {
                    let part = &piece[at..][range];
                    let outcome = match is_compressed {
                        false => {
                            data.extend_from_slice(part);
                            Ok(())
                        }
                        true => inflate(&mut inflater, part, ends_message, &mut data),
                    };
                    outcome.map_err(|_| NotInflated)?;
                }
                event => control.push(event),
            }
            at += taken;
        }
    }
    Ok((data, control, None))
}

fn inflate(
    inflater: &mut Inflater,
    mut part: &[u8],
    ends_message: bool,
    data: &mut Vec<u8>,
) -> Result<(), Wrong> {
    let mut room = [0; 64];
    loop {
        let inflated = inflater.feed(part, &mut room)?;
        data.extend_from_slice(&room[..inflated.written]);
        part = &part[inflated.taken..];
        if part.is_empty() && inflated.written < room.len() {
            break;
        }
    }
    if !ends_message {
        return Ok(());
    }
    while let Some(written) = inflater.finish(&mut room)? {
        data.extend_from_slice(&room[..written]);
    }
    Ok(())
}

fn check_upgrade(bytes: &[u8]) {
    let rules = UpgradeRules {
        same_origin: true,
        compression: true,
        ..UpgradeRules::default()
    };
    match upgrade(bytes, &rules) {
        UpgradeResult::Granted(granted) => {
            assert!(granted.request_bytes <= bytes.len());
            assert!(granted.response.ends_with("\r\n\r\n"));
            let more = [bytes, b"\x82\x00"].concat();
            assert!(
                matches!(upgrade(&more, &rules), UpgradeResult::Granted(again)
                if again.response == granted.response)
            );
        }
        // The digit 5 is for the status "HTTP Version Not Supported".
        UpgradeResult::Refused(refusal) => {
            let response = refusal.response();
            assert!(
                ["HTTP/1.1 4", "HTTP/1.1 5"]
                    .iter()
                    .any(|start| response.starts_with(start)),
                "{response}"
            );
        }
        UpgradeResult::Partial => {}
    }
}

/// Checks that the result of a response does not change when more bytes follow it.
fn check_response(bytes: &[u8]) {
    let request = UpgradeRequest {
        host: "hub.example:443".into(),
        path: "/leafnode".into(),
        compression: true,
        no_masking: true,
        key: "AQIDBAUGBwgJCgsMDQ4PEA==".into(),
    };
    if let UpgradeResponse::Granted(granted) = request.parse_response(bytes) {
        assert!(granted.request_bytes <= bytes.len());
        let more = [bytes, b"\x82\x00"].concat();
        assert!(
            matches!(request.parse_response(&more), UpgradeResponse::Granted(again)
            if again.request_bytes == granted.request_bytes)
        );
    }
}
