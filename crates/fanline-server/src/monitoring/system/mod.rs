//! The system account: monitoring by request, and events.
//!
//! A client in this process, bound to the system account, subscribes to what can be asked; who asks is
//! told what monitoring tells over HTTP, by the same code.

mod endpoints;
mod envelope;
mod events;
mod options;
mod statsz;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tracing::warn;

use super::answer::{Answer, Refusal};
use super::query::Query;
use super::{Endpoint, Monitor, collect};
use crate::client::{Client, ClientError, Message, Subscription};
use crate::shell::Command;
use endpoints::{Asked, Page};
use envelope::Envelope;
pub(crate) use events::ConnectionEvent;
use options::{Body, Myself};

/// How often a server tells its counts.
const STATSZ_EVERY: Duration = Duration::from_secs(10);
/// How often the connections of each account are told, besides when they change.
const CONNECTIONS_EVERY: Duration = Duration::from_secs(30);
/// Events that wait to be told. More are not told: who comes and goes must not be held up by it.
pub(crate) const EVENTS_MAX: usize = 16 * 1024;
/// Events that are told before the changed accounts are.
const EVENTS_AT_ONCE: usize = 256;

/// Answers for the server in the system account.
pub(crate) struct System {
    client: Client,
    monitor: Rc<Monitor>,
    envelope: Envelope,
}

/// Why there is no answer, as a code and words. `None`: others are asked, not this server.
type Refused = Option<(u16, String)>;

impl System {
    /// Subscribes to everything that can be asked; from then on requests are answered and events told, on
    /// tasks of this thread.
    ///
    /// # Errors
    /// When the client is gone.
    pub(crate) async fn start(
        client: Client,
        monitor: Rc<Monitor>,
        events: mpsc::Receiver<ConnectionEvent>,
    ) -> Result<Rc<Self>, ClientError> {
        let system = Rc::new(System {
            client,
            monitor,
            envelope: Envelope::default(),
        });
        let id = system.monitor.server_id().to_owned();
        for (name, asked) in endpoints::of_all() {
            system
                .serve(format!("$SYS.REQ.SERVER.PING.{name}"), asked)
                .await?;
            system
                .serve(format!("$SYS.REQ.SERVER.{id}.{name}"), asked)
                .await?;
        }
        system
            .serve("$SYS.REQ.SERVER.PING".into(), Asked::Statsz)
            .await?;
        for (name, asked) in endpoints::of_one() {
            system
                .serve(format!("$SYS.REQ.SERVER.{id}.{name}"), asked)
                .await?;
        }
        for (name, asked) in endpoints::of_account() {
            system
                .serve(format!("$SYS.REQ.ACCOUNT.*.{name}"), asked)
                .await?;
        }
        system.client.flush().await?;
        tokio::task::spawn_local(Rc::clone(&system).tell(events));
        Ok(system)
    }

    /// Answers requests on one subject.
    async fn serve(self: &Rc<Self>, subject: String, asked: Asked) -> Result<(), ClientError> {
        let requests = self.client.subscribe(&subject).await?;
        tokio::task::spawn_local(Rc::clone(self).answer_all(requests, asked));
        Ok(())
    }

    async fn answer_all(self: Rc<Self>, mut requests: Subscription, asked: Asked) {
        while let Some(request) = requests.next().await {
            let Some(reply) = request.reply() else {
                continue;
            };
            let Some(answer) = self.answer(&request, asked).await else {
                continue;
            };
            // It ends with the server.
            if self
                .client
                .publish(reply, answer.to_string())
                .await
                .is_err()
            {
                return;
            }
        }
    }

    /// What is answered; `None` when others are asked.
    async fn answer(&self, request: &Message, asked: Asked) -> Option<Value> {
        let monitor = &self.monitor;
        let refused = match self.find(request, asked).await {
            Ok(answer) => return Some(answer),
            Err(refused) => refused,
        };
        let (code, problem) = refused?;
        Some(self.envelope.refusal(monitor, code, &problem))
    }

