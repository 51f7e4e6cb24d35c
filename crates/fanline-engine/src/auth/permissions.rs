//! Permissions, as configured.

use std::time::Duration;

use super::error::AccessError;
use crate::subject::Filter;

/// The permissions of a user. The default allows everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    /// Permissions to publish.
    pub publish: Allowed,
    /// Permissions to subscribe.
    pub subscribe: Allowed,
    /// Permission to publish to the reply subjects of received messages.
    pub responses: Option<AllowResponses>,
}

/// One direction of [`Permissions`]. `deny` takes precedence over `allow`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// The allowed subjects; all if `None`.
    pub allow: Option<Vec<Pattern>>,
    /// The denied subjects.
    pub deny: Vec<Pattern>,
}

impl Allowed {
    /// Parses permissions to publish.
    ///
    /// # Errors
    /// Fails if one is not a subject.
    pub fn publish(allow: Option<&[&str]>, deny: &[&str]) -> Result<Self, AccessError> {
        Allowed::parse(allow, deny, Pattern::parse)
    }

    /// Parses permissions to subscribe: subjects, each optionally followed by a queue.
    ///
    /// # Errors
    /// Fails if one is not a subject.
    pub fn subscribe(allow: Option<&[&str]>, deny: &[&str]) -> Result<Self, AccessError> {
        Allowed::parse(allow, deny, Pattern::parse_with_queue)
    }

    fn parse(
        allow: Option<&[&str]>,
        deny: &[&str],
        parse: fn(&str) -> Result<Pattern, AccessError>,
    ) -> Result<Self, AccessError> {
        let all = |texts: &[&str]| texts.iter().map(|text| parse(text)).collect();
        Ok(Allowed {
            allow: allow.map(all).transpose()?,
            deny: all(deny)?,
        })
    }
}

/// A subject filter, optionally with a pattern of queue names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    subject: String,
    queue: Option<String>,
}

impl Pattern {
    /// Parses `subject`.
    ///
    /// # Errors
    /// Fails if it is not one.
    pub fn parse(text: &str) -> Result<Self, AccessError> {
        match Filter::parse(text.as_bytes()) {
            Ok(_) => Ok(Pattern {
                subject: text.into(),
                queue: None,
            }),
            Err(_) => Err(AccessError::InvalidSubject(text.into())),
        }
    }

    /// Parses `subject` or `subject queue`.
    ///
    /// # Errors
    /// Fails if it is neither.
    pub fn parse_with_queue(text: &str) -> Result<Self, AccessError> {
        let mut words = text.split_whitespace();
        let (subject, queue) = (words.next().unwrap_or_default(), words.next());
        let is_filter = |text: &str| Filter::parse(text.as_bytes()).is_ok();
        if words.next().is_some() || !is_filter(subject) || !queue.is_none_or(is_filter) {
            return Err(AccessError::InvalidSubject(text.into()));
        }
        Ok(Pattern {
            subject: subject.into(),
            queue: queue.map(String::from),
        })
    }

    /// Returns the subject filter.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// Returns the queue filter; `None` matches any queue, and none.
    pub fn queue(&self) -> Option<&str> {
        self.queue.as_deref()
    }
}

/// The limits of [`Permissions::responses`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllowResponses {
    /// Replies to one request; `None` is no limit.
    pub max: Option<u64>,
    /// The time after the request; `None` is no limit.
    pub expires: Option<Duration>,
}

impl Default for AllowResponses {
    fn default() -> Self {
        AllowResponses {
            max: Some(1),
            expires: Some(Duration::from_secs(120)),
        }
    }
}
