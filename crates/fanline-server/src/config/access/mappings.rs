//! Mappings: `{ a: b, "c.*": [ { destination: "d.$1", weight: 80 }, { destination: "e.$1" } ] }`.

use fanline_engine::auth::Mapping;
use serde_json::{Value as Json, json};

use super::fault;
use crate::config::read::{Given, Read};
use crate::config::table::Kind::Any;
use crate::config::table::{self, Entry, set};
use crate::config::value::Value;

/// The block `mappings`.
#[derive(Default)]
pub(in crate::config) struct Mappings(Vec<Mapping>);

impl table::Block for Mappings {
    const OPTIONS: &'static [Entry<Self>] =
        &[Entry::<Self>::unshown("*", Any, |mappings, given| {
            mappings.0.push(mapping(given)?);
            Ok(())
        })
        .block::<Destination>()
        .help("A destination subject, or a list of weighted ones.")];
}

/// A destination of a mapped subject.
struct Destination {
    name: Option<String>,
    weight: u8,
    cluster: Option<String>,
}

impl table::Block for Destination {
    const OPTIONS: &'static [Entry<Self>] = &[
        Entry::<Self>::text("destination", |destination| &mut destination.name)
            .alias(&["dest"])
            .help("The destination subject, with `$1` and so on."),
        Entry::<Self>::new(
            "weight",
            Any,
            |destination, given| set(&mut destination.weight, weight(given)),
            |destination| json!(destination.weight),
        )
        .default("100%")
        .help("Percentage of messages."),
        Entry::<Self>::text("cluster", |destination| &mut destination.cluster)
            .help("The only cluster that it applies to."),
    ];
}

/// Reads a block of mappings.
pub(in crate::config) fn mappings(given: &Given<'_>) -> Read<Vec<Mapping>> {
    Ok(table::read(Mappings::default(), given)?.0)
}

/// Returns a block of mappings as JSON.
pub(in crate::config) fn show_mappings(mappings: &[Mapping]) -> Json {
    mappings.iter().map(show_mapping).collect()
}

fn show_mapping(mapping: &Mapping) -> Json {
    let destinations = mapping.destinations().iter().map(|destination| {
        let name = destination.transform.destination();
        table::show(Destination {
            name: Some(String::from_utf8_lossy(name).into_owned()),
            weight: destination.weight,
            cluster: destination.cluster.clone(),
        })
    });
    json!({
        "source": mapping.source(),
        "destinations": destinations.collect::<Vec<_>>(),
    })
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
    let destination = Destination {
        name: None,
        weight: 100,
        cluster: None,
    };
    let Destination {
        name,
        weight,
        cluster,
    } = table::read(destination, given)?;
    let name = name.ok_or_else(|| given.fault("Expected a destination for the mapping"))?;
    Ok((name, weight, cluster))
}

/// Reads a weight in percent.
fn weight(given: &Given<'_>) -> Read<u8> {
    let weight = given.percent()?;
    weight
        .filter(|weight| *weight <= 100)
        .ok_or_else(|| given.fault("Invalid weight, needs to be <= 100"))
}
