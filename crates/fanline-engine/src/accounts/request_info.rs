//! The requester's identity, which exporters receive.

use serde::Serialize;
use serde_json::Value;

use super::Broker;
use crate::auth::AccountId;
use crate::exchange::Kind;
use crate::exchange::message::Origin;
use crate::headers::Block;

/// Header that contains the requester's identity for the responder.
const REQUEST_INFO: &str = "Nats-Request-Info";

impl<K: Kind> Broker<K> {
    /// Returns the requester as JSON; `None` if the requester is no session of this shard.
    pub(super) fn request_info(
        &self,
        account: AccountId,
        is_detailed: bool,
        origin: Origin<'_>,
    ) -> Option<String> {
        let session = self.exchange.sessions.get(origin.session? as usize)?;
        let account = self.exchange.access.account(account)?;
        let mut info = RequestInfo {
            acc: &account.name,
            rtt: session.rtt.map(|rtt| rtt.as_nanos()),
            ..RequestInfo::default()
        };
        if is_detailed {
            info = RequestInfo {
                host: Some(&session.peer.ip),
                id: Some(session.cid),
                user: Some(session.user()),
                name: Some(&session.options.name),
                lang: Some(&session.options.lang),
                ver: Some(&session.options.version),
                server: Some(&self.exchange.info.server_name),
                cluster: self.exchange.info.cluster.as_deref(),
                kind: Some("Client"),
                client_type: Some("nats"),
                ..info
            };
        }
        serde_json::to_string(&info).ok()
    }

    /// Adds data that only the system account receives: the requester's permissions, their expiry, and the
    /// name in the requester's token.
    pub(super) fn with_rights(&self, info: &str, origin: Origin<'_>) -> Option<String> {
        let session = self.exchange.sessions.get(origin.session? as usize)?;
        let mut info: Value = serde_json::from_str(info).ok()?;
        if let Some(tag) = session.grant.tag() {
            info["user_name"] = tag.into();
        }
        if let Some(rights) = &session.grant.rights {
            info["permissions"] = rights.shown();
        }
        if let Some(at) = session.expires_at {
            let left = at.saturating_sub(self.exchange.outputs.now).as_nanos();
            info["expires"] = u64::try_from(left).unwrap_or(u64::MAX).into();
        }
        Some(info.to_string())
    }
}

/// The requester, with nats-server's field names.
#[derive(Default, Serialize)]
struct RequestInfo<'a> {
    #[serde(skip_serializing_if = "is_empty")]
    host: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    acc: &'a str,
    #[serde(skip_serializing_if = "is_empty")]
    user: Option<&'a str>,
    #[serde(skip_serializing_if = "is_empty")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "is_empty")]
    lang: Option<&'a str>,
    #[serde(skip_serializing_if = "is_empty")]
    ver: Option<&'a str>,
    /// Round trip time in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    rtt: Option<u128>,
    #[serde(skip_serializing_if = "is_empty")]
    server: Option<&'a str>,
    /// JetStream places new streams in this cluster.
    #[serde(skip_serializing_if = "is_empty")]
    cluster: Option<&'a str>,
    #[serde(skip_serializing_if = "is_empty")]
    kind: Option<&'a str>,
    #[serde(skip_serializing_if = "is_empty")]
    client_type: Option<&'a str>,
}

#[allow(
    clippy::ref_option,
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks for a reference"
)]
fn is_empty(text: &Option<&str>) -> bool {
    text.is_none_or(str::is_empty)
}

/// Returns the headers with the requester's identity. Removes an identity that the requester itself sent.
pub(super) fn with_info(headers: &[u8], info: Option<&str>) -> Vec<u8> {
    let Some(info) = info else {
        return headers.to_vec();
    };
    let is_other = |name: &[u8]| !name.eq_ignore_ascii_case(REQUEST_INFO.as_bytes());
    let mut made = Vec::with_capacity(headers.len() + REQUEST_INFO.len() + info.len() + 14);
    let block = Block::filtered(&mut made, headers, is_other);
    block.add(REQUEST_INFO, info.as_bytes()).end();
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identity_header_is_set_once() {
        let check = |headers: &str, expected: &str| {
            let made = with_info(headers.as_bytes(), Some("{}"));
            assert_eq!(String::from_utf8(made).unwrap(), expected);
        };
        check("", "NATS/1.0\r\nNats-Request-Info: {}\r\n\r\n");
        check(
            "NATS/1.0\r\nA: b\r\nnats-request-info: me\r\nC: d\r\n\r\n",
            "NATS/1.0\r\nA: b\r\nC: d\r\nNats-Request-Info: {}\r\n\r\n",
        );
        assert_eq!(with_info(b"", None), b"");
    }
}
