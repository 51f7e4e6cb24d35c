//! Queries of shards and of the JetStream service.

use std::time::Duration;

use fanline_engine::ShardStatus;
use fanline_engine::gateway::GatewayStatus;
use fanline_engine::jetstream::{AccountOverview, OverviewWanted};
use fanline_engine::leaf::LeafStatus;
use fanline_engine::route::{RouteDetail, RouteStatus};
use tokio::sync::{mpsc, oneshot};

use super::answer::Refusal;
use crate::ipc::{Command, ConnectionQuery, ConnectionReport, GatewayCommand};
use crate::jetstream;
use crate::shared::Shared;

/// Time limit for the replies of all shards. When it expires, the request fails.
const TIME_LIMIT: Duration = Duration::from_secs(5);

/// Returns the sum of the counters of all shards.
pub(super) async fn totals(shared: &Shared) -> Result<ShardStatus, Refusal> {
    let mut sum = ShardStatus::default();
    for one in by_account(shared).await? {
        sum.add(&one);
    }
    Ok(sum)
}

/// Returns the counters of each account, by its id.
pub(super) async fn by_account(shared: &Shared) -> Result<Vec<ShardStatus>, Refusal> {
    let mut sums: Vec<ShardStatus> = Vec::new();
    for shard in ask(&shared.shards, TIME_LIMIT, Command::Status).await? {
        let most = sums.len().max(shard.len());
        sums.resize(most, ShardStatus::default());
        sums.iter_mut()
            .zip(&shard)
            .for_each(|(sum, one)| sum.add(one));
    }
    Ok(sums)
}

/// Returns whether an account may use JetStream.
pub(super) async fn has_jetstream(shared: &Shared, account: &str) -> Result<bool, Refusal> {
    let accounts = jetstream(shared, OverviewWanted::default()).await?;
    let mut accounts = accounts.iter().flatten();
    Ok(accounts.any(|found| found.name == account))
}

/// Returns the connections of all shards.
pub(super) async fn connections(
    shared: &Shared,
    wanted: &ConnectionQuery,
) -> Result<ConnectionReport, Refusal> {
    let command = |to| Command::Connections(wanted.clone(), to);
    let mut all = ConnectionReport::default();
    for report in ask(&shared.shards, TIME_LIMIT, command).await? {
        all.open.extend(report.open);
        all.closed.extend(report.closed);
    }
    Ok(all)
}

/// Returns the leaf nodes of all shards.
pub(super) async fn leafs(
    shared: &Shared,
    with_subscriptions: bool,
) -> Result<Vec<LeafStatus>, Refusal> {
    let command = |to| Command::LeafNodes(with_subscriptions, to);
    let replies = ask(&shared.shards, TIME_LIMIT, command).await?;
    Ok(replies.into_iter().flatten().collect())
}

/// Returns the routes of all shards, with a detail.
pub(super) async fn routes(
    shared: &Shared,
    detail: RouteDetail,
) -> Result<Vec<RouteStatus>, Refusal> {
    let command = |to| Command::Routes(detail, to);
    let replies = ask(&shared.shards, TIME_LIMIT, command).await?;
    Ok(replies.into_iter().flatten().collect())
}

/// Returns the gateway connections, which the first shard serves.
pub(super) async fn gateways(
    shared: &Shared,
    with_filters: bool,
) -> Result<Vec<GatewayStatus>, Refusal> {
    let command = |to| Command::Gateways(GatewayCommand::Status { with_filters, to });
    let replies = ask(&shared.shards, TIME_LIMIT, command).await?;
    Ok(replies.into_iter().flatten().collect())
}

/// Returns the state of each account with JetStream; `None` if JetStream is off.
pub(super) async fn jetstream(
    shared: &Shared,
    wanted: OverviewWanted,
) -> Result<Option<Vec<AccountOverview>>, Refusal> {
    let Some(jetstream) = &shared.jetstream else {
        return Ok(None);
    };
    let (to, answer) = oneshot::channel();
    // If the service has ended, the command is dropped, and the receiver below fails.
    let _ = jetstream.send(jetstream::Command::Overview(wanted, to));
    match tokio::time::timeout(TIME_LIMIT, answer).await {
        Ok(Ok(accounts)) => Ok(Some(accounts)),
        Ok(Err(_)) | Err(_) => Err(Refusal::JetStreamSilent),
    }
}

/// Sends a command to each shard, and returns their replies.
pub(super) async fn of_all<T>(
    shared: &Shared,
    command: impl Fn(oneshot::Sender<T>) -> Command,
) -> Result<Vec<T>, Refusal> {
    ask(&shared.shards, TIME_LIMIT, command).await
}

/// Sends a command to several shards at once, and waits for the replies.
async fn ask<T>(
    shards: &[mpsc::UnboundedSender<Command>],
    time_limit: Duration,
    command: impl Fn(oneshot::Sender<T>) -> Command,
) -> Result<Vec<T>, Refusal> {
    let mut answers = Vec::new();
    for shard in shards {
        let (to, answer) = oneshot::channel();
        // If a shard has ended, the command is dropped, and the receiver below fails.
        let _ = shard.send(command(to));
        answers.push(answer);
    }
    let all = async {
        let mut replies = Vec::new();
        for answer in answers {
            replies.push(answer.await.map_err(|_| Refusal::Silent)?);
        }
        Ok(replies)
    };
    match tokio::time::timeout(time_limit, all).await {
        Ok(replies) => replies,
        Err(_) => Err(Refusal::Silent),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask_one(shard: mpsc::UnboundedSender<Command>) -> Result<usize, Refusal> {
        let time_limit = Duration::from_millis(1);
        let request = async {
            ask(&[shard], time_limit, Command::Status)
                .await
                .map(|all| all.len())
        };
        crate::threads::block_on(request).unwrap()
    }

    #[test]
    fn request_to_an_ended_or_busy_shard_fails() {
        let (gone, inbox) = mpsc::unbounded_channel();
        drop(inbox);
        assert_eq!(ask_one(gone), Err(Refusal::Silent));
        let (busy, _inbox) = mpsc::unbounded_channel();
        assert_eq!(ask_one(busy), Err(Refusal::Silent));
    }
}
