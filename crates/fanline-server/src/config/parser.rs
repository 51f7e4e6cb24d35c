//! Parses a configuration: keys, blocks, lists, variables, and includes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::{ConfigError, Place};
use super::lexer::{Cursor, Scalar, is_line_end};
use super::source::{BYTES_MAX, Source};
use super::value::{Entry, Map, Node, Value};

/// Largest depth of nested blocks and lists. Each level takes stack space.
const DEPTH_MAX: usize = 64;
/// Largest depth of nested includes. A greater depth is most likely a cycle.
const INCLUDE_DEPTH_MAX: usize = 16;
/// Largest number of includes.
const INCLUDES_MAX: usize = 1_000;
/// Largest number of values. The value of a variable counts each time it is used.
const VALUES_MAX: usize = 4_000_000;
/// Largest depth of environment variables that refer to each other.
const ENVIRONMENT_DEPTH_MAX: usize = 16;

/// Parses a file and its includes.
pub(super) fn parse_file(path: &Path, source: &dyn Source) -> Result<Map, ConfigError> {
    let mut budget = Budget::default();
    let name = path.display().to_string();
    let map = read(path, &name, source, &mut budget, 0)?;
    if map.is_empty() {
        return Err(ConfigError::Empty(name));
    }
    Ok(map)
}

/// The number of bytes, values, and includes so far, for their limits.
#[derive(Default)]
struct Budget {
    bytes: usize,
    values: usize,
    includes: usize,
}

fn read(
    path: &Path,
    name: &str,
    source: &dyn Source,
    budget: &mut Budget,
    includes: usize,
) -> Result<Map, ConfigError> {
    let failed = |reason: String| ConfigError::Read {
        path: name.to_owned(),
        reason,
    };
    let bytes = source.file(path).map_err(|error| {
        let text = error.to_string().to_lowercase();
        failed(text.split(" (os error").next().unwrap_or_default().into())
    })?;
    budget.bytes += bytes.len();
    if budget.bytes > BYTES_MAX {
        return Err(failed(format!(
            "a configuration has at most {BYTES_MAX} bytes"
        )));
    }
    let file: Arc<str> = name.into();
    let text = text(&bytes, &file)?;
    let mut parser = Parser {
        cursor: Cursor::new(text, file),
        folder: path.parent().map(Path::to_path_buf).unwrap_or_default(),
        source,
        budget,
        scopes: vec![Map::default()],
        depth: 0,
        includes,
        environment: 0,
    };
    parser.document()?;
    Ok(parser.scopes.pop().unwrap_or_default())
}

fn text<'a>(bytes: &'a [u8], file: &Arc<str>) -> Result<&'a str, ConfigError> {
    let (valid, reason) = match std::str::from_utf8(bytes) {
        Ok(text) => match text.find('\0') {
            None => return Ok(text),
            Some(at) => (&text[..at], "a NUL byte has no place in a configuration"),
        },
        Err(error) => {
            let valid = std::str::from_utf8(&bytes[..error.valid_up_to()]);
            (valid.unwrap_or_default(), "this byte is not UTF-8")
        }
    };
    let line = valid.matches('\n').count() + 1;
    let column = valid.chars().rev().take_while(|c| *c != '\n').count() + 1;
    Err(ConfigError::Syntax {
        place: Place {
            file: Arc::clone(file),
            line: u32::try_from(line).unwrap_or(u32::MAX),
            column: u32::try_from(column).unwrap_or(u32::MAX),
        },
        reason: reason.into(),
    })
}

struct Parser<'a, 'b> {
    cursor: Cursor<'a>,
    /// The file's folder, relative to which includes are resolved.
    folder: PathBuf,
    source: &'b dyn Source,
    budget: &'b mut Budget,
    /// The open blocks, innermost last, for the lookup of variables.
    scopes: Vec<Map>,
    depth: usize,
    includes: usize,
    environment: usize,
}

