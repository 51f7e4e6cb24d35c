//! Resolves imports against exports. An import that no export permits stays inactive; neither account is
//! refused for it.

use super::account::{Authority, Wanted, is_revoked};
use super::{by_name, imports};
use crate::auth::account::{Account, ImportKind};
use crate::auth::jwt::ExportClaims;

/// Sets exports and imports of all accounts that have a token; `now` is in seconds since 1970.
pub(super) fn settle(accounts: &mut [Account], now: i64) {
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
        for wanted in &authority.wanted {
            if imports::stands(&accounts[at], &wanted.import, accounts, &names) {
                let import = wanted.import.clone();
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
    let theirs = importer.authority.iter().flat_map(|theirs| &theirs.wanted);
    let mut theirs = theirs.filter(|wanted| wanted.import.account == exporter.claims.subject);
    theirs.any(|wanted| activates(exporter, export, &importer.name, wanted, now))
}

fn activates(
    exporter: &Authority,
    export: &ExportClaims,
    importer: &str,
    wanted: &Wanted,
    now: i64,
) -> bool {
    let Some(activation) = &wanted.activation else {
        return false;
    };
    let kind = match wanted.import.kind {
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
        // Version 1 has it in another field.
        && activation.body.kind == kind
        && activation.subject == importer
        && activation.holds_at(now)
        && !is_revoked(&export.revocations, importer, activation.issued_at)
        && imports::covers(&export.subject, &wanted.import.subject)
        && imports::covers(&activation.body.subject, &wanted.import.subject)
}
