//! Common options of connections to other servers: the limits of writes.

use fanline_engine::LinkLimits;
use serde_json::json;

use super::duration_text;
use crate::config::table::Entry;
use crate::config::table::Kind::{Duration, Text};

/// The block of connections to other servers.
pub(in crate::config) trait LinkBlock: Sized + 'static {
    /// Returns the limits of the connections.
    fn limits(&self) -> &LinkLimits;
    /// Returns the limits, to be set while the block is read.
    fn limits_mut(&mut self) -> &mut LinkLimits;
}

impl<T: LinkBlock> Entry<T> {
    /// The option `write_deadline`.
    pub(super) const WRITE_DEADLINE: Self = Entry::new(
        "write_deadline",
        Duration,
        |block: &mut T, given| {
            let deadline = given.duration()?;
            block.limits_mut().write_deadline = Some(deadline).filter(|time| !time.is_zero());
            Ok(())
        },
        |block| json!(block.limits().write_deadline.map(duration_text)),
    )
    .needs_unit()
    .default("the server's")
    .apart()
    .reloads()
    .help("Time limit of a blocked write to another server, also to one that this server dials.");

    /// The option `write_timeout`.
    pub(super) const WRITE_TIMEOUT: Self = Entry::new(
        "write_timeout",
        Text,
        |block: &mut T, given| {
            block.limits_mut().closes_at_deadline = match given.text()? {
                "default" | "retry" => false,
                "close" => true,
                _ => {
                    let why = "write_timeout must be 'default', 'close' or 'retry'";
                    return Err(given.fault(why));
                }
            };
            Ok(())
        },
        |block| match block.limits().closes_at_deadline {
            true => json!("close"),
            false => json!("retry"),
        },
    )
    .default("retry")
    .limit("`default`, `retry`, `close`")
    .apart()
    .reloads()
    .help(
        "Effect of the write deadline on a connection. With `retry` it is closed only if the other server has read \
         nothing meanwhile.",
    );
}
