//! The official Rust client, async-nats, against the server under test (`SERVER`).

mod cases;
mod server;

use std::process::ExitCode;
use std::time::Duration;

use server::Server;
use tokio::time::timeout;

/// A guard against hanging, not a measure.
const CASE_SECONDS_MAX: u64 = 120;

macro_rules! run {
    ($server:expr, $($case:ident),+ $(,)?) => {{
        let (mut passed, mut failed) = (0, 0);
        $(
            let name = stringify!($case).replace('_', " ");
            let case = timeout(Duration::from_secs(CASE_SECONDS_MAX), cases::$case($server));
            match case.await.unwrap_or_else(|_| Err(anyhow::anyhow!("it never ended"))) {
                Ok(()) => {
                    passed += 1;
                    println!("ok    rust: {name}");
                }
                Err(error) => {
                    failed += 1;
                    println!("FAIL  rust: {name}\n      {error:#}");
                }
            }
        )+
        (passed, failed)
    }};
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<ExitCode> {
    let server = Server::start(&[]).await?;
    let (passed, failed) = run!(
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
    );
    println!("end   rust: {passed} passed, {failed} failed");
    Ok(if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
