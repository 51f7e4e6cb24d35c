//! Routes: sessions with the other servers of the cluster, by the [route protocol](crate::codec::route).

mod connections;
mod counts;
mod handshake;
pub(in crate::session) mod imports;
mod interest;
mod receive;
mod state;

use super::{Broker, Kind, Session};
use crate::codec::nats::error::CloseReason;
use crate::codec::route::RouteError;
use crate::exchange::remote::LinkSet;
use crate::exchange::session::SessionId;

pub(in crate::session) use connections::AnnouncedIn;
pub(crate) use connections::RouteConnections;
pub use connections::RouteEvent;
pub(in crate::session) use interest::sid_of;
pub(crate) use interest::{account_of, cluster_of};
pub(crate) use state::Route;
pub use state::{RouteDetail, RouteDial, RouteEnded, RouteOutcome, RouteStatus};

pub use crate::codec::compression::{Compressed, LinkCompression};
pub use crate::codec::route::{Carries, GossipMode, RouteInfo};
pub use crate::exchange::{CertificateRules, RouteSettings};

/// The handle of a route's session.
pub(crate) struct RouteSession<'a> {
    pub(crate) broker: &'a mut Broker,
    pub(crate) id: SessionId,
}

impl RouteSession<'_> {
    fn session(&self) -> &Session {
        &self.broker.exchange.sessions[self.id.index()]
    }

    fn session_mut(&mut self) -> &mut Session {
        &mut self.broker.exchange.sessions[self.id.index()]
    }

    /// Returns the state of the connection.
    pub(super) fn state(&self) -> &Route {
        self.session().kind.expect_route()
    }

    fn state_mut(&mut self) -> &mut Route {
        self.session_mut().kind.expect_route_mut()
    }

    /// Returns the links that the route belongs to.
    fn links(&self) -> LinkSet {
        LinkSet::Routes(self.state().carries.lane())
    }

    /// Sends an error to the peer, and closes the connection.
    fn refuse(&mut self, error: &RouteError, reason: CloseReason) {
        self.send_error(error);
        self.broker.end(self.id, reason);
    }

    /// Sends an error to the peer, and logs it.
    fn send_error(&mut self, error: &RouteError) {
        let exchange = &mut self.broker.exchange;
        exchange.outputs.notice(self.id, || error.to_string());
        exchange.send(self.id, format!("-ERR '{error}'\r\n").as_bytes());
    }
}

impl Kind {
    /// Returns the state of a route. [`RouteSession`] is made for no other kind.
    fn expect_route(&self) -> &Route {
        self.route().expect("a route")
    }

    fn expect_route_mut(&mut self) -> &mut Route {
        self.route_mut().expect("a route")
    }
}