    async fn find(&self, request: &Message, asked: Asked) -> Result<Value, Refused> {
        let monitor = &self.monitor;
        let body = Body::parse(request.payload()).map_err(|problem| Some((400, problem)))?;
        if !body.is_for(&self.myself()) {
            return Err(None);
        }
        let account = account_of(request.topic());
        let data = match asked {
            Asked::Idz => return Ok(self.identity()),
            Asked::Statsz => {
                let statsz = statsz::of_server(monitor).await.map_err(refused)?;
                return Ok(json!({"server": self.envelope.server(monitor), "statsz": statsz}));
            }
            Asked::AccountConnections => {
                return self.connections_of(account.unwrap_or_default()).await;
            }
            Asked::Page(page) => self.page(page, &body, account).await?,
            Asked::Nothing => json!({}),
            Asked::Profilez => json!({"profile": null, "error": "there are no profiles here"}),
            Asked::AccountStatz => self.statistics(&body, account).await?,
            Asked::AccountInfo => {
                let query = Query::of(vec![("acc".into(), account.unwrap_or_default().into())]);
                let mut page = self.ask(&Endpoint::Accountz, &query).await?;
                page["account_detail"].take()
            }
            Asked::AccountJsz => {
                let query = Query::of(vec![
                    ("acc".into(), account.unwrap_or_default().into()),
                    ("accounts".into(), "true".into()),
                ]);
                let mut page = self.ask(&Endpoint::Jsz, &query).await?;
                page["account_details"][0].take()
            }
            Asked::Kick => {
                return self
                    .order(&body, Command::Kick, "no such client or leafnode id")
                    .await;
            }
            Asked::LameDuck => {
                return self
                    .order(&body, Command::SendAway, "no such client id")
                    .await;
            }
            Asked::Reload => return Err(Some((500, "reload is asked for by SIGHUP".into()))),
        };
        Ok(self.envelope.answer(monitor, data))
    }

