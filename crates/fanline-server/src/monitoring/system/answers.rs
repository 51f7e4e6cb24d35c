//! Responses to requests in the system account.

use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::super::answer::{Answer, Refusal};
use super::super::query::Query;
use super::super::{Endpoint, collect, expvars};
use super::endpoints::{Operation, Page};
use super::options::{Body, ServerIdentity};
use super::{System, statsz, user};
use crate::client::Message;
use crate::ipc::Command;

/// An error's code and text; `None` if the request is for other servers.
type Refused = Option<(u16, String)>;

impl System {
    /// Returns the response to a request. Returns `None` if the request is for other servers.
    pub(super) async fn answer(&self, request: &Message, operation: Operation) -> Option<Value> {
        match operation {
            Operation::Subscribers => return Some(self.count_subscribers(request).await.into()),
            Operation::OwnSubscribers => return self.count_for_peer(request).await,
            _ => {}
        }
        let refused = match self.find(request, operation).await {
            Ok(answer) => return Some(answer),
            Err(refused) => refused,
        };
        let (code, problem) = refused?;
        let mut refusal = self.envelope.refusal(&self.monitor, code, &problem);
        if matches!(operation, Operation::Page(_)) {
            refusal["data"] = Value::Null;
        }
        Some(refusal)
    }

    async fn find(&self, request: &Message, operation: Operation) -> Result<Value, Refused> {
        let body = Body::parse(request.payload()).map_err(|problem| Some((400, problem)))?;
        if !self.is_addressed(&body) {
            return Err(None);
        }
        let account = account_of(request.subject());
        let data = match operation {
            Operation::Idz => return Ok(self.identity()),
            Operation::Statsz => return self.statsz().await,
            Operation::AccountConnections => return self.connections_of(one(account)?).await,
            Operation::Kick => {
                let not_found = "no such client or leafnode id";
                return self.order(&body, Command::Kick, not_found).await;
            }
            Operation::LameDuck => {
                let not_found = "no such client id";
                return self
                    .order(&body, Command::RequestReconnect, not_found)
                    .await;
            }
            Operation::Reload => return self.reload().await,
            Operation::Page(page) => self.page(page, &body, account).await?,
            // Handled earlier, because their responses are not objects.
            Operation::Subscribers | Operation::OwnSubscribers => return Err(None),
            Operation::Nothing => json!({}),
            Operation::Profilez => no_profile(&body),
            Operation::Expvarz => json!(expvars::variables()),
            Operation::AccountStatz => self.statistics_by(&body, account).await?,
            Operation::AccountInfo => self.info_of(one(account)?).await?,
            Operation::AccountJsz => self.streams_of(one(account)?).await?,
            Operation::UserInfo => {
                let access = self.monitor.shared.access();
                user::info(&access, one(account)?, request.headers())
            }
        };
        Ok(self.envelope.answer(&self.monitor, data))
    }

    /// Returns whether the body's filter includes this server.
    fn is_addressed(&self, body: &Body) -> bool {
        let info = &self.monitor.shared.info;
        let options = self.monitor.shared.options();
        let cluster = self.monitor.shared.cluster_name();
        body.is_for(&ServerIdentity {
            name: &info.server_name,
            host: &info.host,
            cluster: cluster.as_deref().unwrap_or_default(),
            domain: info.domain.as_deref(),
            tags: &options.server_tags,
        })
    }

    fn identity(&self) -> Value {
        let info = &self.monitor.shared.info;
        json!({"name": info.server_name, "host": info.host, "id": info.server_id})
    }

