//! Limits of the server for each stream and each consumer, in every account.

use std::time::Duration;

use super::{
    ACK_PENDING_DEFAULT, AckPolicy, ApiError, ConsumerConfig, DUPLICATE_WINDOW_DEFAULT, Nanos,
    Pedantry, StreamConfig,
};
use crate::limits::AccountLimits;

/// Limits for each stream and each consumer; `None` means the built-in limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AssetLimits {
    /// Maximum number of records of one consumer that wait for an acknowledgement.
    pub ack_pending_max: Option<i64>,
    /// Maximum number of records in one pull request.
    pub request_batch_max: Option<i64>,
    /// Maximum time for which a stream remembers message ids.
    pub duplicate_window_max: Option<Nanos>,
    /// Maximum number of consumers of one stream, unless the stream or its account sets a limit.
    pub consumers_default: Option<i64>,
    /// Limits of batches.
    pub batches: BatchLimits,
}

/// Limits of batches of publishes; `None` means the built-in limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchLimits {
    /// Maximum number of open atomic batches of a stream. The same number is the maximum of its open fast
    /// batches.
    pub open_per_stream_max: Option<usize>,
    /// Maximum number of open atomic batches of all streams of an account. The same number is the maximum of
    /// their open fast batches.
    pub open_max: Option<usize>,
    /// Maximum number of messages in an atomic batch.
    pub messages_max: Option<usize>,
    /// Time without a message after which a batch is abandoned.
    pub idle_max: Option<Duration>,
}

impl AssetLimits {
    /// Sets values that the configuration leaves unset, if a server limit is below their default.
    pub(super) fn fill_stream(
        &self,
        config: &mut StreamConfig,
        pedantry: Pedantry,
    ) -> Result<(), ApiError> {
        let copies = config.mirror.is_some() || !config.sources.is_empty();
        let Some(max) = self.duplicate_window_max else {
            return Ok(());
        };
        if !config.duplicate_window.is_zero() || copies || max >= DUPLICATE_WINDOW_DEFAULT {
            return Ok(());
        }
        pedantry.refuses(
            "duplicate window limits are higher than current limits",
            true,
        )?;
        config.duplicate_window = match config.max_age {
            age if age > Nanos::ZERO => max.min(age),
            _ => max,
        };
        Ok(())
    }

    /// Checks the configuration of a stream.
    pub(super) fn check_stream(&self, config: &StreamConfig) -> Result<(), ApiError> {
        match self.duplicate_window_max {
            Some(max) if config.duplicate_window > max => Err(ApiError::stream_invalid_config(
                format_args!("duplicates window can not be larger then server limit of {max}"),
            )),
            _ => Ok(()),
        }
    }

    /// Sets values that the configuration of a consumer leaves unset, if a limit of the server or the account
    /// is below their default. Also checks the server's limits; the stream's own limits are checked later.
    pub(super) fn fill_consumer(
        &self,
        config: &mut ConsumerConfig,
        stream: &StreamConfig,
        account: &AccountLimits,
        pedantry: Pedantry,
    ) -> Result<(), ApiError> {
        self.fill_request_batch(config, pedantry)?;
        let own = stream.consumer_limits.max_ack_pending;
        let account = Some(account.max_ack_pending).filter(|max| *max > 0);
        let granted = self.ack_pending_max.into_iter().chain(account).min();
        let is_open = config.max_ack_pending == 0 && own <= 0;
        if is_open && config.ack_policy != AckPolicy::None {
            config.max_ack_pending = granted.map_or(0, |granted| granted.min(ACK_PENDING_DEFAULT));
        }
        let wanted = match config.max_ack_pending {
            0 => own,
            wanted => wanted,
        };
        match self.ack_pending_max {
            Some(max) if wanted > max => Err(ApiError::consumer_max_pending_ack_excess(max)),
            _ => Ok(()),
        }
    }

    fn fill_request_batch(
        &self,
        config: &mut ConsumerConfig,
        pedantry: Pedantry,
    ) -> Result<(), ApiError> {
        let Some(max) = self.request_batch_max.filter(|_| !config.is_push()) else {
            return Ok(());
        };
        if config.max_batch > max {
            return Err(ApiError::consumer_max_request_batch_exceeded(max));
        }
        if config.max_batch <= 0 {
            let why = "max_request_batch must be set if it's JetStream limits are set";
            pedantry.refuses(why, true)?;
            config.max_batch = max;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> AssetLimits {
        AssetLimits {
            ack_pending_max: Some(500),
            request_batch_max: Some(50),
            duplicate_window_max: Some(Nanos::from_secs(30)),
            ..AssetLimits::default()
        }
    }

    /// Each case: requested window in seconds, maximum age in seconds, and resulting window or error.
    #[test]
    fn streams_are_limited_in_duplicate_window() {
        for (window, age, expected) in [
            (0, 0, Ok(30)),
            (0, 10, Ok(10)),
            (0, 40, Ok(30)),
            (20, 0, Ok(20)),
            (60, 0, Err(10052)),
        ] {
            let mut config = StreamConfig {
                duplicate_window: Nanos::from_secs(window),
                max_age: Nanos::from_secs(age),
                ..StreamConfig::default()
            };
            let pedantic = limits().fill_stream(&mut config.clone(), Pedantry::Pedantic);
            assert_eq!(pedantic.is_err(), window == 0, "{window}");
            limits().fill_stream(&mut config, Pedantry::Lax).unwrap();
            let checked = limits().check_stream(&config);
            let got = checked.map(|()| config.duplicate_window);
            assert_eq!(
                got.map_err(|error| error.err_code),
                expected.map(Nanos::from_secs),
                "{window} {age}"
            );
        }
    }

    /// Each case: requested value, limits of the stream and the account, and resulting value or error.
    #[test]
    fn consumers_are_limited_in_pending_acks() {
        for (wanted, stream, account, expected) in [
            (0, 0, -1, Ok(500)),
            (0, 0, 100, Ok(100)),
            (0, 200, 100, Ok(0)),
            (0, 600, -1, Err(10121)),
            (500, 0, -1, Ok(500)),
            (501, 0, -1, Err(10121)),
            (-1, 0, 100, Ok(-1)),
        ] {
            let mut config = ConsumerConfig {
                ack_policy: AckPolicy::Explicit,
                max_ack_pending: wanted,
                ..ConsumerConfig::default()
            };
            let mut of = StreamConfig::default();
            of.consumer_limits.max_ack_pending = stream;
            let account = AccountLimits {
                max_ack_pending: account,
                ..AccountLimits::default()
            };
            let filled = limits().fill_consumer(&mut config, &of, &account, Pedantry::Lax);
            let got = filled.map(|()| config.max_ack_pending);
            assert_eq!(got.map_err(|error| error.err_code), expected, "{wanted}");
        }
    }

    #[test]
    fn consumers_are_limited_in_request_batch() {
        for (wanted, push, expected) in [
            (0, "", Ok(50)),
            (-3, "", Ok(50)),
            (10, "", Ok(10)),
            (51, "", Err(10125)),
            (51, "to.me", Ok(51)),
            (0, "to.me", Ok(0)),
        ] {
            let mut config = ConsumerConfig {
                max_batch: wanted,
                deliver_subject: push.to_owned(),
                ..ConsumerConfig::default()
            };
            let filled = limits().fill_request_batch(&mut config, Pedantry::Lax);
            let got = filled.map(|()| config.max_batch);
            assert_eq!(got.map_err(|error| error.err_code), expected, "{wanted}");
        }
    }
}
