//! The dashboard: a page at `/`, its files, and its API.
//!
//! The page is a client like others. It signs in with the credentials of a WebSocket client. It receives
//! figures over HTTP (`api.rs`), and messages over a WebSocket. `visitor.rs` decides which data it may
//! access. `docs/decisions/0023-the-dashboard-signs-in-once.md` gives the reasons.

mod api;
mod assets;
mod overview;
mod sessions;
mod visitor;

use std::cell::RefCell;
use std::net::SocketAddr;

use fanline_engine::codec::websocket::UpgradeRules;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{HeaderValue, LOCATION};
use hyper::{Method, Request, Response, StatusCode};
use tokio::sync::Semaphore;

use super::query::Query;
use super::{Monitor, websocket};
use crate::options::Dashboard;
use sessions::Sessions;

/// Largest number of concurrent checks of credentials. Further sign-ins are refused until a check ends.
const SIGN_INS_MAX: usize = 4;

/// State that all open pages share.
pub(super) struct Shared {
    sessions: RefCell<Sessions>,
    sign_ins: Semaphore,
}

impl Default for Shared {
    fn default() -> Self {
        Shared {
            sessions: RefCell::default(),
            sign_ins: Semaphore::new(SIGN_INS_MAX),
        }
    }
}

/// Responds to dashboard requests. Returns `None` for other requests.
pub(super) async fn answer(
    monitor: &Monitor,
    request: &mut Request<Incoming>,
    address: SocketAddr,
) -> Option<Response<Full<Bytes>>> {
    if monitor.shared.options().dashboard == Dashboard::Off {
        return None;
    }
    let path = request.uri().path().to_owned();
    if path == "/" {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return None;
        }
        monitor.count("/");
        return assets::answer("", request.headers());
    }
    let rest = path.strip_prefix("/dashboard")?;
    Some(match rest.strip_prefix('/') {
        // The page is only at the root, because its references are relative.
        None if rest.is_empty() => moved("./"),
        None => return None,
        Some("") => moved("../"),
        Some("ws") => open_websocket(monitor, request, address),
        Some(rest) => match rest.strip_prefix("api/") {
            Some(name) => api::answer(monitor, name, request, address).await,
            None => assets::answer(rest, request.headers())?,
        },
    })
}

fn moved(to: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
    let headers = response.headers_mut();
    headers.insert(LOCATION, HeaderValue::from_static(to));
    response
}

/// Opens a WebSocket if the request has a ticket. Only the dashboard's own page can get a ticket, so the
/// origin is not checked.
fn open_websocket(
    monitor: &Monitor,
    request: &mut Request<Incoming>,
    address: SocketAddr,
) -> Response<Full<Bytes>> {
    let query = Query::parse(request.uri().query().unwrap_or_default());
    let mut sessions = monitor.dashboard.sessions.borrow_mut();
    let Some(grant) = sessions.redeem(query.text("ticket"), monitor.now()) else {
        return api::refused(
            StatusCode::UNAUTHORIZED,
            "a ticket is needed, and lasts for one use",
        );
    };
    let options = monitor.shared.options();
    let rules = UpgradeRules {
        is_tls: options.monitoring_tls,
        ..UpgradeRules::default()
    };
    let identity = Some(visitor::identity_of(grant, options.dashboard));
    let upgraded = websocket::hand_over(&monitor.shared, request, address, &rules, identity);
    let no_upgrade = || {
        api::refused(
            StatusCode::BAD_REQUEST,
            "an upgrade to WebSocket was expected",
        )
    };
    upgraded.unwrap_or_else(no_upgrade)
}
