//! Interest of other accounts in the subjects that they import.
//!
//! A stream import is done by the server of the subscriber. So the other servers must send it messages of the
//! exporting account, for which it announces the subscriptions of the importing account there. Interest that
//! is only due to an import does not count for further imports.

use hashbrown::HashMap;

use crate::auth::{Access, AccountId, covers, overlap};
use crate::exchange::router::{Listening, listening};
use crate::session::announced::Key;

/// A filter with an optional queue group, in an account.
pub(in crate::session) type Place = (AccountId, Key);

/// The stream imports, and the interest of this server that they cause in exporting accounts.
#[derive(Default)]
pub(crate) struct Imports {
    all: Vec<Listening>,
    /// Weights in importing accounts that are counted in `caused`.
    counted: HashMap<Place, u32>,
    /// Weights in exporting accounts.
    caused: HashMap<Place, u32>,
}

impl Imports {
    /// Returns the imports of all accounts. No interest is counted yet.
    pub(in crate::session) fn of(access: &Access) -> Self {
        Imports {
            all: listening(access),
            ..Imports::default()
        }
    }

    /// Returns whether an account imports streams.
    pub(in crate::session) fn has_importer(&self, account: AccountId) -> bool {
        self.all.iter().any(|import| import.importer == account)
    }

    /// Counts the weight of a filter in an importing account, instead of its earlier weight. Adds each place in
    /// an exporting account whose weight has changed to `changed`.
    pub(in crate::session) fn count(
        &mut self,
        place: &Place,
        weight: u32,
        changed: &mut Vec<Place>,
    ) {
        let before = match weight {
            0 => self.counted.remove(place),
            _ => self.counted.insert(place.clone(), weight),
        };
        let before = before.unwrap_or(0);
        if before == weight {
            return;
        }
        let (account, key) = place;
        let imports = self.all.iter().filter(|own| own.importer == *account);
        for exported in imports.filter_map(|import| exported(import, key)) {
            let sum = self.caused.remove(&exported).unwrap_or(0);
            let sum = sum.saturating_sub(before).saturating_add(weight);
            if sum > 0 {
                self.caused.insert(exported.clone(), sum);
            }
            changed.push(exported);
        }
    }

    /// Returns the weight that imports cause in an exporting account.
    pub(in crate::session) fn weight(&self, place: &Place) -> u32 {
        self.caused.get(place).copied().unwrap_or(0)
    }

    /// Returns the places with interest that imports cause.
    pub(in crate::session) fn places(&self) -> impl Iterator<Item = &Place> {
        self.caused.keys()
    }
}

/// Returns the place in the exporting account of a filter in the importing account, if it matches messages of
/// the import. That is the filter itself, or the subject of the import if this one is mapped or narrower.
fn exported(import: &Listening, key: &Key) -> Option<Place> {
    let text = |bytes| std::str::from_utf8(bytes).ok();
    let (local, subject) = (text(&import.local)?, text(&import.subject)?);
    let filter = text(key.filter())?;
    let exported = match local == subject && covers(subject, filter) {
        true => filter,
        false if overlap(local, filter) => subject,
        false => return None,
    };
    Some((import.exporter, Key::new(exported.as_bytes(), key.queue())))
}
