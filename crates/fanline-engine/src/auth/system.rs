//! Requests that every account may send to the system account without an export.

use super::account::{Account, Import, ImportKind};
use crate::subject::is_literal_subject;

/// A request to the system account.
struct Service {
    /// Subject that clients use.
    subject: &'static str,
    /// Subject in the system account: the parts before and after the account's name.
    own: (&'static str, &'static str),
    /// Whether the responder receives the requester's identity.
    share: bool,
}

const OF_ACCOUNT: &str = "$SYS.REQ.ACCOUNT";

const SERVICES: [Service; 4] = [
    Service {
        subject: "$SYS.REQ.USER.INFO",
        own: ("$SYS.REQ.USER", "INFO"),
        share: true,
    },
    Service {
        subject: "$SYS.REQ.ACCOUNT.PING.CONNZ",
        own: (OF_ACCOUNT, "CONNZ"),
        share: false,
    },
    Service {
        subject: "$SYS.REQ.ACCOUNT.PING.STATZ",
        own: (OF_ACCOUNT, "STATZ"),
        share: false,
    },
    Service {
        subject: "$SYS.REQ.SERVER.PING.CONNZ",
        own: (OF_ACCOUNT, "CONNZ"),
        share: false,
    },
];

impl Service {
    /// Returns the subject in the system account for requests from this account. Returns `None` if the
    /// account's name is not a single plain token.
    fn subject_for(&self, account: &str) -> Option<String> {
        let is_one = !account.contains('.') && is_literal_subject(account.as_bytes());
        // With this name, the subject would request the data of all accounts.
        let is_all = account == "PING";
        let (before, behind) = self.own;
        (is_one && !is_all).then(|| format!("{before}.{account}.{behind}"))
    }
}

/// Returns the built-in imports of an account from the system account. An explicit import with the same local
/// subject replaces the built-in import.
pub(crate) fn imports(account: &Account, system: &str) -> Vec<Import> {
    // Users of the system account send these requests directly, except the request for their own identity.
    let is_system = account.name == system;
    let wanted = SERVICES.iter().filter(|service| {
        let mut imported = account.imports.iter();
        let is_imported = imported.any(|import| import.local() == service.subject);
        !is_imported && (!is_system || service.share)
    });
    let imports = wanted.filter_map(|service| {
        Some(Import {
            kind: ImportKind::Service {
                share: service.share,
            },
            account: system.into(),
            subject: service.subject_for(&account.name)?,
            to: Some(service.subject.into()),
            allow_trace: false,
        })
    });
    imports.collect()
}

/// Limits an explicit import of a built-in request, so that the importing account requests only its own data.
/// The import may use the general subject or the subject of the account. Returns `None` for an import of any
/// other subject.
pub(crate) fn own_import(import: &Import, account: &str) -> Option<Import> {
    let ImportKind::Service { share } = import.kind else {
        return None;
    };
    SERVICES.iter().find_map(|service| {
        let own = service.subject_for(account)?;
        let is_meant = import.subject == service.subject || import.subject == own;
        is_meant.then(|| Import {
            kind: ImportKind::Service {
                share: share || service.share,
            },
            subject: own,
            to: Some(import.local().into()),
            ..import.clone()
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subjects(account: &Account) -> Vec<String> {
        let imports = imports(account, "SYS");
        imports.into_iter().map(|import| import.subject).collect()
    }

    #[test]
    fn built_in_imports_are_limited_to_the_account() {
        let own = subjects(&Account::new("A"));
        assert_eq!(
            own,
            [
                "$SYS.REQ.USER.A.INFO",
                "$SYS.REQ.ACCOUNT.A.CONNZ",
                "$SYS.REQ.ACCOUNT.A.STATZ",
                "$SYS.REQ.ACCOUNT.A.CONNZ",
            ]
        );
        assert_eq!(subjects(&Account::new("SYS")), ["$SYS.REQ.USER.SYS.INFO"]);
        for name in ["PING", "a.b", "*", ">", "a b", ""] {
            assert!(subjects(&Account::new(name)).is_empty(), "{name}");
        }
    }

    #[test]
    fn explicit_imports_are_limited_to_the_account_too() {
        let import = |subject: &str, to: Option<&str>| Import {
            kind: ImportKind::Service { share: false },
            account: "SYS".into(),
            subject: subject.into(),
            to: to.map(String::from),
            allow_trace: false,
        };
        let asked = import("$SYS.REQ.ACCOUNT.PING.CONNZ", Some("connections"));
        let own = own_import(&asked, "A").expect("a built-in request");
        assert_eq!(own.subject, "$SYS.REQ.ACCOUNT.A.CONNZ");
        assert_eq!(own.local(), "connections");
        let own = own_import(&import("$SYS.REQ.ACCOUNT.A.STATZ", None), "A");
        assert_eq!(
            own.expect("a built-in request").local(),
            "$SYS.REQ.ACCOUNT.A.STATZ"
        );
        for other in [
            "$SYS.REQ.ACCOUNT.B.CONNZ",
            "$SYS.REQ.ACCOUNT.*.CONNZ",
            "$SYS.REQ.SERVER.PING.VARZ",
        ] {
            assert_eq!(own_import(&import(other, None), "A"), None, "{other}");
        }
    }
}