    /// Returns the counters that are published every ten seconds.
    pub(super) async fn statsz(&self) -> Result<Value, Refused> {
        let peers = self.peers.len();
        let statsz = statsz::of_server(&self.monitor, peers)
            .await
            .map_err(refused)?;
        Ok(json!({"server": self.envelope.server(&self.monitor), "statsz": statsz}))
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
            if page.endpoint == Endpoint::Subsz {
                query.set("subs", "1");
            }
        }
        self.query(&page.endpoint, &query).await
    }

    async fn query(&self, endpoint: &Endpoint, query: &Query) -> Result<Value, Refused> {
        let answer: Answer = self
            .monitor
            .respond(endpoint, query)
            .await
            .map_err(refused)?;
        let mut data: Value = serde_json::from_str(&answer.body).unwrap_or_default();
        if let (Endpoint::Healthz, Value::Object(health)) = (endpoint, &mut data) {
            health.insert("status_code".into(), answer.status.as_u16().into());
        }
        Ok(data)
    }

    /// Returns the counters of the account that the request's subject names. If it names none, returns the
    /// counters of the accounts in the body. If the body names none either, returns the counters of all
    /// accounts.
    async fn statistics_by(&self, body: &Body, account: Option<&str>) -> Result<Value, Refused> {
        let named: Vec<&str> = match (account, body.field("accounts")) {
            (Some(account), _) => vec![account],
            (None, Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            (None, _) => Vec::new(),
        };
        let with_unused = !named.is_empty() || *body.field("include_unused") == Value::Bool(true);
        let mut page = self.statistics(with_unused).await?;
        if let Some(Value::Array(all)) = page.get_mut("account_statz")
            && !named.is_empty()
        {
            all.retain(|one| name_of(one).is_some_and(|name| named.contains(&name)));
        }
        Ok(page)
    }

    async fn statistics(&self, with_unused: bool) -> Result<Value, Refused> {
        let query = Query::of(vec![("unused".into(), with_unused.to_string())]);
        self.query(&Endpoint::Accstatz, &query).await
    }

    /// Returns the counters of each account.
    pub(super) async fn statistics_of_all(&self) -> Result<Vec<Value>, Refused> {
        let mut page = self.statistics(true).await?;
        match page.get_mut("account_statz").map(Value::take) {
            Some(Value::Array(all)) => Ok(all),
            _ => Ok(Vec::new()),
        }
    }

    async fn info_of(&self, account: &str) -> Result<Value, Refused> {
        let query = Query::of(vec![("acc".into(), account.into())]);
        let mut page = self.query(&Endpoint::Accountz, &query).await?;
        Ok(page
            .get_mut("account_detail")
            .map_or(Value::Null, Value::take))
    }

    async fn streams_of(&self, account: &str) -> Result<Value, Refused> {
        let query = Query::of(vec![
            ("acc".into(), account.into()),
            ("accounts".into(), "true".into()),
        ]);
        let mut page = self.query(&Endpoint::Jsz, &query).await?;
        let detail = page.pointer_mut("/account_details/0");
        Ok(detail.map_or(Value::Null, Value::take))
    }

    async fn connections_of(&self, account: &str) -> Result<Value, Refused> {
        let all = self.statistics_of_all().await?;
        let counts = all.into_iter().find(|one| name_of(one) == Some(account));
        match counts {
            Some(counts) => Ok(self.connections_event(counts)),
            None => Err(Some((500, format!("Account {account} does not exist")))),
        }
    }

    /// Returns an account's connection count as an event.
    pub(super) fn connections_event(&self, counts: Value) -> Value {
        let mut event = self.envelope.event(&self.monitor, "account_connections");
        if let (Value::Object(event), Value::Object(counts)) = (&mut event, counts) {
            event.extend(counts);
        }
        event
    }

    /// Sends a command about one connection to all shards.
    async fn order(
        &self,
        body: &Body,
        command: impl Fn(u64, oneshot::Sender<bool>) -> Command,
        not_found: &str,
    ) -> Result<Value, Refused> {
        let cid = body.field("cid").as_u64().unwrap_or(0);
        let shared = &self.monitor.shared;
        let done = collect::of_all(shared, |to| command(cid, to))
            .await
            .map_err(refused)?;
        match done.contains(&true) {
            true => Ok(self.done()),
            false => Err(Some((500, not_found.to_owned()))),
        }
    }

    /// Requests a reload of the configuration.
    async fn reload(&self) -> Result<Value, Refused> {
        match self.monitor.shared.reloader.ask().await {
            Ok(()) => Ok(self.done()),
            Err(problem) => Err(Some((500, problem))),
        }
    }

    fn done(&self) -> Value {
        json!({"server": self.envelope.server(&self.monitor)})
    }
}

/// Returns the account in `$SYS.REQ.ACCOUNT.<account>.…` or `$SYS.REQ.USER.<account>.…`. `PING` means all.
fn account_of(subject: &str) -> Option<&str> {
    let rest = subject.strip_prefix("$SYS.REQ.ACCOUNT.");
    let rest = rest.or_else(|| subject.strip_prefix("$SYS.REQ.USER."))?;
    let (account, _) = rest.split_once('.')?;
    (account != "PING").then_some(account)
}

fn one(account: Option<&str>) -> Result<&str, Refused> {
    account.ok_or_else(|| Some((400, "one account has to be named".to_owned())))
}

/// Returns the name of the account that these counters belong to.
pub(super) fn name_of(counts: &Value) -> Option<&str> {
    counts.get("acc")?.as_str()
}

/// Returns an error in the form that the `nats` command expects for profiles.
fn no_profile(body: &Body) -> Value {
    let error = match body.field("name").as_str().unwrap_or_default() {
        "" => "Profile name not specified".to_owned(),
        name => format!(
            "Profile {name:?} not found: Fanline is no Go program and has no profiles. /stacksz shows its threads, \
             and perf(1) or gdb(1) what they do"
        ),
    };
    json!({ "profile": null, "error": error })
}

fn refused(refusal: Refusal) -> Refused {
    Some((500, refusal.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_in_subjects() {
        for (subject, account) in [
            ("$SYS.REQ.ACCOUNT.A.CONNZ", Some("A")),
            ("$SYS.REQ.USER.$G.INFO", Some("$G")),
            ("$SYS.REQ.ACCOUNT.PING.STATZ", None),
            ("$SYS.REQ.SERVER.PING.CONNZ", None),
        ] {
            assert_eq!(account_of(subject), account, "{subject}");
        }
    }
}
