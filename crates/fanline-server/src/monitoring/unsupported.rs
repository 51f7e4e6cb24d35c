//! Endpoints of features that are not here: they say so in the form in which nats-server does
//! when a feature is off.

use serde::Serialize;

use super::answer::Answer;
use super::{Monitor, now_text};

#[derive(Serialize)]
struct Empty {}

pub(super) fn routez(monitor: &Monitor) -> Answer {
    #[derive(Serialize)]
    struct Routez<'a> {
        server_id: &'a str,
        server_name: &'a str,
        now: String,
        num_routes: usize,
        routes: [Empty; 0],
    }
    Answer::json(&Routez {
        server_id: monitor.server_id(),
        server_name: &monitor.shared.info.server_name,
        now: now_text(),
        num_routes: 0,
        routes: [],
    })
}

pub(super) fn leafz(monitor: &Monitor) -> Answer {
    #[derive(Serialize)]
    struct Leafz<'a> {
        server_id: &'a str,
        now: String,
        leafnodes: usize,
        leafs: [Empty; 0],
    }
    Answer::json(&Leafz {
        server_id: monitor.server_id(),
        now: now_text(),
        leafnodes: 0,
        leafs: [],
    })
}

pub(super) fn gatewayz(monitor: &Monitor) -> Answer {
    #[derive(Serialize)]
    struct Gatewayz<'a> {
        server_id: &'a str,
        now: String,
        outbound_gateways: Empty,
        inbound_gateways: Empty,
    }
    Answer::json(&Gatewayz {
        server_id: monitor.server_id(),
        now: now_text(),
        outbound_gateways: Empty {},
        inbound_gateways: Empty {},
    })
}

#[derive(Serialize)]
struct Jsz<'a> {
    memory: u64,
    storage: u64,
    reserved_memory: u64,
    reserved_storage: u64,
    accounts: u64,
    ha_assets: u64,
    api: Api,
    server_id: &'a str,
    now: String,
    disabled: bool,
    config: Config,
    streams: u64,
    consumers: u64,
    messages: u64,
    bytes: u64,
    total: u64,
}

#[derive(Serialize)]
struct Api {
    level: u64,
    total: u64,
    errors: u64,
}

#[derive(Serialize)]
struct Config {
    max_memory: u64,
    max_storage: u64,
}

pub(super) fn jsz(monitor: &Monitor) -> Answer {
    Answer::json(&Jsz {
        memory: 0,
        storage: 0,
        reserved_memory: 0,
        reserved_storage: 0,
        accounts: 0,
        ha_assets: 0,
        api: Api {
            level: 0,
            total: 0,
            errors: 0,
        },
        server_id: monitor.server_id(),
        now: now_text(),
        disabled: true,
        config: Config {
            max_memory: 0,
            max_storage: 0,
        },
        streams: 0,
        consumers: 0,
        messages: 0,
        bytes: 0,
        total: 0,
    })
}
