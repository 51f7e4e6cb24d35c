//! Resolution of imports: selects the requested imports that current exports allow. An import without an
//! export stays pending, and neither account is refused because of it.

use super::account::{Authority, RequestedImport, is_revoked};
use super::{by_name, imports};
use crate::auth::account::{Account, ImportKind};
use crate::auth::jwt::ExportClaims;

/// Resolves the exports and imports of all accounts that have a token; `now` is in seconds since 1970.
pub(super) fn resolve_imports(accounts: &mut [Account], now: i64) {
    let names = by_name(accounts);
    for at in 0..accounts.len() {
        let Some(authority) = accounts[at].authority.clone() else {
            continue;
        };
        accounts[at].imports.clear();
        let claims = &authority.claims.body.exports;
        for (export_at, claims) in claims.iter().enumerate().filter(|(_, c)| c.token_req) {
            let may = |importer: &&Account| is_activated(&authority, claims, importer, now);
            let importers = accounts.iter().filter(may);
            let importers: Vec<String> = importers.map(|account| account.name.clone()).collect();
            if let Some(export) = accounts[at].exports.get_mut(export_at) {
                export.accounts = Some(importers);
            }
        }
    }
    for at in 0..accounts.len() {
        let Some(authority) = accounts[at].authority.clone() else {
            continue;
        };
        for requested in &authority.requested {
            if imports::stands(&accounts[at], &requested.import, accounts, &names) {
                let import = requested.import.clone();
                accounts[at].imports.push(import);
            }
        }
    }
    for at in 0..accounts.len() {
        for import_at in (0..accounts[at].imports.len()).rev() {
            let account = &accounts[at];
            let import = &account.imports[import_at];
            if account.authority.is_some() && imports::leads_back(account, import, accounts, &names)
            {
                accounts[at].imports.remove(import_at);
            }
        }
    }
}

/// Returns whether an account has an activation token for an export that requires one.
fn is_activated(exporter: &Authority, export: &ExportClaims, importer: &Account, now: i64) -> bool {
    let theirs = importer
        .authority
        .iter()
        .flat_map(|theirs| &theirs.requested);
    let mut theirs = theirs.filter(|requested| requested.import.account == exporter.claims.subject);
    theirs.any(|requested| activates(exporter, export, &importer.name, requested, now))
}

fn activates(
    exporter: &Authority,
    export: &ExportClaims,
    importer: &str,
    requested: &RequestedImport,
    now: i64,
) -> bool {
    let Some(activation) = &requested.activation else {
        return false;
    };
    let kind = match requested.import.kind {
        ImportKind::Stream => "stream",
        ImportKind::Service { .. } => "service",
    };
    let named = &activation.body.issuer_account;
    let is_signed = match activation.issuer.encode() == exporter.claims.subject {
        true => named.is_empty() || *named == exporter.claims.subject,
        false => *named == exporter.claims.subject && exporter.signer(&activation.issuer).is_some(),
    };
    is_signed
        && export.kind == kind
        // In version 1, this is the `type` of the token.
        && activation.body.kind == kind
        && activation.subject == importer
        && activation.holds_at(now)
        && !is_revoked(&export.revocations, importer, activation.issued_at)
        && imports::covers(&export.subject, &requested.import.subject)
        && imports::covers(&activation.body.subject, &requested.import.subject)
}
