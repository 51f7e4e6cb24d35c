//! Events of connections.

use fanline_engine::ConnectionStatus;
use serde_json::{Value, json};

use super::super::{Monitor, kind_name};
use crate::ipc::ConnectionEvent;

impl ConnectionEvent {
    pub(super) fn status(&self) -> &ConnectionStatus {
        match self {
            ConnectionEvent::Connected(status) | ConnectionEvent::Linked(status) => status,
            ConnectionEvent::Closed(closed) | ConnectionEvent::Refused(closed) => &closed.status,
        }
    }

    /// Returns the last word of the event's type.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            ConnectionEvent::Connected(_) | ConnectionEvent::Linked(_) => "client_connect",
            ConnectionEvent::Closed(_) | ConnectionEvent::Refused(_) => "client_disconnect",
        }
    }

    /// Adds the connection to an event.
    pub(super) fn describe(&self, monitor: &Monitor, event: &mut Value) {
        let status = self.status();
        event["client"] = client(monitor, status);
        let closed = match self {
            ConnectionEvent::Connected(_) | ConnectionEvent::Linked(_) => None,
            ConnectionEvent::Closed(closed) | ConnectionEvent::Refused(closed) => Some(closed),
        };
        if let Some(closed) = closed {
            event["client"]["stop"] = monitor.date(closed.stopped_at).into();
            let flow = |msgs: u64, bytes: u64| json!({ "msgs": msgs, "bytes": bytes });
            event["sent"] = flow(status.out_msgs, status.out_bytes);
            event["received"] = flow(status.in_msgs, status.in_bytes);
            event["reason"] = closed.reason.to_string().into();
        }
    }
}

fn client(monitor: &Monitor, status: &ConnectionStatus) -> Value {
    let account = monitor.account_name(status.account);
    let mut client = json!({
        "start": monitor.date(status.opened_at),
        "host": status.ip,
        "id": status.cid,
        "acc": account,
        "name_tag": monitor.account_tag(status.account),
        "kind": kind_name(status.kind),
    });
    if !status.kind.is_leaf() {
        client["client_type"] = "nats".into();
    }
    for (name, value) in [
        ("user", &status.user),
        ("name", &status.name),
        ("lang", &status.lang),
        ("ver", &status.version),
    ] {
        if !value.is_empty() {
            client[name] = value.as_str().into();
        }
    }
    if let Some(rtt) = status.rtt {
        client["rtt"] = u64::try_from(rtt.as_nanos()).unwrap_or(u64::MAX).into();
    }
    client
}