impl Parser<'_, '_> {
    fn document(&mut self) -> Result<(), ConfigError> {
        loop {
            self.skip_to_word();
            match self.cursor.peek() {
                None => return Ok(()),
                // The whole file may be in braces, as in JSON.
                Some('{') => {
                    self.cursor.bump();
                    self.enter()?;
                    self.pairs()?;
                    self.depth -= 1;
                }
                Some('}') => {
                    // nats-server accepts a `}` at the end of the file.
                    let error = self.cursor.error("this `}` closes nothing");
                    self.cursor.bump();
                    self.skip_to_word();
                    if self.cursor.peek().is_some() {
                        return Err(error);
                    }
                }
                Some(_) => {
                    self.pair()?;
                    self.end_of_line()?;
                }
            }
        }
    }

    /// Checks that only a comment or the end of the line follows a value outside of braces.
    fn end_of_line(&mut self) -> Result<(), ConfigError> {
        self.cursor.skip_blanks();
        if self.cursor.skip_comment() {
            return Ok(());
        }
        match self.cursor.peek() {
            None => {}
            Some(c) if is_line_end(c) || matches!(c, ',' | ';' | '}') => {
                self.cursor.bump();
            }
            Some(_) => {
                return Err(self
                    .cursor
                    .expected("the value to end with a new line, a comma or a comment"));
            }
        }
        Ok(())
    }

    /// Parses keys and values up to `}`.
    fn pairs(&mut self) -> Result<(), ConfigError> {
        loop {
            self.skip_to_word();
            match self.cursor.peek() {
                None => return Err(self.cursor.expected("a `}` at the end of the block")),
                Some('}') => {
                    self.cursor.bump();
                    return Ok(());
                }
                Some(_) => self.pair()?,
            }
            self.cursor.skip_blanks();
            if self.cursor.skip_comment() {
                continue;
            }
            match self.cursor.peek() {
                Some('}') => {}
                Some(c) if is_line_end(c) || matches!(c, ',' | ';') => {
                    self.cursor.bump();
                }
                _ => {
                    return Err(self
                        .cursor
                        .expected("a comma, a new line or a `}` after the value"));
                }
            }
        }
    }

    fn skip_to_word(&mut self) {
        loop {
            self.cursor.skip_space();
            if !self.cursor.skip_comment() {
                return;
            }
        }
    }

    /// Parses a key with its value, or an `include`.
    fn pair(&mut self) -> Result<(), ConfigError> {
        let place = self.cursor.place();
        let (key, is_quoted) = self.cursor.key()?;
        let is_separated = self.cursor.peek().is_some_and(|c| c == ':' || c == '=');
        if !is_quoted && !is_separated && key.eq_ignore_ascii_case("include") {
            return self.include(place);
        }
        self.cursor.skip_space();
        if self.cursor.take(':') || self.cursor.take('=') {
            self.cursor.skip_blanks();
            if self.cursor.peek().is_some_and(is_line_end) {
                return Err(self.cursor.expected("a value"));
            }
        } else if self.cursor.peek().is_none() {
            return Err(self.cursor.expected("a value"));
        }
        let node = self.value()?;
        self.insert(Entry {
            key,
            place,
            node,
            is_variable: false,
        });
        Ok(())
    }

