//! Requests of the system account over a system client.

use std::time::Duration;

use fanline_engine::auth::AccountId;
use serde_json::Value;

use crate::client::{Client, ConnectOptions};
use crate::options::Options;
use crate::server::{Handle, Server};

/// Time limit of every wait. It is reached only if the server hangs.
const TIME_LIMIT: Duration = Duration::from_secs(20);

struct Stage {
    server: Handle,
    system: Client,
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.server.shutdown();
    }
}

impl Stage {
    async fn new() -> Self {
        let options = Options {
            port: 0,
            server_name: Some("asked".into()),
            ..Options::default()
        };
        let server = Server::start(options).expect("a free port");
        let system = server.shared.system_client(AccountId::SYSTEM).await;
        let stage = Stage {
            server,
            system: system.expect("it is let in"),
        };
        // The responders start just after the server. The responder of this subject starts last.
        let last = "$SYS.REQ.ACCOUNT.$G.CONNS";
        while stage.try_ask(last, "").await.is_none() {}
        stage
    }

    async fn try_ask(&self, subject: &str, body: &str) -> Option<Value> {
        let body = body.to_owned();
        let answer = self
            .system
            .request(subject, body, Duration::from_millis(100))
            .await;
        serde_json::from_slice(answer.ok()?.payload()).ok()
    }

    async fn ask(&self, subject: &str, body: &str) -> Value {
        let response = self.system.request(subject, body.to_owned(), TIME_LIMIT);
        let answer = response.await.expect("an answer");
        serde_json::from_slice(answer.payload()).expect("JSON")
    }

    fn id(&self) -> &str {
        &self.server.shared.info.server_id
    }
}

fn run(test: impl AsyncFnOnce(Stage)) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime");
    runtime.block_on(async { test(Stage::new().await).await });
}

#[test]
fn every_response_holds_the_server_identity() {
    run(async |stage: Stage| {
        for (name, operation) in super::endpoints::of_all() {
            for to in ["PING", stage.id()] {
                let answer = stage.ask(&format!("$SYS.REQ.SERVER.{to}.{name}"), "").await;
                let server = match operation {
                    super::Operation::Idz => &answer,
                    _ => &answer["server"],
                };
                assert_eq!(server["name"], "asked", "{name}: {answer}");
                assert_eq!(server["id"], stage.id(), "{name}: {answer}");
            }
        }
        let health = stage.ask("$SYS.REQ.SERVER.PING.HEALTHZ", "").await;
        assert_eq!(health["data"]["status_code"], 200, "{health}");
        let statsz = stage.ask("$SYS.REQ.SERVER.PING", "").await;
        assert_eq!(statsz["statsz"]["active_servers"], 1, "{statsz}");
        // System clients are not counted as connections.
        assert_eq!(statsz["statsz"]["connections"], 0, "{statsz}");
    });
}

#[test]
fn bodies_are_options_and_filters() {
    run(async |stage: Stage| {
        let wrong = stage
            .ask("$SYS.REQ.SERVER.PING.CONNZ", r#"{"sort":"xx"}"#)
            .await;
        assert_eq!(wrong["error"]["code"], 500, "{wrong}");
        assert_eq!(wrong["error"]["description"], "invalid sorting option: xx");
        let wrong = stage.ask("$SYS.REQ.SERVER.PING.VARZ", "not json").await;
        assert_eq!(wrong["error"]["code"], 400, "{wrong}");
        let page = stage
            .ask("$SYS.REQ.SERVER.PING.CONNZ", r#"{"limit":7}"#)
            .await;
        assert_eq!(page["data"]["limit"], 7, "{page}");
        let other = r#"{"server_name":"other"}"#;
        assert_eq!(
            stage.try_ask("$SYS.REQ.SERVER.PING.VARZ", other).await,
            None
        );
    });
}

#[test]
fn connects_and_disconnects_are_published_and_clients_can_be_kicked() {
    run(async |stage: Stage| {
        let mut events = stage
            .system
            .subscribe("$SYS.ACCOUNT.$G.*")
            .await
            .expect("subscribed");
        stage.system.flush().await.expect("flushed");
        let named = ConnectOptions::default().name("guest");
        let guest = stage
            .server
            .client_with(&named)
            .await
            .expect("it is let in");
        let mut next = async || {
            let event = events.next().await.expect("an event");
            let body: Value = serde_json::from_slice(event.payload()).expect("JSON");
            (event.subject().to_owned(), body)
        };
        let (subject, event) = next().await;
        assert_eq!(subject, "$SYS.ACCOUNT.$G.CONNECT");
        assert_eq!(event["type"], "io.nats.server.advisory.v1.client_connect");
        assert_eq!(event["client"]["name"], "guest", "{event}");
        assert_eq!(event["client"]["acc"], "$G", "{event}");
        let cid = event["client"]["id"].as_u64().expect("a number");
        let kick = format!("$SYS.REQ.SERVER.{}.KICK", stage.id());
        let nobody = stage.ask(&kick, r#"{"cid":999}"#).await;
        assert_eq!(
            nobody["error"]["description"],
            "no such client or leafnode id"
        );
        let done = stage.ask(&kick, &format!(r#"{{"cid":{cid}}}"#)).await;
        assert_eq!(done["error"], Value::Null, "{done}");
        guest.closed().await;
        let (subject, event) = next().await;
        assert_eq!(subject, "$SYS.ACCOUNT.$G.DISCONNECT");
        assert_eq!(event["reason"], "Kicked", "{event}");
        let statz = stage.ask("$SYS.REQ.ACCOUNT.$G.STATZ", "").await;
        assert_eq!(statz["data"]["account_statz"][0]["acc"], "$G", "{statz}");
        let conns = stage.ask("$SYS.REQ.ACCOUNT.$G.CONNS", "").await;
        assert_eq!(conns["conns"], 0, "{conns}");
    });
}
