//! Errors of commands, and their exit codes.

use std::fmt;
use std::io;
use std::process::ExitCode;

use fanline_client::ClientError;
use fanline_client::jetstream::JetStreamError;

/// The error that a command ends with.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The operation failed. Exit code 1.
    Error(String),
    /// Wrong usage. Exit code 2, like clap's.
    Usage(String),
    /// No response: a timeout, or no responders. Exit code 3.
    NoAnswer(String),
    /// The output was closed (`| head`): the reader needs no more. Exit code 0.
    OutputClosed,
}

impl Failure {
    /// Prints the error to stderr, and returns its exit code.
    pub(crate) fn report(&self, program: &str) -> ExitCode {
        if !matches!(self, Failure::OutputClosed) {
            eprintln!("{program}: {self}");
        }
        ExitCode::from(match self {
            Failure::OutputClosed => 0,
            Failure::Error(_) => 1,
            Failure::Usage(_) => 2,
            Failure::NoAnswer(_) => 3,
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Error(text) | Failure::Usage(text) | Failure::NoAnswer(text) => {
                f.write_str(text)
            }
            Failure::OutputClosed => f.write_str("the output was closed"),
        }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let text = error.to_string();
        match error {
            ClientError::NoResponders | ClientError::TimedOut => Failure::NoAnswer(text),
            ClientError::InvalidAddress { .. }
            | ClientError::InvalidSubject { .. }
            | ClientError::InvalidHeader { .. } => Failure::Usage(text),
            _ => Failure::Error(text),
        }
    }
}

impl From<JetStreamError> for Failure {
    fn from(error: JetStreamError) -> Self {
        match error {
            JetStreamError::Client(error) => error.into(),
            JetStreamError::Io(error) => error.into(),
            JetStreamError::NotEnabled | JetStreamError::NoStream => {
                Failure::NoAnswer(error.to_string())
            }
            JetStreamError::InvalidName { .. } => Failure::Usage(error.to_string()),
            _ => Failure::Error(error.to_string()),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::OutputClosed,
            _ => Failure::Error(error.to_string()),
        }
    }
}
