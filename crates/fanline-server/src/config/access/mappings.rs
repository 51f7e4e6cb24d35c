//! Mappings: `{ a: b, "c.*": [ { destination: "d.$1", weight: 80 }, { destination: "e.$1" } ] }`.

use fanline_engine::auth::Mapping;

use super::fault;
use crate::config::read::{Given, Read};
use crate::config::value::Value;

/// Reads a block of mappings.
pub(in crate::config) fn mappings(given: &Given<'_>) -> Read<Vec<Mapping>> {
    given.fields()?.iter().map(mapping).collect()
}

fn mapping(given: &Given<'_>) -> Read<Mapping> {
    let items = match given.node.value {
        Value::Text(_) => {
            return Mapping::new(given.key, given.text()?).map_err(|e| fault(given, e));
        }
        Value::List(_) => given.items()?,
        Value::Map(_) => vec![Given { ..*given }],
        _ => return Err(given.fault("Expected an entry for the mapping destination")),
    };
    let destinations: Vec<_> = items.iter().map(destination).collect::<Read<_>>()?;
    let weighted: Vec<_> = destinations
        .iter()
        .map(|(name, weight, cluster)| (name.as_str(), *weight, cluster.as_deref()))
        .collect();
    Mapping::weighted(given.key, &weighted).map_err(|e| fault(given, e))
}

fn destination(given: &Given<'_>) -> Read<(String, u8, Option<String>)> {
    let (mut name, mut percent, mut cluster) = (None, 100, None);
    for field in given.fields()? {
        match field.key.to_ascii_lowercase().as_str() {
            "dest" | "destination" => name = field.some_text()?,
            "weight" => percent = weight(&field)?,
            _ => cluster = field.some_text()?,
        }
    }
    let name = name.ok_or_else(|| given.fault("Expected a destination for the mapping"))?;
    Ok((name, percent, cluster))
}

/// A number or a text that ends in `%`.
fn weight(field: &Given<'_>) -> Read<u8> {
    let weight = match &field.node.value {
        Value::Text(text) => text.trim_end_matches('%').parse().ok(),
        _ => u8::try_from(field.integer()?).ok(),
    };
    weight
        .filter(|weight| *weight <= 100)
        .ok_or_else(|| field.fault("Invalid weight, needs to be <= 100"))
}
