//! The input is a configuration file. It may include itself.

use std::io;
use std::path::Path;

use fanline_server::config::{ConfigError, Loaded, Source, load_over, parse};

const NAME: &str = "fuzz.conf";

struct Only<'a>(&'a [u8]);

impl Source for Only<'_> {
    fn file(&self, path: &Path) -> io::Result<Vec<u8>> {
        match path == Path::new(NAME) {
            true => Ok(self.0.to_vec()),
            false => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn variable(&self, name: &str) -> Option<String> {
        match name {
            "PORT" => Some("4222".into()),
            "CIRCLE" => Some("$CIRCLE".into()),
            _ => None,
        }
    }
}

/// Checks that the parser does not panic, that errors have a valid position, and that a valid file gives the
/// same result each time.
pub fn check(data: &[u8]) {
    let source = Only(data);
    let lines = data.iter().filter(|byte| **byte == b'\n').count() + 1;
    let place_exists = |place: &fanline_server::config::Place| {
        let line = usize::try_from(place.line).unwrap_or(usize::MAX);
        assert!(line >= 1 && place.column >= 1, "{place}");
        assert!(
            &*place.file != NAME || line <= lines,
            "{place} of {lines} lines"
        );
    };
    match parse(NAME.as_ref(), &source) {
        Ok(map) => assert_eq!(parse(NAME.as_ref(), &source), Ok(map)),
        Err(ConfigError::Syntax { place, reason }) => {
            place_exists(&place);
            assert!(!reason.is_empty());
        }
        Err(_) => {}
    }
    match load_over(NAME.as_ref(), Loaded::default(), &source) {
        Ok(loaded) => {
            let changes = loaded.changes(&loaded).expect("nothing is different");
            assert!(changes.is_empty(), "{changes:?}");
            assert!(!loaded.settings().is_empty());
        }
        Err(ConfigError::Values(faults)) => {
            assert!(!faults.is_empty());
            faults
                .iter()
                .filter_map(|f| f.place.as_ref())
                .for_each(place_exists);
        }
        Err(_) => {}
    }
}
