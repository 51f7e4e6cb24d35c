//! Configured permissions of a user.

use std::time::Duration;

use super::error::AccessError;
use crate::subject::Filter;

/// Permissions of a user. The default allows everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    /// Subjects that the user may publish to.
    pub publish: Allowed,
    /// Subjects that the user may subscribe to.
    pub subscribe: Allowed,
    /// Permission to publish to the reply subjects of received messages.
    pub responses: Option<AllowResponses>,
}

/// One direction of [`Permissions`]. A deny rule overrides all allow rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// Allowed patterns; `None` allows everything.
    pub allow: Option<Vec<Pattern>>,
    /// Denied patterns.
    pub deny: Vec<Pattern>,
}

impl Allowed {
    /// Parses patterns for publishing.
    ///
    /// # Errors
    ///
    /// If one of them is not a valid subject.
    pub fn publish(allow: Option<&[&str]>, deny: &[&str]) -> Result<Self, AccessError> {
        Allowed::parse(allow, deny, Pattern::parse)
    }

    /// Parses patterns for subscribing: subjects, optionally followed by a queue group.
    ///
    /// # Errors
    ///
    /// If one of them is not a valid subject.
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

/// A subject filter. For subscriptions, optionally with a pattern for the queue group's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    subject: String,
    queue: Option<String>,
}

impl Pattern {
    /// Parses `subject`.
    ///
    /// # Errors
    ///
    /// If it is invalid.
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
    ///
    /// If it is invalid.
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

    /// Returns the pattern for the queue group's name; `None` matches subscriptions with and without a queue
    /// group.
    pub fn queue(&self) -> Option<&str> {
        self.queue.as_deref()
    }
}

/// Permission to respond, see [`Permissions::responses`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllowResponses {
    /// Responses per request; `None` is unlimited.
    pub max: Option<u64>,
    /// Maximum time from the request to a response; `None` is unlimited.
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
