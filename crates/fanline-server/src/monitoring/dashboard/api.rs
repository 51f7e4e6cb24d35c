//! The dashboard's HTTP API.
//!
//! Each request has a header that a page of another origin cannot send without the server's permission, which
//! is never granted. A signed-in page sends its session in `Authorization`. There is no cookie, because a
//! browser would also send it for other pages.

use std::net::SocketAddr;
use std::time::Duration;

use fanline_engine::auth::{Credentials, Grant};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::timeout;
use tracing::error;

use super::super::answer::{Answer, Refusal};
use super::super::query::Query;
use super::super::{Endpoint, Monitor, collect};
use super::overview;
use super::visitor::{self, Visitor};
use crate::ipc::Command;
use crate::options::Dashboard;

/// The header that identifies the dashboard's own page.
const PAGE_HEADER: &str = "fanline-dashboard";
/// Largest size of credentials in bytes. Longer credentials are refused.
const BODY_BYTES_MAX: usize = 16 * 1024;
/// Time limit of the request's body.
const BODY_TIME_MAX: Duration = Duration::from_secs(10);
/// Delay after wrong credentials, to slow down guessing.
const WRONG_TIME: Duration = Duration::from_secs(1);

/// The error for a page that was opened from another machine, or by a host name that may belong to another
/// site.
const NOT_TRUSTED: &str = "the server requires no credentials, so only this machine may see messages and \
    close connections: open the page by IP address or as localhost";

type Reply = Response<Full<Bytes>>;

/// Responds to requests below `/dashboard/api/`.
pub(super) async fn answer(
    monitor: &Monitor,
    name: &str,
    request: &mut Request<Incoming>,
    address: SocketAddr,
) -> Reply {
    if !request.headers().contains_key(PAGE_HEADER) {
        return refused(StatusCode::FORBIDDEN, "this is for the dashboard's page");
    }
    match (request.method(), name) {
        (&Method::POST, "session") => return sign_in(monitor, request, address).await,
        (&Method::POST, "nonce") => return nonce(monitor),
        _ => {}
    }
    let Some(visitor) = visitor(monitor, request.headers(), address).await else {
        if name == "session" && *request.method() == Method::GET {
            // This is not an error. The response tells the page that it must request credentials.
            let ways = visitor::auth_methods(&monitor.shared.access());
            let needs = json!({ "needs_credentials": true, "ways": ways });
            return reply(StatusCode::OK, &needs);
        }
        return refused(StatusCode::UNAUTHORIZED, "credentials are needed");
    };
    let query = Query::parse(request.uri().query().unwrap_or_default());
    match (request.method(), name) {
        (&Method::GET, "session") => identity(monitor, &visitor),
        (&Method::DELETE, "session") => sign_out(monitor, request.headers()),
        (&Method::POST, "ticket") => ticket(monitor, visitor, request.headers(), address),
        (&Method::POST, "kick") => {
            match visitor.is_trusted(&monitor.shared, address, request.headers()) {
                true => kick(monitor, &visitor, &query).await,
                false => refused(StatusCode::FORBIDDEN, NOT_TRUSTED),
            }
        }
        (&Method::GET, "overview") => match overview::answer(monitor, &visitor).await {
            Ok(overview) => reply(StatusCode::OK, &overview),
            Err(refusal) => reply_of(refusal.into()),
        },
        (&Method::GET, name) => page(monitor, &visitor, name, query).await,
        _ => refused(StatusCode::METHOD_NOT_ALLOWED, "not by this method"),
    }
}

/// Returns the user of the session, or without a session the user of clients without credentials.
async fn visitor(monitor: &Monitor, headers: &HeaderMap, address: SocketAddr) -> Option<Visitor> {
    let access = monitor.shared.access();
    let grant = match session(headers) {
        Some(session) => {
            let mut sessions = monitor.dashboard.sessions.borrow_mut();
            sessions.grant(session, &access, monitor.now())
        }
        None => None,
    };
    let grant = match grant {
        Some(grant) => Some(grant),
        None => visitor::admit(&monitor.shared, &Credentials::default(), address, "").await,
    };
    grant.map(|grant| Visitor::new(&access, grant))
}