    fn insert(&mut self, entry: Entry) {
        // The file's own scope always exists.
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(entry);
        }
    }

    fn enter(&mut self) -> Result<(), ConfigError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.cursor.error(format!(
                "blocks and lists can be nested at most {DEPTH_MAX} levels deep"
            )));
        }
        Ok(())
    }

    fn charge(&mut self, values: usize) -> Result<(), ConfigError> {
        self.budget.values = self.budget.values.saturating_add(values);
        if self.budget.values > VALUES_MAX {
            return Err(self
                .cursor
                .error(format!("a configuration has at most {VALUES_MAX} values")));
        }
        Ok(())
    }

    fn value(&mut self) -> Result<Node, ConfigError> {
        self.charge(1)?;
        let place = self.cursor.place();
        let value = match self.cursor.peek() {
            Some('{') => {
                self.cursor.bump();
                self.enter()?;
                self.scopes.push(Map::default());
                self.pairs()?;
                self.depth -= 1;
                Value::Map(self.scopes.pop().unwrap_or_default())
            }
            Some('[') => {
                self.cursor.bump();
                self.enter()?;
                let nodes = self.list()?;
                self.depth -= 1;
                Value::List(nodes)
            }
            _ => match self.cursor.scalar()? {
                Scalar::Value(value) => value,
                Scalar::Variable(name) => self.variable(&name, &place)?,
            },
        };
        Ok(Node { value, place })
    }

    /// Parses values up to `]`.
    fn list(&mut self) -> Result<Vec<Node>, ConfigError> {
        let mut nodes = Vec::new();
        loop {
            self.skip_to_word();
            match self.cursor.peek() {
                None => return Err(self.cursor.expected("a `]` at the end of the list")),
                Some(']') => {
                    self.cursor.bump();
                    return Ok(nodes);
                }
                Some(',') => return Err(self.cursor.expected("a value")),
                Some(_) => nodes.push(self.value()?),
            }
            self.cursor.skip_blanks();
            if self.cursor.skip_comment() {
                continue;
            }
            match self.cursor.peek() {
                Some(']') => {}
                Some(c) if is_line_end(c) || c == ',' => {
                    self.cursor.bump();
                }
                _ => {
                    return Err(self
                        .cursor
                        .expected("a comma, a new line or a `]` after the value"));
                }
            }
        }
    }

    /// Returns the value of a key in an enclosing block, or of an environment variable.
    fn variable(&mut self, name: &str, place: &Place) -> Result<Value, ConfigError> {
        let found = self
            .scopes
            .iter_mut()
            .rev()
            .find_map(|scope| scope.refer(name));
        if let Some(node) = found {
            let (value, count) = (node.value.clone(), node.count());
            self.charge(count)?;
            return Ok(value);
        }
        let missing = || ConfigError::Syntax {
            place: place.clone(),
            reason: format!("variable reference for '{name}' can not be found"),
        };
        let text = self.source.variable(name).ok_or_else(missing)?;
        self.environment_value(name, &text, place)
    }

    /// Parses the value of an environment variable, which has the same syntax as in a file.
    fn environment_value(
        &mut self,
        name: &str,
        text: &str,
        place: &Place,
    ) -> Result<Value, ConfigError> {
        if self.environment >= ENVIRONMENT_DEPTH_MAX {
            return Err(ConfigError::Syntax {
                place: place.clone(),
                reason: format!("variable reference cycle for '{name}'"),
            });
        }
        let mut parser = Parser {
            cursor: Cursor::new(text, format!("${name}").into()),
            folder: self.folder.clone(),
            source: self.source,
            budget: self.budget,
            scopes: vec![Map::default()],
            depth: self.depth,
            includes: self.includes,
            environment: self.environment + 1,
        };
        parser.cursor.skip_blanks();
        let node = parser.value()?;
        parser.end_of_line()?;
        Ok(node.value)
    }

    /// Adds the keys of another file at this position.
    fn include(&mut self, place: Place) -> Result<(), ConfigError> {
        let name = self.cursor.file_name()?;
        let failed = |reason: String| ConfigError::Syntax {
            place: place.clone(),
            reason: format!("error parsing include file '{name}', {reason}"),
        };
        if self.includes >= INCLUDE_DEPTH_MAX {
            return Err(failed(format!(
                "includes can be nested at most {INCLUDE_DEPTH_MAX} levels deep"
            )));
        }
        self.budget.includes += 1;
        if self.budget.includes > INCLUDES_MAX {
            return Err(failed(format!(
                "at most {INCLUDES_MAX} files can be included"
            )));
        }
        // Absolute names are relative to the folder, too, as in nats-server.
        let path = self.folder.join(name.trim_start_matches('/'));
        let shown = path.display().to_string();
        let map = read(&path, &shown, self.source, self.budget, self.includes + 1);
        let map = map.map_err(|error| match error {
            ConfigError::Read { .. } => failed(error.to_string()),
            error => error,
        })?;
        for entry in map.into_entries() {
            self.insert(entry);
        }
        Ok(())
    }
}
