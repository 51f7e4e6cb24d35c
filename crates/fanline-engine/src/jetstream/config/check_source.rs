//! Checks the origins of mirrors and sources.

use std::collections::HashSet;
use std::hash::Hash;

use super::check_stream::{check_filter, invalid, is_name, overlap};
use super::overlaps::Overlaps;
use super::stream::{External, StreamConfig, StreamSource};
use crate::jetstream::error::ApiError;
use crate::subject::is_literal_subject;
use crate::subject::transform::Transform;

/// The errors of [`check_origin`], which differ for mirrors and sources.
struct Words {
    what: &'static str,
    invalid_name: ApiError,
    filter_and_transforms: ApiError,
    overlapping_filters: ApiError,
    consumer_invalid: ApiError,
    transform_source: fn(String) -> ApiError,
    transform: fn(String) -> ApiError,
}

pub(super) fn check_mirror(config: &StreamConfig) -> Result<(), ApiError> {
    let Some(mirror) = &config.mirror else {
        return Ok(());
    };
    let rules = [
        (!config.subjects.is_empty(), ApiError::MIRROR_WITH_SUBJECTS),
        (!config.sources.is_empty(), ApiError::MIRROR_WITH_SOURCES),
        (config.first_seq > 0, ApiError::MIRROR_WITH_FIRST_SEQ),
        (config.allow_msg_counter, ApiError::MIRROR_WITH_COUNTERS),
        (config.allow_atomic, ApiError::MIRROR_WITH_ATOMIC_PUBLISH),
        (config.allow_batched, ApiError::MIRROR_WITH_BATCH_PUBLISH),
        (
            config.allow_msg_schedules,
            ApiError::MIRROR_WITH_MSG_SCHEDULES,
        ),
    ];
    if let Some((_, rule)) = rules.into_iter().find(|(broken, _)| *broken) {
        return Err(rule);
    }
    let words = Words {
        what: "the mirror",
        invalid_name: ApiError::MIRROR_INVALID_STREAM_NAME,
        filter_and_transforms: ApiError::MIRROR_MULTIPLE_FILTERS_NOT_ALLOWED,
        overlapping_filters: ApiError::MIRROR_OVERLAPPING_SUBJECT_FILTERS,
        consumer_invalid: ApiError::MIRROR_DURABLE_CONSUMER_CFG_INVALID,
        transform_source: |detail| ApiError::mirror_invalid_subject_filter(detail),
        transform: |detail| ApiError::mirror_invalid_transform_destination(detail),
    };
    check_origin(&config.name, mirror, &words)
}

pub(super) fn check_sources(config: &StreamConfig) -> Result<(), ApiError> {
    let words = Words {
        what: "the source:",
        invalid_name: ApiError::SOURCE_INVALID_STREAM_NAME,
        filter_and_transforms: ApiError::SOURCE_MULTIPLE_FILTERS_NOT_ALLOWED,
        overlapping_filters: ApiError::SOURCE_OVERLAPPING_SUBJECT_FILTERS,
        consumer_invalid: ApiError::SOURCE_DURABLE_CONSUMER_CFG_INVALID,
        transform_source: |detail| ApiError::source_invalid_subject_filter(detail),
        transform: |detail| ApiError::source_invalid_transform_destination(detail),
    };
    let mut origins = HashSet::new();
    for source in &config.sources {
        check_origin(&config.name, source, &words)?;
        if !origins.insert(origin(source)) {
            return Err(ApiError::SOURCE_DUPLICATE_DETECTED);
        }
    }
    Ok(())
}

fn check_origin(name: &str, source: &StreamSource, words: &Words) -> Result<(), ApiError> {
    if !is_name(&source.name) {
        return Err(words.invalid_name.clone());
    }
    match &source.external {
        Some(external) => check_external(external)?,
        None if source.name == name => return Err(invalid("detected cycle")),
        None => {}
    }
    if check_filter(&source.filter_subject).is_err() {
        let (filter, what) = (&source.filter_subject, words.what);
        return Err(ApiError::stream_create(format_args!(
            "subject filter '{filter}' for {what} invalid subject"
        )));
    }
    check_transforms(source, words)?;
    check_origin_consumer(source, words)
}

fn check_external(external: &External) -> Result<(), ApiError> {
    const API: &str = "$JS.API";
    let External { api, deliver } = external;
    if !deliver.is_empty() && !is_literal_subject(deliver.as_bytes()) {
        return Err(ApiError::stream_invalid_external_deliver_prefix(deliver));
    }
    if api.is_empty() {
        return Ok(());
    }
    if !is_literal_subject(api.as_bytes()) {
        return Err(invalid(format_args!(
            "stream external api prefix \"{api}\" must be a valid subject without wildcards"
        )));
    }
    if overlap(api, API) || api.starts_with(&format!("{API}.")) {
        return Err(ApiError::stream_external_api_overlap(api, API));
    }
    Ok(())
}

fn check_transforms(source: &StreamSource, words: &Words) -> Result<(), ApiError> {
    let transforms = &source.subject_transforms;
    if !transforms.is_empty() && !source.filter_subject.is_empty() {
        return Err(words.filter_and_transforms.clone());
    }
    let mut overlaps = Overlaps::default();
    let mut has_empty = false;
    for transform in transforms {
        check_filter(&transform.src).map_err(words.transform_source)?;
        if !transform.dest.is_empty() {
            Transform::new(&transform.src, &transform.dest)
                .map_err(|error| (words.transform)(error.to_string()))?;
        }
        let is_second = match transform.src.as_str() {
            "" => std::mem::replace(&mut has_empty, true),
            filter => overlaps.add(filter)?.is_some(),
        };
        if is_second {
            return Err(words.overlapping_filters.clone());
        }
    }
    Ok(())
}

/// Checks that a source with a consumer created in advance sets neither a start nor filters, because the
/// consumer determines them.
fn check_origin_consumer(source: &StreamSource, words: &Words) -> Result<(), ApiError> {
    let Some(consumer) = &source.consumer else {
        return Ok(());
    };
    let starts = source.opt_start_seq > 0 || source.opt_start_time.is_some();
    let filters = !source.filter_subject.is_empty();
    let subject = consumer.deliver_subject.as_bytes();
    if starts || filters || !is_name(&consumer.name) || !is_literal_subject(subject) {
        return Err(words.consumer_invalid.clone());
    }
    Ok(())
}

/// Returns the identifying fields of a source. No two sources of a stream may have the same values in all of
/// them.
fn origin(source: &StreamSource) -> impl Eq + Hash {
    let transforms = source.subject_transforms.iter();
    let transforms: Vec<_> = transforms.map(|t| (&*t.src, &*t.dest)).collect();
    let external = source.external.as_ref();
    let external = external.map(|external| (&*external.api, &*external.deliver));
    (&*source.name, &*source.filter_subject, transforms, external)
}
