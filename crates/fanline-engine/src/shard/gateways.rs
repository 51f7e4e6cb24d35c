//! The runtime's calls for gateways. Only the first shard serves them.

use std::time::Duration;

use super::{Kind, SessionId, Shard};
use crate::auth::{AccountId, Peer};
use crate::exchange::remote::LinkSet;
use crate::exchange::text::text;
use crate::session::gateway::{
    Gateway, GatewayAccount, GatewayDial, GatewayEvent, GatewayMode, GatewayStatus, KnownGateway,
};
use crate::session::route::account_of;

impl Shard {
    /// Opens a gateway connection, which was dialed if `dial` is `Some`, otherwise accepted.
    pub fn open_gateway(
        &mut self,
        cid: u64,
        peer: Peer,
        dial: Option<GatewayDial>,
        opened_at: Duration,
    ) -> SessionId {
        let kind = Kind::Gateway(Box::new(Gateway::new(dial)));
        let id = self.broker.insert_session(cid, peer, kind, true, opened_at);
        if let Some(settings) = &self.broker.exchange.config.gateways {
            let deadline = opened_at + settings.auth_timeout;
            self.broker.exchange.rearm(id, deadline);
        }
        self.broker.gateway(id).begin();
        id
    }

    /// Returns whether there are events for [`take_gateway_events`](Shard::take_gateway_events).
    pub fn has_gateway_events(&self) -> bool {
        self.broker.exchange.shared.gateways.has_events()
    }

    /// Takes events about other clusters.
    pub fn take_gateway_events(&mut self) -> Vec<GatewayEvent> {
        self.broker.exchange.shared.gateways.take_events()
    }

    /// Sets the other clusters that the server knows. New ones are announced to the other servers of this
    /// cluster, and all of them to clusters that connect.
    pub fn set_known_gateways(&mut self, known: Vec<KnownGateway>) {
        self.broker.set_known_gateways(known);
    }

    /// Applies other accounts to open gateway connections.
    pub(super) fn renew_gateways(&mut self) {
        self.broker.exchange.renew_gateway_imports();
        for id in self.gateway_ids() {
            let session = &self.broker.exchange.sessions[id.index()];
            let is_ready = session.kind.gateway().is_some_and(Gateway::is_ready);
            if is_ready && session.ending.is_none() {
                self.broker.gateway(id).begin_optimistic();
            }
        }
    }

    /// Returns all gateway connections, in any phase.
    pub fn gateway_ids(&self) -> Vec<SessionId> {
        let sessions = self.broker.exchange.sessions.iter();
        let gateways = sessions.filter(|(_, session)| session.kind.gateway().is_some());
        gateways
            .map(|(index, _)| SessionId::from_index(index))
            .collect()
    }

    /// Returns the status of all registered gateway connections, with the filters of their accounts if
    /// `with_filters` is set.
    pub fn gateways(&self, with_filters: bool) -> Vec<GatewayStatus> {
        let all = self.gateway_ids().into_iter();
        all.filter_map(|id| self.gateway_status(id, with_filters))
            .collect()
    }

    fn gateway_status(&self, id: SessionId, with_filters: bool) -> Option<GatewayStatus> {
        let session = self.broker.exchange.sessions.get(id.index())?;
        let gateway = session.kind.gateway()?;
        if !gateway.is_ready() || session.ending.is_some() {
            return None;
        }
        let settings = self.broker.exchange.config.gateways.as_ref();
        let configured = settings.map_or(&[][..], |settings| &settings.configured);
        Some(GatewayStatus {
            gateway: gateway.name.clone(),
            is_dialed: gateway.is_dialed(),
            is_configured: configured.contains(&gateway.name),
            cid: session.cid,
            name: gateway.info.server_id.clone(),
            server_name: gateway.info.server_name.clone(),
            ip: session.peer.ip.clone(),
            port: session.peer.port,
            opened_at: session.opened_at,
            active_at: session.active_at,
            rtt: session.rtt,
            pending_size: session.out.pending_bytes(),
            in_msgs: session.in_msgs,
            out_msgs: session.out_msgs,
            in_bytes: session.in_bytes,
            out_bytes: session.out_bytes,
            subscriptions: session.subscriptions,
            announced: match gateway.is_dialed() {
                true => 0,
                false => self.broker.exchange.announced_to_gateways(),
            },
            accounts: self.gateway_accounts(id, gateway, with_filters),
        })
    }

    /// Returns the accounts of a connection: a dialed one has the interest of the other cluster, an accepted one
    /// has sent all interest.
    fn gateway_accounts(
        &self,
        id: SessionId,
        gateway: &Gateway,
        with_filters: bool,
    ) -> Vec<GatewayAccount> {
        let exchange = &self.broker.exchange;
        let count = u32::try_from(exchange.access.accounts().len()).unwrap_or(u32::MAX);
        let ids = (0..count).map(AccountId);
        let mut accounts: Vec<GatewayAccount> = ids
            .map(|account| GatewayAccount {
                name: exchange.account_name(account),
                mode: match gateway.is_dialed() {
                    true => gateway.mode_of(account),
                    false => GatewayMode::InterestOnly,
                },
                refused: gateway.refused_in(account),
                subs: 0,
                queue_subs: 0,
                filters: Vec::new(),
            })
            .collect();
        for sub in exchange.subs.of_session(id.0) {
            let subscription = exchange.subs.get(sub);
            let Some(account) = account_of(subscription.sid()) else {
                continue;
            };
            let Some(own) = accounts.get_mut(account.index()) else {
                continue;
            };
            own.subs += 1;
            own.queue_subs += usize::from(!subscription.queue().is_empty());
            if with_filters {
                let router = exchange.links[LinkSet::Gateways].routers.get(account);
                let filter = router.map(|router| router.filter_of(subscription));
                let filter = text(&filter.unwrap_or_default());
                own.filters.push((filter, text(subscription.queue())));
            }
        }
        accounts.retain(|account| !account.name.is_empty());
        accounts
    }
}
