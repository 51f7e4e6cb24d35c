//! Connection close log.

use std::time::Duration;

use fanline_engine::auth::ConnectionKind;
use fanline_engine::{Backlog, CloseReason, ConnectionStatus, Ended, Limits};
use tracing::{debug, info, warn};

/// Logs a dropped connection and the reason. For a slow consumer, the line contains the client program and
/// the subject of its backlog, because an operator needs both.
pub(super) fn log(name: &str, ended: &Ended, limits: &Limits, now: Duration) {
    let Ended { status, reason, .. } = ended;
    let kind = match (&ended.route, &ended.leaf) {
        _ if ended.gateway.is_some() => ConnectionKind::Gateway,
        (Some(_), _) => ConnectionKind::Route,
        (None, Some(_)) => ConnectionKind::Leafnode,
        (None, None) => ConnectionKind::Standard,
    };
    let remote = |peer: &str| match peer {
        "" => String::new(),
        peer => format!(" - Remote: {peer}"),
    };
    let is_leaf = kind != ConnectionKind::Standard;
    let exceeded = match reason {
        CloseReason::SlowConsumerPendingBytes => {
            let most = limits.pending_bytes_max_of(is_leaf);
            format!("MaxPending of {most} Exceeded")
        }
        CloseReason::SlowConsumerWriteDeadline => {
            let deadline = limits.write_deadline_of(kind);
            format!("WriteDeadline of {deadline:?} exceeded")
        }
        _ if ended.route.is_some() => {
            let peer = ended.route.as_ref().map_or("", |route| &route.peer_name);
            let remote = remote(peer);
            info!("{name} - Router connection closed: {reason}{remote}");
            return;
        }
        _ if ended.gateway.is_some() => {
            let peer = ended.gateway.as_ref().map_or("", |own| &own.peer_name);
            let remote = remote(peer);
            info!("{name} - Gateway connection closed: {reason}{remote}");
            return;
        }
        _ if is_leaf => {
            info!("{name} - Leafnode connection closed: {reason}");
            return;
        }
        _ => {
            debug!("{name} - Client connection closed: {reason}");
            return;
        }
    };
    let backlog = status.backlog.as_deref().cloned().unwrap_or_default();
    let waited = backlog.since.map(|since| now.saturating_sub(since));
    warn!(
        cid = status.cid,
        ip = status.ip,
        port = status.port,
        name = status.name,
        user = status.user,
        reason = %reason,
        subject = backlog.subject,
        sid = backlog.sid,
        pending_bytes = backlog.bytes,
        waited_seconds = waited.map(|waited| waited.as_secs_f64()),
        "{name}{} - Slow Consumer Detected: {exceeded}; {}",
        client_text(status),
        left_waiting(&backlog, waited),
    );
    debug!("{name} - Client connection closed: {reason}");
}

/// Returns ` - "v1.2:go:name" - "$G/user"`, without the parts that are unknown.
fn client_text(status: &ConnectionStatus) -> String {
    let version = match status.version.as_str() {
        "" => String::new(),
        version => format!("v{version}"),
    };
    let parts = [version, status.lang.clone(), status.name.clone()];
    let known: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let mut text = String::new();
    if !known.is_empty() {
        text += &format!(" - {:?}", known.join(":"));
    }
    if !status.user.is_empty() {
        text += &format!(" - {:?}", status.user);
    }
    text
}

fn left_waiting(backlog: &Backlog, waited: Option<Duration>) -> String {
    let mut text = format!("{} bytes waiting", backlog.bytes);
    if let Some(waited) = waited {
        text += &format!(" since {:.1}s ago", waited.as_secs_f64());
    }
    if let Some(sid) = &backlog.sid {
        let subject = backlog.subject.as_deref().unwrap_or("?");
        text += &format!(", most of them for {subject:?} (sid {sid})");
    }
    text
}
