//! Answers about all streams of an account: the server of the client collects what the other servers have.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Elsewhere;
use super::pending::{Pending, Step};
use super::question::{AccountSums, Answer};
use crate::auth::AccountId;
use crate::jetstream::accounts::JetStreams;
use crate::jetstream::{Now, OverviewWanted, Ports, api};

/// Returns what a request about all streams needs of other servers; `None` for any other request.
pub(super) fn first_step(path: &str, payload: &[u8]) -> Option<Step> {
    match path {
        "INFO" => Some(Step::Account),
        "STREAM.NAMES" | "STREAM.LIST" => Some(Step::Names {
            filter: api::listed_subject(payload),
            then_infos: path == "STREAM.LIST",
        }),
        _ => None,
    }
}

impl JetStreams {
    /// Answers a request for names, or requests the descriptions of the streams on the page of a list.
    pub(super) fn end_names(
        &mut self,
        mut pending: Pending,
        (filter, then_infos): (&str, bool),
        now: Now,
        ports: &mut dyn Ports,
    ) {
        let mut names = BTreeMap::new();
        for (from, answer) in &pending.answers {
            if let Answer::Names(streams) = answer {
                names.extend(streams.iter().map(|name| (name.clone(), from.clone())));
            }
        }
        // Without a filter, the markers tell the streams of servers that have not answered. A server may also have named a
        // stream because it did not know the leader yet.
        let marked = (self.peers.as_ref()).and_then(|peers| peers.owners.get(&pending.account));
        for (name, owners) in marked.into_iter().flatten().filter(|_| filter.is_empty()) {
            if let Some(owner) = owners.first() {
                names.insert(name.clone(), owner.clone());
            }
        }
        let absent = self.absent_streams(pending.account);
        for name in absent.filter(|_| filter.is_empty()) {
            names.entry(name.clone()).or_default();
        }
        let elsewhere = Elsewhere {
            names,
            ..Elsewhere::default()
        };
        if !then_infos {
            return self.answer(&pending, &elsewhere, now, ports);
        }
        self.start(pending.account, now, ports);
        let payload = &pending.request().payload;
        let page = match self.touch(pending.account) {
            Some(jetstream) => api::remote_on_page(jetstream, payload, &elsewhere),
            None => Vec::new(),
        };
        // The names of all pages are needed for the total.
        pending.names = elsewhere.names;
        pending.step = Step::Infos(page);
        self.ask(pending, now, ports);
    }

    /// Answers a request for a list.
    pub(super) fn end_infos(&mut self, mut pending: Pending, now: Now, ports: &mut dyn Ports) {
        let mut elsewhere = Elsewhere {
            names: std::mem::take(&mut pending.names),
            ..Elsewhere::default()
        };
        for (_, answer) in std::mem::take(&mut pending.answers) {
            let Answer::Infos(infos) = answer else {
                continue;
            };
            for info in infos {
                let name = info.pointer("/config/name").and_then(Value::as_str);
                if let Some(name) = name.map(str::to_owned) {
                    elsewhere.infos.insert(name, info);
                }
            }
        }
        self.answer(&pending, &elsewhere, now, ports);
    }

    /// Answers a request for the totals of the account.
    pub(super) fn end_account(&mut self, pending: &Pending, now: Now, ports: &mut dyn Ports) {
        let mut elsewhere = Elsewhere::default();
        for (_, answer) in &pending.answers {
            if let Answer::Account(sums) = answer {
                elsewhere.sums.add(*sums);
            }
        }
        self.answer(pending, &elsewhere, now, ports);
    }

    /// Answers a request with what other servers contribute.
    fn answer(
        &mut self,
        pending: &Pending,
        elsewhere: &Elsewhere,
        now: Now,
        ports: &mut dyn Ports,
    ) {
        self.start(pending.account, now, ports);
        if let Some(jetstream) = self.touch(pending.account) {
            let message = pending.request().message();
            jetstream.answer_request(&message, elsewhere, now, ports.of(pending.account));
        }
    }

    /// Returns the names of this server's streams with subjects that a filter matches; of all streams if it is empty,
    /// also of those that no server leads.
    pub(super) fn names_of_streams(&self, account: AccountId, filter: &str) -> Vec<String> {
        let running = self.running(account);
        let mut names =
            running.map_or_else(Vec::new, |jetstream| api::matching_names(jetstream, filter));
        if filter.is_empty() {
            names.extend(self.absent_streams(account).cloned());
        }
        names
    }

    /// Returns the descriptions of streams of this server.
    pub(super) fn infos_of_streams(
        &mut self,
        account: AccountId,
        names: &[String],
        now: Now,
    ) -> Vec<Value> {
        let Some(jetstream) = self.touch(account) else {
            return Vec::new();
        };
        let infos = names
            .iter()
            .filter_map(|name| api::listed_info(jetstream, name, now));
        infos
            .filter_map(|info| serde_json::to_value(info).ok())
            .collect()
    }

    /// Returns the totals of an account on this server.
    pub(super) fn sums_of(
        &mut self,
        account: AccountId,
        now: Now,
        ports: &mut dyn Ports,
    ) -> AccountSums {
        let Some(jetstream) = self.touch(account) else {
            return AccountSums::default();
        };
        let sums = jetstream.overview(OverviewWanted::default(), now, ports.of(account));
        AccountSums {
            memory: sums.memory,
            storage: sums.storage,
            reserved_memory: sums.reserved_memory,
            reserved_storage: sums.reserved_storage,
            streams: sums.streams,
            consumers: sums.consumers,
            requests: sums.api.total,
            errors: sums.api.errors,
        }
    }
}
