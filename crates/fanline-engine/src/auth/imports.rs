//! Validation of imports against exports.

use std::collections::HashMap;

use super::account::{Account, AccountId, Export, ExportKind, Import, ImportKind};
use super::error::AccessError;
use super::system;
use crate::subject::Filter;
use crate::subject::transform::Transform;

/// Checks exports and imports of all accounts.
pub(super) fn check(
    accounts: &[Account],
    by_name: &HashMap<String, AccountId>,
) -> Result<(), AccessError> {
    for account in accounts {
        for export in &account.exports {
            check_export(account, export, by_name)?;
        }
    }
    for account in accounts {
        for import in &account.imports {
            check_import(account, import, accounts, by_name)?;
        }
    }
    for account in accounts {
        for import in &account.imports {
            if leads_back(account, import, accounts, by_name) {
                let subject = import.subject.clone();
                return Err(AccessError::ImportCycle(account.name.clone(), subject));
            }
        }
    }
    Ok(())
}

/// Returns whether an import is valid, given the current exports.
pub(super) fn stands(
    account: &Account,
    import: &Import,
    accounts: &[Account],
    by_name: &HashMap<String, AccountId>,
) -> bool {
    check_import(account, import, accounts, by_name).is_ok()
}

fn check_export(
    account: &Account,
    export: &Export,
    by_name: &HashMap<String, AccountId>,
) -> Result<(), AccessError> {
    if Filter::parse(export.subject.as_bytes()).is_err() {
        return Err(AccessError::InvalidSubject(export.subject.clone()));
    }
    let named = || (account.name.clone(), export.subject.clone());
    let mut importers = export.accounts.iter().flatten();
    if let Some(unknown) = importers.find(|name| !by_name.contains_key(*name)) {
        let (account, subject) = named();
        return Err(AccessError::UnknownImporter(
            account,
            subject,
            unknown.clone(),
        ));
    }
    if let Some(position) = export.account_token_position {
        let token = position
            .checked_sub(1)
            .and_then(|at| export.subject.split('.').nth(at));
        if token != Some("*") {
            let (account, subject) = named();
            return Err(AccessError::AccountTokenPosition(account, subject));
        }
    }
    Ok(())
}

fn check_import(
    account: &Account,
    import: &Import,
    accounts: &[Account],
    by_name: &HashMap<String, AccountId>,
) -> Result<(), AccessError> {
    let subject = &import.subject;
    for filter in [subject.as_str(), import.local()] {
        // The local subject is checked as a transform below.
        if filter == subject && Filter::parse(filter.as_bytes()).is_err() {
            return Err(AccessError::InvalidSubject(filter.into()));
        }
    }
    let Some(exporter) = by_name.get(&import.account) else {
        return Err(AccessError::UnknownExporter {
            account: account.name.clone(),
            subject: subject.clone(),
            exporter: import.account.clone(),
        });
    };
    let is_built_in =
        || *exporter == AccountId::SYSTEM && system::own_import(import, &account.name).is_some();
    if !is_exported(import, account, &accounts[exporter.index()]) && !is_built_in() {
        let (account, subject) = (account.name.clone(), subject.clone());
        let exporter = import.account.clone();
        return Err(match import.kind {
            ImportKind::Stream => AccessError::StreamImportDenied {
                account,
                subject,
                exporter,
            },
            ImportKind::Service { .. } => AccessError::ServiceImportDenied {
                account,
                subject,
                exporter,
            },
        });
    }
    if let Some(to) = &import.to
        && Transform::reversible(subject, &in_order_of_wildcards(to)).is_err()
    {
        let (account, subject) = (account.name.clone(), subject.clone());
        return Err(AccessError::ImportMapping(account, subject, to.clone()));
    }
    Ok(())
}

/// Replaces each wildcard in an import's local name by its number: `a.*.b.*` becomes `a.$1.b.$2`. The numbers
/// refer to the wildcards of the imported subject, in order.
pub(crate) fn in_order_of_wildcards(to: &str) -> String {
    let mut count = 0;
    let number = |token: &str| match token {
        "*" => {
            count += 1;
            format!("${count}")
        }
        other => other.to_owned(),
    };
    to.split('.').map(number).collect::<Vec<_>>().join(".")
}

/// Returns whether the exporter exports the subject of an import to the importer.
pub(crate) fn is_exported(import: &Import, importer: &Account, exporter: &Account) -> bool {
    let mut exports = exporter.exports.iter();
    exports.any(|export| permits(export, import, importer))
}

/// Returns whether an export is of the import's kind, covers its subject, and allows the importer.
fn permits(export: &Export, import: &Import, importer: &Account) -> bool {
    let same_kind = match import.kind {
        ImportKind::Stream => export.kind == ExportKind::Stream,
        ImportKind::Service { .. } => export.kind != ExportKind::Stream,
    };
    let for_importer = match (&export.accounts, export.account_token_position) {
        (Some(accounts), _) => accounts.contains(&importer.name),
        (None, Some(position)) => {
            let mut tokens = import.subject.split('.');
            tokens.nth(position.saturating_sub(1)) == Some(importer.name.as_str())
        }
        (None, None) => true,
    };
    same_kind && for_importer && covers(&export.subject, &import.subject)
}

/// Returns whether `wide` matches every subject that `narrow` matches.
pub(crate) fn covers(wide: &str, narrow: &str) -> bool {
    let mut wide = wide.split('.');
    let mut narrow = narrow.split('.');
    loop {
        match (wide.next(), narrow.next()) {
            (None, None) => return true,
            (Some(">"), Some(_)) => return true,
            (_, Some(">")) => return false,
            (Some("*"), Some(_)) => {}
            (Some(w), Some(n)) if w == n => {}
            _ => return false,
        }
    }
}

/// Returns whether some subject matches both filters.
pub(crate) fn overlap(a: &str, b: &str) -> bool {
    let mut a = a.split('.');
    let mut b = b.split('.');
    loop {
        match (a.next(), b.next()) {
            (None, None) => return true,
            (Some(">"), Some(_)) | (Some(_), Some(">")) => return true,
            (Some("*"), Some(_)) | (Some(_), Some("*")) => {}
            (Some(a), Some(b)) if a == b => {}
            _ => return false,
        }
    }
}

/// Returns whether an import closes a cycle: messages that leave the importing account would return to it
/// through this import and the imports of other accounts.
pub(super) fn leads_back(
    origin: &Account,
    first: &Import,
    accounts: &[Account],
    by_name: &HashMap<String, AccountId>,
) -> bool {
    let mut seen: Vec<*const Import> = Vec::new();
    let mut open = vec![first];
    while let Some(import) = open.pop() {
        if seen.iter().any(|known| std::ptr::eq(*known, import)) {
            continue;
        }
        seen.push(import);
        if import.account == origin.name && overlap(&import.subject, first.local()) {
            return true;
        }
        let Some(exporter) = by_name.get(&import.account) else {
            continue;
        };
        let same_kind = |other: &&Import| {
            matches!(other.kind, ImportKind::Stream) == matches!(import.kind, ImportKind::Stream)
        };
        let imports = accounts[exporter.index()].imports.iter();
        open.extend(
            imports
                .filter(same_kind)
                .filter(|other| overlap(other.local(), &import.subject)),
        );
    }
    false
}
