//! The keeper's side of shared subscriptions above QoS 0: which there are, and whose they are.

use hashbrown::{HashMap, HashSet};

use super::desk::Around;
use super::names;
use super::note::Note;
use super::session::Waiting;
use crate::auth::AccountId;
use crate::codec::mqtt::{Qos, SessionKey, SessionRecord, Version, id_hash, split_shared};
use crate::jetstream::Message;

/// The groups of all accounts, by their filters, with the client ids of their members.
#[derive(Default)]
pub(super) struct Shares {
    groups: HashMap<(AccountId, Box<str>), HashSet<Box<str>>>,
}

impl Shares {
    /// A session is a member above QoS 0, or is none any more.
    pub(super) fn change(
        &mut self,
        key: &SessionKey,
        filter: &str,
        is_member: bool,
        around: &mut Around<'_>,
    ) {
        let entry = (key.account, Box::from(filter));
        if is_member {
            let members = self.groups.entry(entry).or_default();
            let is_first = members.is_empty();
            members.insert(key.client_id.clone());
            if is_first {
                note_group(key.account, filter, around);
            }
        } else if let Some(members) = self.groups.get_mut(&entry) {
            members.remove(&key.client_id);
            if members.is_empty() {
                self.groups.remove(&entry);
                forget_group(key.account, filter, around);
            }
        }
    }

    /// A session is over.
    pub(super) fn leave(&mut self, key: &SessionKey, around: &mut Around<'_>) {
        let own = self.groups.iter().filter(|((account, _), members)| {
            *account == key.account && members.contains(&key.client_id)
        });
        let own: Vec<Box<str>> = own.map(|((_, filter), _)| filter.clone()).collect();
        for filter in own {
            self.change(key, &filter, false, around);
        }
    }

    /// Takes back of which groups a session is a member.
    pub(super) fn restore(
        &mut self,
        key: &SessionKey,
        record: &SessionRecord,
        around: &mut Around<'_>,
    ) {
        if record.version() != Version::V5 {
            return;
        }
        for (filter, subscription) in record.subscriptions().iter() {
            let shared = split_shared(filter, Version::V5);
            let is_shared = shared.is_ok_and(|shared| !shared.group.is_empty());
            if is_shared && subscription.options.qos != Qos::AtMostOnce {
                self.change(key, filter, true, around);
            }
        }
    }

    /// Ends groups that were left by a crash, and makes sure that what is a member's own goes to nobody else
    /// (MQTT-4.8.2-4, -5). `hashes` are those of the sessions that there are.
    pub(super) fn tidy(
        &mut self,
        account: AccountId,
        hashes: &HashSet<String>,
        around: &mut Around<'_>,
    ) {
        let mut groups: Vec<String> = Vec::new();
        let filter = format!("{}*", names::GROUPS_PREFIX);
        let filters: [&[u8]; 1] = [filter.as_bytes()];
        (around.handler).read(account, names::SHARED, &filters, 0, &mut |kept| {
            groups.extend(String::from_utf8(kept.payload.to_vec()));
            true
        });
        for filter in groups {
            if !self.groups.contains_key(&(account, filter.as_str().into())) {
                forget_group(account, &filter, around);
            }
        }
        let mut acks: Vec<Vec<u8>> = Vec::new();
        let mut left: Vec<String> = Vec::new();
        let filter = format!("{}>", names::OWNED_PREFIX);
        let filters: [&[u8]; 1] = [filter.as_bytes()];
        (around.handler).read(account, names::SHARED, &filters, 0, &mut |kept| {
            acks.extend(Waiting::ack_in(kept.payload).map(<[u8]>::to_vec));
            let subject = String::from_utf8_lossy(kept.subject);
            let hash = subject.rsplit('.').nth(1);
            if hash.is_some_and(|hash| !hashes.contains(hash)) {
                left.push(subject.into_owned());
            }
            true
        });
        for ack in acks {
            around.floor.of(account).publish(&Message {
                topic: &ack,
                ..Message::default()
            });
        }
        for subject in left {
            around.purge(account, names::SHARED, &subject);
        }
    }
}

/// A group has its first member. Its name is kept, so that a consumer which a crash leaves is found again.
fn note_group(account: AccountId, filter: &str, around: &mut Around<'_>) {
    let topic = format!("{}{}", names::GROUPS_PREFIX, id_hash(filter));
    around.request(account, &topic, filter);
    tell(account, filter, true, around);
}

/// A group has no members any more.
fn forget_group(account: AccountId, filter: &str, around: &mut Around<'_>) {
    let hash = id_hash(filter);
    let consumer = names::delete_consumer(&names::group_consumer(&hash));
    around.request(account, &consumer, "");
    let topic = format!("{}{hash}", names::GROUPS_PREFIX);
    around.purge(account, names::SHARED, &topic);
    tell(account, filter, false, around);
}

fn tell(account: AccountId, filter: &str, is_there: bool, around: &mut Around<'_>) {
    around.floor.tell_all(&Note::Group {
        account,
        filter: filter.into(),
        is_there,
    });
}
