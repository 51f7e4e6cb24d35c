//! The official Rust client, async-nats, against the server under test (`SERVER`).

mod cases;
mod peers;
mod server;
mod streams;

use std::process::ExitCode;
use std::time::Duration;

use server::Server;
use tokio::time::timeout;

/// A guard against hanging, not a measure.
const CASE_SECONDS_MAX: u64 = 120;

macro_rules! run {
    ($suite:expr, $cases:ident, $server:expr, $($case:ident),+ $(,)?) => {{
        let (mut passed, mut failed) = (0, 0);
        $(
            let name = stringify!($case).replace('_', " ");
            let case = timeout(Duration::from_secs(CASE_SECONDS_MAX), $cases::$case($server));
            match case.await.unwrap_or_else(|_| Err(anyhow::anyhow!("it never ended"))) {
                Ok(()) => {
                    passed += 1;
                    println!("ok    {}: {name}", $suite);
                }
                Err(error) => {
                    failed += 1;
                    println!("FAIL  {}: {name}\n      {error:#}", $suite);
                }
            }
        )+
        (passed, failed)
    }};
}

/// The cases of the suite that the first argument names: `rust`, or `jetstream`.
#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<ExitCode> {
    let (suite, (passed, failed)) = match std::env::args().nth(1).as_deref() {
        Some("jetstream") => ("rust-jetstream", jetstream().await?),
        _ => ("rust", core().await?),
    };
    println!("end   {suite}: {passed} passed, {failed} failed");
    Ok(if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

async fn core() -> anyhow::Result<(u32, u32)> {
    let server = Server::start(&[]).await?;
    Ok(run!(
        "rust",
        cases,
        &server,
        publish_subscribe,
        wildcards,
        queue_group,
        request_reply,
        no_responders,
        headers_both_ways,
        drain,
        reconnect,
        largest_payload,
        user_and_password,
        token,
        unsubscribe_after,
        echo_off,
        many_subscriptions,
        lame_duck,
        many_clients,
        fan_out,
        server_info,
    ))
}

async fn jetstream() -> anyhow::Result<(u32, u32)> {
    let folder = server::Folder::new("shared")?;
    let server = Server::start(&["-js", "-sd", folder.path()]).await?;
    Ok(run!(
        "rust-jetstream",
        streams,
        &server,
        publish_and_acknowledge,
        duplicates,
        pull_batches,
        pull_messages,
        acknowledgements,
        push_durable,
        ephemeral,
        ordered,
        manage_streams,
        key_value,
        key_value_watch,
        key_with_ttl,
        objects,
        ordered_across_a_restart,
    ))
}
