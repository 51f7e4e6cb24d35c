//! Rust clients against the server under test: async-nats (`SERVER`), and rumqttc (`MQTT_PORT`).

mod cases;
mod mqtt;
mod peers;
mod server;
mod streams;

use std::process::ExitCode;
use std::time::Duration;

use mqtt::{v4, v5};
use server::Server;
use tokio::time::timeout;

/// Time limit of a case, in seconds. It only prevents a hanging case from blocking the run.
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

/// Runs the cases of the suite that the first argument names: `rust`, `jetstream`, or `mqtt`.
#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<ExitCode> {
    let (suite, (passed, failed)) = match std::env::args().nth(1).as_deref() {
        Some("jetstream") => ("rust-jetstream", jetstream().await?),
        Some("mqtt") => ("rumqttc", mqtt().await?),
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

/// Runs the MQTT cases with the versions in `MQTT_VERSIONS`, on a broker that was started elsewhere.
async fn mqtt() -> anyhow::Result<(u32, u32)> {
    let port = std::env::var("MQTT_PORT")?.parse::<u16>()?;
    let versions = std::env::var("MQTT_VERSIONS")?;
    let mut sum = (0, 0);
    macro_rules! run_version {
        ($version:literal, $suite:literal, $cases:ident) => {
            if versions.contains($version) {
                let (passed, failed) = run!(
                    $suite,
                    $cases,
                    port,
                    publish_and_subscribe,
                    a_session_goes_on,
                    a_will_is_sent,
                    what_is_retained_waits,
                );
                sum = (sum.0 + passed, sum.1 + failed);
            }
        };
    }
    run_version!('4', "rumqttc 3.1.1", v4);
    run_version!('5', "rumqttc 5.0", v5);
    Ok(sum)
}
