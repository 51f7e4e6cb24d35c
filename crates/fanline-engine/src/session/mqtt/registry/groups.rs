//! The registry's side of shared subscriptions above QoS 0: their members, and the sessions that have claimed
//! messages.

use hashbrown::{HashMap, HashSet};

use super::super::messages::{RegistryMessage, RequestAction};
use super::super::names;
use super::super::records::ClaimedRecord;
use super::super::session_record::{SessionRecord, id_hash};
use super::Context;
use super::sessions::SessionKey;
use crate::auth::AccountId;
use crate::codec::mqtt::{Qos, Version, split_shared};

/// The shared subscriptions of all accounts, by filter, with the client ids of their members.
#[derive(Default)]
pub(super) struct SharedSubscriptions {
    members: HashMap<(AccountId, Box<str>), HashSet<Box<str>>>,
}

impl SharedSubscriptions {
    /// Handles that a session has become a member above QoS 0, or is a member no more.
    pub(super) fn change(
        &mut self,
        key: &SessionKey,
        filter: &str,
        is_member: bool,
        context: &mut Context<'_>,
    ) {
        let entry = (key.account, Box::from(filter));
        if is_member {
            let members = self.members.entry(entry).or_default();
            let is_first = members.is_empty();
            members.insert(key.client_id.clone());
            if is_first {
                add_group(key.account, filter, context);
            }
        } else if let Some(members) = self.members.get_mut(&entry) {
            members.remove(&key.client_id);
            if members.is_empty() {
                self.members.remove(&entry);
                remove_group(key.account, filter, context);
            }
        }
    }

    /// Handles that a session has ended.
    pub(super) fn leave(&mut self, key: &SessionKey, context: &mut Context<'_>) {
        let own = self.members.iter().filter(|((account, _), members)| {
            *account == key.account && members.contains(&key.client_id)
        });
        let own: Vec<Box<str>> = own.map(|((_, filter), _)| filter.clone()).collect();
        for filter in own {
            self.change(key, &filter, false, context);
        }
    }

    /// Restores the memberships of a session.
    pub(super) fn restore(
        &mut self,
        key: &SessionKey,
        record: &SessionRecord,
        context: &mut Context<'_>,
    ) {
        if record.version() != Version::V5 {
            return;
        }
        for (filter, subscription) in record.subscriptions().iter() {
            let shared = split_shared(filter, Version::V5);
            let is_shared = shared.is_ok_and(|shared| !shared.group.is_empty());
            if is_shared && subscription.options.qos != Qos::AtMostOnce {
                self.change(key, filter, true, context);
            }
        }
    }

    /// Removes groups without members, which a crash may leave. Acknowledges claimed messages at their
    /// consumers, so that no other member receives them (MQTT-4.8.2-4, -5). Removes claims of sessions that
    /// do not exist; `hashes` are the id hashes of existing sessions.
    pub(super) fn tidy(
        &mut self,
        account: AccountId,
        hashes: &HashSet<String>,
        context: &mut Context<'_>,
    ) {
        let mut groups: Vec<String> = Vec::new();
        let filter = format!("{}*", names::GROUPS_PREFIX);
        context.read(account, names::SHARED, &filter, &mut |record| {
            groups.extend(String::from_utf8(record.payload.to_vec()));
        });
        for filter in groups {
            if !self
                .members
                .contains_key(&(account, filter.as_str().into()))
            {
                remove_group(account, &filter, context);
            }
        }
        let mut acks: Vec<Vec<u8>> = Vec::new();
        let mut left: Vec<String> = Vec::new();
        let filter = format!("{}>", names::CLAIMED_PREFIX);
        context.read(account, names::SHARED, &filter, &mut |record| {
            acks.extend(ClaimedRecord::ack_subject(record.payload).map(<[u8]>::to_vec));
            let subject = String::from_utf8_lossy(record.subject);
            let hash = subject.rsplit('.').nth(1);
            if hash.is_some_and(|hash| !hashes.contains(hash)) {
                left.push(subject.into_owned());
            }
        });
        for subject in acks {
            context.publish(account, &subject, b"");
        }
        for filter in left {
            let stream = names::SHARED;
            context.request(account, &RequestAction::Purge { stream, filter });
        }
    }
}

/// Handles the first member of a group. Stores the group's filter, so that its consumer is found after a
/// crash.
fn add_group(account: AccountId, filter: &str, context: &mut Context<'_>) {
    let subject = format!("{}{}", names::GROUPS_PREFIX, id_hash(filter));
    context.publish(account, subject.as_bytes(), filter.as_bytes());
    announce(account, filter, true, context);
}

/// Handles the loss of a group's last member.
fn remove_group(account: AccountId, filter: &str, context: &mut Context<'_>) {
    let hash = id_hash(filter);
    let name = names::group_consumer(&hash);
    context.request(account, &RequestAction::DeleteConsumer { name });
    let purge = RequestAction::Purge {
        stream: names::SHARED,
        filter: format!("{}{hash}", names::GROUPS_PREFIX),
    };
    context.request(account, &purge);
    announce(account, filter, false, context);
}

fn announce(account: AccountId, filter: &str, has_members: bool, context: &mut Context<'_>) {
    context.ports.send_to_all(&RegistryMessage::Group {
        account,
        filter: filter.into(),
        has_members,
    });
}
