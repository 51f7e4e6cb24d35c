//! What the system account is told by itself: who comes and goes.

use std::time::Duration;

use fanline_engine::{CloseReason, ConnectionStatus};
use serde_json::{Value, json};

use super::super::Monitor;
use crate::shell::Closed;

/// What happened to a connection.
#[derive(Debug)]
pub(crate) enum ConnectionEvent {
    /// It was let in.
    Connected(Box<ConnectionStatus>),
    /// It is gone.
    Gone(Box<Closed>),
}

impl ConnectionEvent {
    pub(super) fn status(&self) -> &ConnectionStatus {
        match self {
            ConnectionEvent::Connected(status) => status,
            ConnectionEvent::Gone(closed) => &closed.status,
        }
    }

    /// Whether it was never let in.
    pub(super) fn is_refusal(&self) -> bool {
        matches!(
            self,
            ConnectionEvent::Gone(closed) if matches!(
                closed.reason,
                CloseReason::AuthenticationFailure | CloseReason::AuthenticationTimeout
            )
        )
    }

    /// The word in the event's type.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            ConnectionEvent::Connected(_) => "client_connect",
            ConnectionEvent::Gone(_) => "client_disconnect",
        }
    }

    /// Adds what the event is about.
    pub(super) fn describe(&self, monitor: &Monitor, event: &mut Value) {
        let status = self.status();
        event["client"] = client(monitor, status, self.stopped_at());
        if let ConnectionEvent::Gone(closed) = self {
            let flow = |msgs: u64, bytes: u64| json!({ "msgs": msgs, "bytes": bytes });
            event["sent"] = flow(status.out_msgs, status.out_bytes);
            event["received"] = flow(status.in_msgs, status.in_bytes);
            event["reason"] = closed.reason.to_string().into();
        }
    }

    fn stopped_at(&self) -> Option<Duration> {
        match self {
            ConnectionEvent::Connected(_) => None,
            ConnectionEvent::Gone(closed) => Some(closed.stopped_at),
        }
    }
}

fn client(monitor: &Monitor, status: &ConnectionStatus, stop: Option<Duration>) -> Value {
    let account = monitor.account_name(status.account);
    let mut client = json!({
        "start": monitor.date(status.opened_at),
        "host": status.ip,
        "id": status.cid,
        "acc": account,
        "name_tag": account,
        "kind": "Client",
        "client_type": "nats",
    });
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
    if let Some(stop) = stop {
        client["stop"] = monitor.date(stop).into();
    }
    client
}
