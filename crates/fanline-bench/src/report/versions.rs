//! Versions of this program's dependencies.

pub(crate) fn built_with(packages: &[&str]) -> String {
    let named = packages.iter().map(|package| {
        let version = locked_version(package).unwrap_or("of unknown version");
        format!("{package} {version}")
    });
    named.collect::<Vec<_>>().join(", ")
}

fn locked_version(package: &str) -> Option<&'static str> {
    const LOCK: &str = include_str!("../../../../Cargo.lock");
    let entry = format!("name = \"{package}\"\nversion = \"");
    let (_, rest) = LOCK.split_once(&entry)?;
    rest.split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_match_lock_file() {
        assert_eq!(locked_version("rxrust"), Some("1.0.0-rc.6"));
        assert!(locked_version("tokio").is_some_and(|version| version.starts_with("1.")));
        assert_eq!(locked_version("no-such-package"), None);
    }
}
