//! Permission templates of scoped signing keys. `{{…}}` in a template stands for a value from the token of
//! the user or its account.

use super::account::Authority;
use crate::auth::jwt::{Claims, PermissionClaims, SubjectClaims, UserClaims};
use crate::subject::Filter;

/// Largest number of subjects that one template line may expand to. If a line expands to more, the user is
/// refused.
const EXPANSIONS_MAX: usize = 256;

/// Returns the permissions of one user. Returns `None` if a denied subject cannot be expanded, or expands to
/// too many subjects.
pub(super) fn expand(
    template: &PermissionClaims,
    user: &Claims<UserClaims>,
    authority: &Authority,
) -> Option<PermissionClaims> {
    Some(PermissionClaims {
        publish: direction(&template.publish, user, authority)?,
        subscribe: direction(&template.subscribe, user, authority)?,
        resp: template.resp.clone(),
    })
}

fn direction(
    template: &SubjectClaims,
    user: &Claims<UserClaims>,
    authority: &Authority,
) -> Option<SubjectClaims> {
    let (mut allow, mut deny) = (Vec::new(), Vec::new());
    for line in &template.allow {
        let lines = lines(line, user, authority)?;
        allow.extend(lines.into_iter().filter(|line| is_pattern(line)));
    }
    for line in &template.deny {
        let lines = lines(line, user, authority)?;
        // Without the deny rule, its subjects would be allowed.
        if lines.is_empty() || !lines.iter().all(|line| is_pattern(line)) {
            return None;
        }
        deny.extend(lines);
    }
    if allow.is_empty() && !template.allow.is_empty() {
        // No allowed subject is left. An empty list would allow all subjects, so all are denied.
        deny.push(">".into());
    }
    Some(SubjectClaims { allow, deny })
}

/// Expands one line to one result per combination of tag values.
fn lines(line: &str, user: &Claims<UserClaims>, authority: &Authority) -> Option<Vec<String>> {
    let mut made = vec![String::new()];
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("{{") {
        let (operation, after) = after.split_once("}}")?;
        let values = values(operation.trim(), user, authority)?;
        if made.len().saturating_mul(values.len()) > EXPANSIONS_MAX {
            return None;
        }
        let with = |start: &String| {
            let start = format!("{start}{before}");
            let ends = values.iter().map(move |value| format!("{start}{value}"));
            ends.collect::<Vec<String>>()
        };
        made = made.iter().flat_map(with).collect();
        rest = after;
    }
    for line in &mut made {
        line.push_str(rest);
    }
    Some(made)
}

/// Returns the values of an operation; `None` if it is unknown.
fn values(
    operation: &str,
    user: &Claims<UserClaims>,
    authority: &Authority,
) -> Option<Vec<String>> {
    let account = &authority.claims;
    let (name, argument) = operation.strip_suffix(')')?.split_once('(')?;
    let argument = argument.trim();
    let values = match (name.to_ascii_lowercase().as_str(), argument) {
        ("name", "") => literal(&user.name),
        ("subject", "") => vec![user.subject.clone()],
        ("account-name", "") => literal(&account.name),
        ("account-subject", "") => vec![account.subject.clone()],
        ("tag", key) if !key.is_empty() => tags(&user.body.tags, key),
        ("account-tag", key) if !key.is_empty() => tags(&account.body.tags, key),
        _ => return None,
    };
    Some(values)
}

/// Returns a name, unless the name would add a wildcard to the subject. Users often choose their names
/// themselves.
fn literal(name: &str) -> Vec<String> {
    let has_wildcard = name
        .split(['.', ' '])
        .any(|token| matches!(token, "*" | ">"));
    if has_wildcard {
        return Vec::new();
    }
    vec![name.to_owned()]
}

/// Returns the values of the tags `key:value` with this key, case-insensitive.
fn tags(tags: &[String], key: &str) -> Vec<String> {
    let pairs = tags.iter().filter_map(|tag| tag.split_once(':'));
    let fitting = pairs.filter(|(known, _)| known.trim().eq_ignore_ascii_case(key));
    fitting.map(|(_, value)| value.trim().to_owned()).collect()
}

/// Returns whether a line is a filter, or a filter and a queue group. A tag value must not add more words.
fn is_pattern(line: &str) -> bool {
    let mut words = line.split(' ');
    let is_filter = |word: &str| Filter::parse(word.as_bytes()).is_ok();
    words.next().is_some_and(is_filter)
        && words.next().is_none_or(is_filter)
        && words.next().is_none()
}
