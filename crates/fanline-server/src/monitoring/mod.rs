//! Monitoring over HTTP: nats-server's endpoints, with the same paths and fields.
//!
//! Each endpoint has a file. An endpoint queries the shards by commands, and takes no part in the delivery of
//! messages.

mod accounts;
mod answer;
mod collect;
mod connz;
mod dashboard;
mod drift;
mod expvars;
mod gatewayz;
mod healthz;
mod index;
mod jetstream;
mod jsz;
mod leafz;
mod listeners;
mod metrics;
mod process;
mod query;
mod routez;
mod subsz;
mod system;
mod time;
mod unsupported;
mod varz;
mod websocket;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fanline_engine::auth::ConnectionKind;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{Notify, Semaphore};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tracing::{debug, warn};

use crate::shared::Shared;
use answer::{Answer, Refusal};
use process::CpuMeter;
use query::Query;
pub(crate) use system::{EVENTS_MAX, System};

/// Largest number of concurrent connections. A further connection replaces the oldest connection that has no
/// request. If all have a request, the further connection waits.
const CONNECTIONS_MAX: usize = 64;
/// Time limit for a request's head, and for the pause between two requests. When it expires, the connection
/// is closed.
const HEADER_TIME_MAX: Duration = Duration::from_secs(10);
/// Largest head of a request in bytes. A larger head gets status 431, and the connection is closed.
const HEADER_BYTES_MAX: usize = 16 * 1024;
/// Age after which a connection is closed at the end of its current response, so that no client occupies a
/// connection forever.
const CONNECTION_TIME: Duration = Duration::from_secs(300);
/// Time limit for a client to read this last response.
const LAST_ANSWER_TIME: Duration = Duration::from_secs(30);

/// A monitoring endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Endpoint {
    Index,
    Varz,
    Connz,
    Subsz,
    Healthz,
    Accountz,
    Accstatz,
    Routez,
    Leafz,
    Gatewayz,
    Jsz,
    Raftz,
    Ipqueuesz,
    Stacksz,
    Expvars,
    Metrics,
}

/// The path, the name in `http_req_stats`, and the variant of each endpoint.
const ENDPOINTS: [(&str, &str, Endpoint); 17] = [
    ("/", "/", Endpoint::Index),
    ("/varz", "/varz", Endpoint::Varz),
    ("/connz", "/connz", Endpoint::Connz),
    ("/subsz", "/subsz", Endpoint::Subsz),
    ("/subscriptionsz", "/subsz", Endpoint::Subsz),
    ("/healthz", "/healthz", Endpoint::Healthz),
    ("/accountz", "/accountz", Endpoint::Accountz),
    ("/accstatz", "/accstatz", Endpoint::Accstatz),
    ("/routez", "/routez", Endpoint::Routez),
    ("/leafz", "/leafz", Endpoint::Leafz),
    ("/gatewayz", "/gatewayz", Endpoint::Gatewayz),
    ("/jsz", "/jsz", Endpoint::Jsz),
    ("/raftz", "/raftz", Endpoint::Raftz),
    ("/ipqueuesz", "/ipqueuesz", Endpoint::Ipqueuesz),
    ("/stacksz", "/stacksz", Endpoint::Stacksz),
    ("/debug/vars", "/debug/vars", Endpoint::Expvars),
    ("/metrics", "/metrics", Endpoint::Metrics),
];

/// State that all requests share.
pub(crate) struct Monitor {
    pub(crate) shared: Arc<Shared>,
    cpu: RefCell<CpuMeter>,
    /// Requests by path.
    requests: RefCell<BTreeMap<&'static str, u64>>,
    dashboard: dashboard::Shared,
    /// Comparisons with the other servers of the cluster.
    route_drift: drift::Drift,
    /// Comparisons with servers of other clusters.
    gateway_drift: drift::Drift,
}

/// Serves HTTP connections until the listener fails.
pub(crate) async fn serve(listener: TcpListener, monitor: Rc<Monitor>) -> io::Result<()> {
    /// Pause after a failed accept, such as when the process has no file descriptors left.
    const OUT_OF_DESCRIPTORS: Duration = Duration::from_millis(10);
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let connections = Rc::new(Connections::default());
    loop {
        let (stream, address) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                warn!("Temporary accept error of monitoring: {error}");
                tokio::time::sleep(OUT_OF_DESCRIPTORS).await;
                continue;
            }
        };
        if permits.available_permits() == 0 {
            connections.close_idle();
        }
        let permit = Arc::clone(&permits).acquire_owned().await;
        let monitor = Rc::clone(&monitor);
        let connections = Rc::clone(&connections);
        tokio::task::spawn_local(async move {
            let connection = connections.add();
            tokio::select! {
                () = monitor.serve_stream(stream, address, &connection) => {}
                () = connection.close.notified() => {}
            }
            connections.remove(&connection);
            drop(permit);
        });
    }
}

/// The state of one connection.
#[derive(Default)]
struct Connection {
    is_answering: Cell<bool>,
    close: Notify,
}

/// All open connections, oldest first.
#[derive(Default)]
struct Connections(RefCell<VecDeque<Rc<Connection>>>);

impl Connections {
    fn add(&self) -> Rc<Connection> {
        let connection = Rc::new(Connection::default());
        self.0.borrow_mut().push_back(Rc::clone(&connection));
        connection
    }

    fn remove(&self, connection: &Rc<Connection>) {
        let mut all = self.0.borrow_mut();
        all.retain(|other| !Rc::ptr_eq(other, connection));
    }