fn session(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    value.strip_prefix("Bearer ")
}

/// Credentials from the sign-in form. For an nkey, they contain the page's signature instead of the key.
#[derive(Default, Deserialize)]
#[serde(default)]
struct SignInForm {
    user: String,
    password: String,
    token: String,
    nkey: String,
    jwt: String,
    nonce: String,
    sig: String,
}

impl SignInForm {
    /// Returns the part of the credentials that may be logged.
    fn login_name(&self) -> String {
        match (self.user.as_str(), self.nkey.as_str()) {
            ("", "") => "Token \"[REDACTED]\"".into(),
            ("", nkey) => format!("Nkey {nkey:?}"),
            (user, _) => format!("User {user:?}"),
        }
    }
}

async fn sign_in(monitor: &Monitor, request: &mut Request<Incoming>, address: SocketAddr) -> Reply {
    let Ok(_permit) = monitor.dashboard.sign_ins.try_acquire() else {
        let text = "others are signing in just now; try again";
        return refused(StatusCode::TOO_MANY_REQUESTS, text);
    };
    let body = Limited::new(request.body_mut(), BODY_BYTES_MAX).collect();
    let body = timeout(BODY_TIME_MAX, body).await;
    let form = body.ok().and_then(Result::ok).map(|body| body.to_bytes());
    let form = form.and_then(|body| serde_json::from_slice::<SignInForm>(&body).ok());
    let Some(form) = form else {
        return refused(StatusCode::BAD_REQUEST, "credentials are expected as JSON");
    };
    let credentials = Credentials {
        user: &form.user,
        pass: &form.password,
        auth_token: &form.token,
        nkey: &form.nkey,
        jwt: &form.jwt,
        sig: &form.sig,
        ..Credentials::default()
    };
    let is_known = {
        let mut sessions = monitor.dashboard.sessions.borrow_mut();
        sessions.take_nonce(&form.nonce, monitor.now())
    };
    let nonce = if is_known { &*form.nonce } else { "" };
    match visitor::admit(&monitor.shared, &credentials, address, nonce).await {
        Some(grant) => begin_session(monitor, grant),
        None => {
            error!(
                "{address} - Dashboard: authentication error - {}",
                form.login_name()
            );
            tokio::time::sleep(WRONG_TIME).await;
            refused(StatusCode::UNAUTHORIZED, "these credentials are not known")
        }
    }
}

/// Returns a nonce. The page signs the nonce with the user's key, which never leaves the page.
fn nonce(monitor: &Monitor) -> Reply {
    let mut sessions = monitor.dashboard.sessions.borrow_mut();
    match sessions.nonce(monitor.now()) {
        Some(nonce) => reply(StatusCode::OK, &json!({ "nonce": nonce })),
        None => refused(StatusCode::SERVICE_UNAVAILABLE, "there is no randomness"),
    }
}

fn begin_session(monitor: &Monitor, grant: Grant) -> Reply {
    let mut sessions = monitor.dashboard.sessions.borrow_mut();
    match sessions.sign_in(grant, monitor.now()) {
        Some(session) => reply(StatusCode::OK, &json!({ "session": session })),
        None => refused(StatusCode::SERVICE_UNAVAILABLE, "there is no randomness"),
    }
}

fn sign_out(monitor: &Monitor, headers: &HeaderMap) -> Reply {
    if let Some(session) = session(headers) {
        monitor.dashboard.sessions.borrow_mut().sign_out(session);
    }
    reply(StatusCode::OK, &json!({}))
}

