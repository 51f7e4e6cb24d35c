//! Requests that every account may send to the system account without an export.

use super::account::{Account, Import, ImportKind};
use super::{Access, AccountId, covers};
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

/// Returns whether each server of a cluster answers a built-in request.
pub(crate) fn is_answered_by_all(subject: &str) -> bool {
    subject.starts_with(OF_ACCOUNT)
}

/// Subjects of JetStream requests, except those for messages: the server of the stream or consumer is subscribed to
/// these in the account itself.
pub(crate) const JETSTREAM: [&str; 15] = [
    "$JS.API.INFO",
    "$JS.API.STREAM.>",
    "$JS.API.CONSUMER.CREATE.>",
    "$JS.API.CONSUMER.DURABLE.>",
    "$JS.API.CONSUMER.INFO.>",
    "$JS.API.CONSUMER.LIST.>",
    "$JS.API.CONSUMER.NAMES.>",
    "$JS.API.CONSUMER.DELETE.>",
    "$JS.API.CONSUMER.PAUSE.>",
    "$JS.API.CONSUMER.RESET.>",
    "$JS.API.CONSUMER.UNPIN.>",
    "$JS.API.CONSUMER.LEADER.>",
    "$JS.API.META.>",
    "$JS.API.SERVER.>",
    "$JS.API.ACCOUNT.>",
];

/// Returns the imports by which an account uses the JetStream of other servers of the cluster. There are none if the
/// account has no JetStream, or imports that of another account.
pub(crate) fn jetstream_imports(access: &Access, id: AccountId, system: &str) -> Vec<Import> {
    let Some(account) = access.account(id) else {
        return Vec::new();
    };
    let imports_api = |import: &Import| {
        matches!(import.kind, ImportKind::Service { .. }) && covers(import.local(), JETSTREAM[0])
    };
    if access.jetstream_limits(id).is_none() || account.imports.iter().any(imports_api) {
        return Vec::new();
    }
    let import = |subject: &&str| Import {
        kind: ImportKind::Service { share: true },
        account: system.into(),
        subject: (*subject).into(),
        to: None,
        allow_trace: false,
    };
    JETSTREAM.iter().map(import).collect()
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
    use crate::auth::{AccessConfig, GLOBAL_ACCOUNT, SYSTEM_ACCOUNT};
    use crate::limits::AccountLimits;

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
    fn accounts_with_jetstream_import_its_requests() {
        let access = |edit: fn(&mut AccessConfig)| {
            let mut config = AccessConfig::default();
            edit(&mut config);
            Access::new(config).expect("it is valid")
        };
        let imports = |access: &Access, name: &str| {
            let id = access.account_id(name).expect("it exists");
            let imports = jetstream_imports(access, id, "$SYS").into_iter();
            imports.map(|import| import.subject).collect::<Vec<_>>()
        };
        assert_eq!(imports(&access(|_| {}), GLOBAL_ACCOUNT), JETSTREAM);
        let some = access(|config| {
            config.account_mut("A").jetstream = Some(AccountLimits::default());
            config.account_mut("B");
        });
        assert_eq!(imports(&some, "A"), JETSTREAM);
        for name in ["B", GLOBAL_ACCOUNT, SYSTEM_ACCOUNT] {
            assert!(imports(&some, name).is_empty(), "{name}");
        }
        let messages = ["$JS.API.CONSUMER.MSG.NEXT.S.C", "$JS.API.DIRECT.GET.S"];
        for subject in messages {
            assert!(!JETSTREAM.iter().any(|filter| covers(filter, subject)));
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