    /// Closes the oldest connection without a request, so that silent peers cannot exclude others.
    fn close_idle(&self) {
        let mut all = self.0.borrow_mut();
        let idle = all.iter().position(|one| !one.is_answering.get());
        if let Some(connection) = idle.and_then(|at| all.remove(at)) {
            connection.close.notify_one();
        }
    }
}

impl Monitor {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Monitor {
            shared,
            cpu: CpuMeter::start().into(),
            requests: RefCell::default(),
            dashboard: dashboard::Shared::default(),
            route_drift: drift::Drift::default(),
            gateway_drift: drift::Drift::default(),
        }
    }

    /// Returns the TLS settings of HTTPS with the current certificates, if monitoring uses HTTPS.
    fn https(&self) -> Option<TlsAcceptor> {
        let shared = &self.shared;
        let tls = shared.tls();
        let tls = tls
            .clients
            .as_ref()
            .filter(|_| shared.options().monitoring_tls);
        Some(TlsAcceptor::from(tls?.config()))
    }

    async fn serve_stream(&self, stream: TcpStream, address: SocketAddr, state: &Connection) {
        match self.https() {
            None => self.serve_connection(stream, address, state).await,
            Some(https) => match timeout(HEADER_TIME_MAX, https.accept(stream)).await {
                Ok(Ok(stream)) => self.serve_connection(stream, address, state).await,
                Ok(Err(error)) => debug!("Monitoring: TLS handshake error: {error}"),
                Err(_) => debug!("Monitoring: the TLS handshake took too long"),
            },
        }
    }

    async fn serve_connection<S>(&self, stream: S, address: SocketAddr, state: &Connection)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let service = service_fn(async |mut request| {
            if let Some(response) = websocket::upgrade(&self.shared, &mut request, address) {
                return Ok::<_, Infallible>(response);
            }
            state.is_answering.set(true);
            let dashboard = dashboard::answer(self, &mut request, address);
            let response = match dashboard.await {
                Some(response) => response,
                None => self.answer(&request).await,
            };
            state.is_answering.set(false);
            Ok(response)
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER_TIME_MAX)
            .max_buf_size(HEADER_BYTES_MAX)
            // Some scripts search for `Content-Length:` in exactly this case.
            .title_case_headers(true)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        let mut connection = pin!(connection);
        let mut outcome = timeout(CONNECTION_TIME, connection.as_mut()).await;
        if outcome.is_err() {
            connection.as_mut().graceful_shutdown();
            outcome = timeout(LAST_ANSWER_TIME, connection).await;
        }
        if let Ok(Err(error)) = outcome {
            debug!("Monitoring connection ended: {error}");
        }
    }

    /// Responds to a request. Any method is accepted, as in nats-server, because no endpoint changes anything.
    async fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let query = Query::parse(request.uri().query().unwrap_or_default());
        let options = self.shared.options();
        let answer = match below(&options.monitoring_base_path, request.uri().path()) {
            Some(path) => self.answer_path(path, &query).await,
            None => Err(Refusal::NotFound),
        };
        answer.unwrap_or_else(Answer::from).into()
    }

    async fn answer_path(&self, path: &str, query: &Query) -> Result<Answer, Refusal> {
        let entry = ENDPOINTS.iter().find(|(at, ..)| *at == path);
        let (_, counted_as, endpoint) = entry.ok_or(Refusal::NotFound)?;
        self.count(counted_as);
        self.respond(endpoint, query).await
    }

    fn count(&self, path: &'static str) {
        *self.requests.borrow_mut().entry(path).or_default() += 1;
    }

    async fn respond(&self, endpoint: &Endpoint, query: &Query) -> Result<Answer, Refusal> {
        match endpoint {
            Endpoint::Index => Ok(index::answer(&self.shared.options().monitoring_base_path)),
            Endpoint::Varz => varz::answer(self).await,
            Endpoint::Connz => connz::answer(self, query).await,
            Endpoint::Subsz => subsz::answer(self, query).await,
            Endpoint::Healthz => healthz::answer(self, query).await,
            Endpoint::Accountz => accounts::accountz(self, query).await,
            Endpoint::Accstatz => accounts::accstatz(self, query).await,
            Endpoint::Routez => routez::answer(self, query).await,
            Endpoint::Leafz => leafz::answer(self, query).await,
            Endpoint::Gatewayz => gatewayz::answer(self, query).await,
            Endpoint::Jsz => jsz::answer(self, query).await,
            Endpoint::Raftz => Ok(unsupported::raftz()),
            Endpoint::Ipqueuesz => Ok(unsupported::ipqueuesz()),
            Endpoint::Stacksz => Ok(expvars::stacksz()),
            Endpoint::Expvars => Ok(Answer::json(&expvars::variables())),
            Endpoint::Metrics => metrics::answer(self).await,
        }
    }

    fn server_id(&self) -> &str {
        &self.shared.info.server_id
    }

    /// Returns the current time as the engine counts it: since the start.
    fn now(&self) -> Duration {
        self.shared.common.started.elapsed()
    }

    /// Formats a time since the start as a date.
    fn date(&self, at: Duration) -> String {
        time::rfc3339(self.shared.started_at + at)
    }
}

/// Returns a path without the prefix `base`. Returns `None` if the path does not begin with it.
fn below<'a>(base: &str, path: &'a str) -> Option<&'a str> {
    match path.strip_prefix(base)? {
        "" => Some("/"),
        rest => rest.starts_with('/').then_some(rest),
    }
}

/// Returns nats-server's name for the kind of a connection.
fn kind_name(kind: ConnectionKind) -> &'static str {
    match kind.is_leaf() {
        true => "Leafnode",
        false => "Client",
    }
}

fn now_text() -> String {
    time::rfc3339(SystemTime::now())
}