fn identity(monitor: &Monitor, visitor: &Visitor) -> Reply {
    let dashboard = monitor.shared.options().dashboard;
    let info = &monitor.shared.info;
    let session = json!({
        "user": &*visitor.grant.user,
        "account": visitor.account,
        "signed_in": visitor.grant.names_user(),
        "ways": visitor::auth_methods(&monitor.shared.access()),
        "sees_server": visitor.sees_server,
        "may_write": dashboard == Dashboard::Writable,
        "may_kick": visitor.may_kick(dashboard),
        "jetstream": info.jetstream,
        "server_name": info.server_name,
        "server_id": info.server_id,
        "version": crate::version::VERSION,
    });
    reply(StatusCode::OK, &session)
}

/// Returns a ticket that opens a WebSocket.
fn ticket(monitor: &Monitor, visitor: Visitor, headers: &HeaderMap, address: SocketAddr) -> Reply {
    if !visitor.is_trusted(&monitor.shared, address, headers) {
        return refused(StatusCode::FORBIDDEN, NOT_TRUSTED);
    }
    let mut sessions = monitor.dashboard.sessions.borrow_mut();
    match sessions.ticket(visitor.grant, monitor.now()) {
        Some(ticket) => reply(StatusCode::OK, &json!({ "ticket": ticket })),
        None => refused(StatusCode::SERVICE_UNAVAILABLE, "there is no randomness"),
    }
}

/// Closes a connection.
async fn kick(monitor: &Monitor, visitor: &Visitor, query: &Query) -> Reply {
    if !visitor.may_kick(monitor.shared.options().dashboard) {
        return refused(
            StatusCode::FORBIDDEN,
            "this dashboard may not close connections",
        );
    }
    let cid = match query.id("cid") {
        Ok(Some(cid)) => cid,
        Ok(None) => return refused(StatusCode::BAD_REQUEST, "which connection?"),
        Err(refusal) => return reply_of(refusal.into()),
    };
    match collect::of_all(&monitor.shared, |to| Command::Kick(cid, to)).await {
        Ok(found) if found.contains(&true) => reply(StatusCode::OK, &json!({ "cid": cid })),
        Ok(_) => refused(StatusCode::NOT_FOUND, "there is no such connection"),
        Err(refusal) => reply_of(refusal.into()),
    }
}

/// Returns a monitoring endpoint, restricted to the visitor's account.
async fn page(monitor: &Monitor, visitor: &Visitor, name: &str, mut query: Query) -> Reply {
    let (endpoint, is_of_accounts) = match name {
        "connz" => (Endpoint::Connz, true),
        "subsz" => (Endpoint::Subsz, true),
        "accountz" => (Endpoint::Accountz, true),
        "accstatz" => (Endpoint::Accstatz, false),
        "jsz" => (Endpoint::Jsz, false),
        "routez" => (Endpoint::Routez, false),
        "gatewayz" => (Endpoint::Gatewayz, false),
        _ => return reply_of(Refusal::NotFound.into()),
    };
    if !visitor.sees_server {
        if !is_of_accounts {
            return refused(StatusCode::FORBIDDEN, "this is of the whole server");
        }
        query.set("acc", &visitor.account);
    }
    reply_of(
        monitor
            .respond(&endpoint, &query)
            .await
            .unwrap_or_else(Answer::from),
    )
}

fn reply_of(answer: Answer) -> Reply {
    match answer.status {
        StatusCode::OK => json_reply(StatusCode::OK, answer.body),
        status => refused(status, answer.body.trim_end()),
    }
}

pub(super) fn refused(status: StatusCode, why: &str) -> Reply {
    reply(status, &json!({ "error": why }))
}

fn reply(status: StatusCode, value: &impl Serialize) -> Reply {
    // All keys are texts and all numbers finite, so this cannot fail.
    json_reply(status, serde_json::to_string(value).unwrap_or_default())
}

fn json_reply(status: StatusCode, body: String) -> Reply {
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    // The response depends on the visitor and the time.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
