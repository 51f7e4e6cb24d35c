//! What a user may publish and subscribe to, as it was configured.

use std::time::Duration;

use super::error::AccessError;
use crate::subject::Filter;

/// What a user may do. The default allows everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    /// What it may publish.
    pub publish: Allowed,
    /// What it may subscribe to.
    pub subscribe: Allowed,
    /// It may publish to the reply topics of what it received.
    pub responses: Option<AllowResponses>,
}

/// One direction of [`Permissions`]. What is denied is denied, whatever is allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// What is allowed; everything when `None`.
    pub allow: Option<Vec<Pattern>>,
    /// What is not.
    pub deny: Vec<Pattern>,
}

impl Allowed {
    /// What a user may publish.
    ///
    /// # Errors
    /// When one of them is no subject.
    pub fn publish(allow: Option<&[&str]>, deny: &[&str]) -> Result<Self, AccessError> {
        Allowed::parse(allow, deny, Pattern::parse)
    }

    /// What a user may subscribe to: subjects, each perhaps with a queue behind it.
    ///
    /// # Errors
    /// When one of them is no subject.
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

/// A filter, for subscriptions perhaps with a pattern of queue names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    subject: String,
    queue: Option<String>,
}

impl Pattern {
    /// `subject`.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(text: &str) -> Result<Self, AccessError> {
        match Filter::parse(text.as_bytes()) {
            Ok(_) => Ok(Pattern {
                subject: text.into(),
                queue: None,
            }),
            Err(_) => Err(AccessError::InvalidSubject(text.into())),
        }
    }

    /// `subject` or `subject queue`.
    ///
    /// # Errors
    /// When it is neither.
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

    /// The filter of topics.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// The queues, as a filter; `None` is with any or without.
    pub fn queue(&self) -> Option<&str> {
        self.queue.as_deref()
    }
}

/// See [`Permissions::responses`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllowResponses {
    /// How many answers to one request; `None` is any number.
    pub max: Option<u64>,
    /// For how long after the request; `None` is for ever.
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