    fn myself(&self) -> Myself<'_> {
        let info = &self.monitor.shared.info;
        Myself {
            name: &info.server_name,
            host: &info.host,
            domain: info.domain.as_deref(),
            tags: &[],
        }
    }

    fn identity(&self) -> Value {
        let info = &self.monitor.shared.info;
        json!({"name": info.server_name, "host": info.host, "id": info.server_id})
    }

    async fn page(
        &self,
        page: &Page,
        body: &Body,
        account: Option<&str>,
    ) -> Result<Value, Refused> {
        let mut query = body.query(page);
        if let Some(account) = account {
            query.set("acc", account);
        }
        self.ask(&page.endpoint, &query).await
    }

    async fn ask(&self, endpoint: &Endpoint, query: &Query) -> Result<Value, Refused> {
        let answer: Answer = self.monitor.tell(endpoint, query).await.map_err(refused)?;
        let mut data: Value = serde_json::from_str(&answer.body).unwrap_or_default();
        if *endpoint == Endpoint::Healthz {
            data["status_code"] = answer.status.as_u16().into();
        }
        Ok(data)
    }

    /// Counts of accounts: of the one in the subject, or of those that are named, or of all.
    async fn statistics(&self, body: &Body, account: Option<&str>) -> Result<Value, Refused> {
        let named: Vec<&str> = match (account, body.field("accounts")) {
            (Some(account), _) => vec![account],
            (None, Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            (None, _) => Vec::new(),
        };
        let with_unused = !named.is_empty() || *body.field("include_unused") == Value::Bool(true);
        let query = Query::of(vec![("unused".into(), with_unused.to_string())]);
        let mut page = self.ask(&Endpoint::Accstatz, &query).await?;
        if let Some(all) = page["account_statz"]
            .as_array_mut()
            .filter(|_| !named.is_empty())
        {
            all.retain(|one| {
                one["acc"]
                    .as_str()
                    .is_some_and(|name| named.contains(&name))
            });
        }
        Ok(page)
    }

    /// The connections of an account, as the event about them.
    async fn connections_of(&self, account: &str) -> Result<Value, Refused> {
        let mut page = self.statistics(&Body::default(), Some(account)).await?;
        let mut event = self.envelope.event(&self.monitor, "account_connections");
        if let (Value::Object(event), Value::Object(counts)) =
            (&mut event, page["account_statz"][0].take())
        {
            event.extend(counts);
        }
        Ok(event)
    }

    /// Has the shard of a connection do something with it.
    async fn order(
        &self,
        body: &Body,
        command: impl Fn(u64, tokio::sync::oneshot::Sender<bool>) -> Command,
        nobody: &str,
    ) -> Result<Value, Refused> {
        let cid = body.field("cid").as_u64().unwrap_or(0);
        let shared = &self.monitor.shared;
        let done = collect::of_all(shared, |to| command(cid, to))
            .await
            .map_err(refused)?;
        match done.contains(&true) {
            true => Ok(json!({"server": self.envelope.server(&self.monitor)})),
            false => Err(Some((500, nobody.to_owned()))),
        }
    }

    /// Tells of what happens, until nothing can happen any more.
    async fn tell(self: Rc<Self>, mut events: mpsc::Receiver<ConnectionEvent>) {
        let mut statsz = tokio::time::interval(STATSZ_EVERY);
        let mut connections = tokio::time::interval(CONNECTIONS_EVERY);
        let mut batch = Vec::new();
        loop {
            let told = tokio::select! {
                count = events.recv_many(&mut batch, EVENTS_AT_ONCE) => match count {
                    0 => return,
                    _ => self.tell_events(&mut batch).await,
                },
                _ = statsz.tick() => self.tell_statsz().await,
                _ = connections.tick() => self.tell_connections(None).await,
            };
            // The client ends with the server.
            if told.is_err() {
                return;
            }
        }
    }

    async fn tell_events(&self, batch: &mut Vec<ConnectionEvent>) -> Result<(), ClientError> {
        let monitor = &self.monitor;
        let mut changed = BTreeSet::new();
        for event in batch.drain(..) {
            let mut body = self.envelope.event(monitor, event.kind());
            event.describe(monitor, &mut body);
            let account = monitor.account_name(event.status().account);
            let body = body.to_string();
            if event.is_refusal() {
                let id = monitor.server_id();
                let subject = format!("$SYS.SERVER.{id}.CLIENT.AUTH.ERR");
                self.client.publish(&subject, body.clone()).await?;
            }
            let word = match event {
                ConnectionEvent::Connected(_) => "CONNECT",
                ConnectionEvent::Gone(_) => "DISCONNECT",
            };
            let subject = format!("$SYS.ACCOUNT.{account}.{word}");
            self.client.publish(&subject, body).await?;
            changed.insert(account);
        }
        self.tell_connections(Some(changed)).await
    }

    async fn tell_connections(&self, of: Option<BTreeSet<String>>) -> Result<(), ClientError> {
        let accounts = match of {
            Some(accounts) => accounts,
            // A shard that is busy is asked again the next time.
            None => self.monitor.used_accounts().await.unwrap_or_default(),
        };
        for account in accounts {
            let Ok(event) = self.connections_of(&account).await else {
                continue;
            };
            let event = event.to_string();
            let legacy = format!("$SYS.SERVER.ACCOUNT.{account}.CONNS");
            self.client.publish(&legacy, event.clone()).await?;
            let subject = format!("$SYS.ACCOUNT.{account}.SERVER.CONNS");
            self.client.publish(&subject, event).await?;
        }
        Ok(())
    }

    async fn tell_statsz(&self) -> Result<(), ClientError> {
        let monitor = &self.monitor;
        match statsz::of_server(monitor).await {
            Ok(statsz) => {
                let body = json!({"server": self.envelope.server(monitor), "statsz": statsz});
                let subject = format!("$SYS.SERVER.{}.STATSZ", monitor.server_id());
                self.client.publish(&subject, body.to_string()).await
            }
            Err(refusal) => {
                warn!("The server's counts could not be told: {refusal}");
                Ok(())
            }
        }
    }

    /// Says that the server goes away, or ends: `LAMEDUCK`, `SHUTDOWN`.
    pub(crate) async fn announce(&self, word: &str) {
        let subject = format!("$SYS.SERVER.{}.{word}", self.monitor.server_id());
        let body = json!({ "server": self.envelope.server(&self.monitor) }).to_string();
        // Nobody is left to be told of a client that is gone.
        if self.client.publish(&subject, body).await.is_ok() {
            let _ = self.client.flush().await;
        }
    }
}

/// The account in `$SYS.REQ.ACCOUNT.<account>.…`; `PING` is all of them.
fn account_of(topic: &str) -> Option<&str> {
    let rest = topic.strip_prefix("$SYS.REQ.ACCOUNT.")?;
    let (account, _) = rest.split_once('.')?;
    (account != "PING").then_some(account)
}

fn refused(refusal: Refusal) -> Refused {
    Some((500, refusal.to_string()))
}
