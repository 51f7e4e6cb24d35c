//! MQTT connections as sessions of their shard (`docs/decisions/0020`): what is published crosses the same
//! route and the same fan-out as NATS messages; what is kept, lies in streams of the account, to which a
//! session publishes and from which a consumer of its own delivers.
//!
//! `session.rs` is what a session has, `connect.rs` how it begins and ends, `receive.rs` what its packets do,
//! `publish.rs`, `subscribe.rs` and `deliver.rs` are these, `groups.rs` is what groups share above QoS 0, `kept.rs`
//! what waits for the disk, `desk.rs` and `shared.rs` are the keeper's side.

mod connect;
mod deliver;
mod desk;
mod groups;
mod kept;
mod names;
mod note;
#[cfg(test)]
mod power_cut;
mod publish;
mod receive;
mod session;
mod shared;
mod subscribe;

pub(super) use desk::{Around, Desk, Floor};
pub(super) use kept::Answers;
pub(super) use note::Note;
pub(super) use publish::Outbound;
pub(super) use session::{Mqtt, is_own_of_mqtt};
