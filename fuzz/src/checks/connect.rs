//! The input is the JSON that follows `CONNECT `, up to a line feed.

use std::sync::Arc;
use std::time::Duration;

use fanline_engine::{Auth, Chunk, CloseReason, Limits, Peer, ServerInfo, Shard, ShardConfig};
use serde_json::Value;

const TEXTS: [&str; 11] = [
    "user",
    "pass",
    "auth_token",
    "name",
    "lang",
    "version",
    "account",
    "jwt",
    "nkey",
    "sig",
    "proxy_sig",
];
const FLAGS: [&str; 7] = [
    "verbose",
    "pedantic",
    "echo",
    "headers",
    "no_responders",
    "tls_required",
    "new_account",
];

/// Checks that a CONNECT is either accepted or refused, and that the connection then has the name from the
/// CONNECT.
pub fn check(data: &[u8]) {
    let json = data.split(|b| *b == b'\n').next().unwrap_or_default();
    let limits = Limits::default();
    if json.len() >= limits.control_line_bytes_max {
        return;
    }
    let config = ShardConfig {
        limits,
        auth: Auth::Open,
        shards: 1,
        traces: true,
        leafs: None,
        routes: None,
        gateways: None,
    };
    let mut shard = Shard::new(0, Arc::new(config), ServerInfo::default(), 1);
    let id = shard.open(1, Peer::default(), false, Duration::ZERO);
    let sent = shard.outbox(id).pending_bytes();
    shard.outbox(id).advance(sent);
    let input = Chunk::new([b"CONNECT ", json, b"\r\nPING\r\n"].concat().into());
    let receipt = shard.receive(id, &input, 0..input.len(), Duration::ZERO);
    assert_eq!(receipt.consumed, input.len());
    let answer = shard.outbox(id).plain().unwrap_or_default().to_vec();
    let status = shard.connection(id).expect("it has not been removed");
    let ended = shard.next_ended();
    assert_eq!(answer.windows(4).any(|w| w == b"PONG"), ended.is_none());
    // The server replaces invalid UTF-8, and ignores fields that are `null`.
    let is_refused = match serde_json::from_str::<Value>(&String::from_utf8_lossy(json)) {
        Ok(Value::Object(fields)) => {
            let mut names = fields.iter().filter(|(key, _)| is_key(key, "name"));
            if let (Some((_, Value::String(name))), None) = (names.next(), names.next())
                && is_well_typed(&fields)
            {
                assert_eq!(*name, status.name);
            }
            !is_well_typed(&fields)
        }
        Ok(Value::Null) => false,
        _ => true,
    };
    let refusal = Some((id, CloseReason::ProtocolViolation));
    assert_eq!(ended == refusal, is_refused);
    check_traces(&mut shard, json);
}

fn is_key(given: &str, key: &str) -> bool {
    given.eq_ignore_ascii_case(key)
}

fn is_well_typed(fields: &serde_json::Map<String, Value>) -> bool {
    fields.iter().all(|(given, value)| {
        let is_one_of = |keys: &[&str]| keys.iter().any(|key| is_key(given, key));
        value.is_null()
            || if is_one_of(&TEXTS) {
                value.is_string()
            } else if is_one_of(&FLAGS) {
                value.is_boolean()
            } else {
                !is_key(given, "protocol") || value.is_i64()
            }
    })
}

/// Checks that a password never reaches a trace. The password is a text that occurs nowhere else in the
/// input.
fn check_traces(shard: &mut Shard, json: &[u8]) {
    const SECRET: &str = "xyzzy";
    let Ok(Value::Object(fields)) = serde_json::from_slice::<Value>(json) else {
        return;
    };
    let holds_secret = |(_, value): &(&String, &Value)| value.to_string().contains(SECRET);
    let mut holders = fields.iter().filter(holds_secret).map(|(key, _)| key);
    if holders.next().is_some_and(|key| key == "pass") && holders.next().is_none() {
        let is_traced = shard
            .take_traces()
            .iter()
            .any(|(_, line)| line.contains(SECRET));
        assert!(!is_traced || fields.keys().any(|key| key.contains(SECRET)));
    }
}
