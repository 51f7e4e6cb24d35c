//! Files that tell other programs about a running server.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::options::Addresses;

/// Writes `<program>_<pid>.ports`, by which ports chosen by the system are found.
pub(crate) fn write_ports(folder: &Path, addresses: &Addresses) -> io::Result<PathBuf> {
    let program = std::env::args_os().next().map(PathBuf::from);
    let name = program
        .as_deref()
        .and_then(Path::file_name)
        .and_then(|n| n.to_str());
    let file = format!("{}_{}.ports", name.unwrap_or("fanline"), std::process::id());
    let mut json = serde_json::Map::new();
    json.insert(
        "nats".into(),
        vec![format!("nats://{}", addresses.clients)].into(),
    );
    if let Some(monitoring) = addresses.monitoring {
        json.insert(
            "monitoring".into(),
            vec![format!("http://{monitoring}")].into(),
        );
    }
    if let Some(leafnodes) = addresses.leafnodes {
        json.insert(
            "leafnodes".into(),
            vec![format!("nats-leaf://{leafnodes}")].into(),
        );
    }
    let path = folder.join(file);
    // A reader polls for the file: it must never find half of it.
    let unfinished = path.with_extension("ports.new");
    fs::write(&unfinished, serde_json::Value::Object(json).to_string())?;
    fs::rename(&unfinished, &path)?;
    Ok(path)
}

/// Writes the process id, digits only.
pub(crate) fn write_pid(path: &Path) -> io::Result<()> {
    fs::write(path, std::process::id().to_string())
}
