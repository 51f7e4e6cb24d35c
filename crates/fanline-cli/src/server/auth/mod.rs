//! `fanline auth`: creates keys, hashes, and tokens for authentication, without a server.

mod tokens;

use std::io::{IsTerminal, Read, Write};

use clap::{Args, Subcommand, ValueEnum};
use fanline_server::auth::nkey::{KeyKind, SecretKey};
use fanline_server::auth::{SALT_BYTES, hash_password, is_hash_of};
use ring::rand::{SecureRandom, SystemRandom};

use crate::failure::Failure;
use tokens::{AccountArgs, CredsArgs, OperatorArgs};

/// Largest password from stdin in bytes.
const PASSWORD_BYTES_MAX: u64 = 64 * 1024;

#[derive(Subcommand, Debug)]
pub(crate) enum AuthCommand {
    /// Create a key pair: the secret seed, and the public key for the server's configuration
    #[command(
        after_help = "Example:\n  fanline auth nkey > ada.nk   # keep the seed, configure the key"
    )]
    Nkey(NkeyArgs),
    /// Hash a password with bcrypt, for the server's configuration
    #[command(after_help = "Example:\n  printf s3cret | fanline auth hash")]
    Hash(HashArgs),
    /// Check a password against a bcrypt hash
    #[command(after_help = "Example:\n  printf s3cret | fanline auth check '$2a$11$…'")]
    Check(CheckArgs),
    /// Create an operator's token, which the server trusts to sign accounts (operator mode)
    #[command(after_help = "\
Example:
  fanline auth nkey --kind operator > acme.nk
  fanline auth operator acme.nk --name Acme > acme.jwt   # `operator: acme.jwt` for the server")]
    Operator(OperatorArgs),
    /// Create an account's token, signed by the operator
    #[command(after_help = "\
Example:
  fanline auth nkey --kind account > shop.nk
  fanline auth account $(fanline auth nkey --public-of shop.nk) --operator acme.nk --name shop

Configure it in the server: `resolver: MEMORY` and `resolver_preload { <key>: <token> }`, or as `<key>.jwt` in
the folder of a resolver.")]
    Account(AccountArgs),
    /// Create a user's credentials, signed by the account, for the --creds option of clients
    #[command(after_help = "\
Examples:
  fanline auth creds --account shop.nk --name ada > ada.creds
  fanline auth creds --account shop.nk --name till --allow-pub 'orders.>' --expires 30d > till.creds")]
    Creds(CredsArgs),
}

#[derive(Args, Debug)]
pub(crate) struct NkeyArgs {
    /// Kind of key to create
    #[arg(long, value_enum, default_value = "user")]
    kind: Kind,
    /// Print the public key of the seed in this file, and create no key
    #[arg(long, value_name = "FILE")]
    public_of: Option<std::path::PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    User,
    Account,
    Operator,
    Server,
}

#[derive(Args, Debug)]
pub(crate) struct HashArgs {
    /// Cost of one password check; each step doubles it
    #[arg(long, default_value = "11", value_parser = clap::value_parser!(u32).range(4..=31))]
    cost: u32,
}

#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    /// The hash
    hash: String,
}

impl AuthCommand {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let mut out = std::io::stdout();
        match self {
            AuthCommand::Nkey(args) => {
                let key = match &args.public_of {
                    Some(path) => read_seed(path)?,
                    None => SecretKey::new(args.kind.into(), random()?),
                };
                if args.public_of.is_none() {
                    writeln!(out, "{}", key.encode())?;
                }
                writeln!(out, "{}", key.public().encode())?;
            }
            AuthCommand::Hash(args) => {
                let hash = hash_password(args.cost, random::<SALT_BYTES>()?, &read_password()?);
                let impossible = || Failure::Usage("--cost must be between 4 and 31".into());
                writeln!(out, "{}", hash.ok_or_else(impossible)?)?;
            }
            AuthCommand::Check(args) => match is_hash_of(&args.hash, &read_password()?) {
                true => writeln!(out, "the password matches")?,
                false => return Err(Failure::Error("the password does not match".into())),
            },
            AuthCommand::Operator(args) => writeln!(out, "{}", args.make()?)?,
            AuthCommand::Account(args) => writeln!(out, "{}", args.make()?)?,
            AuthCommand::Creds(args) => writeln!(out, "{}", args.make()?)?,
        }
        Ok(())
    }
}

impl From<Kind> for KeyKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::User => KeyKind::User,
            Kind::Account => KeyKind::Account,
            Kind::Operator => KeyKind::Operator,
            Kind::Server => KeyKind::Server,
        }
    }
}

/// Returns the first seed in a file.
fn read_seed(path: &std::path::Path) -> Result<SecretKey, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::Error(format!("{}: {error}", path.display())))?;
    text.lines()
        .find_map(|line| SecretKey::parse(line.trim()))
        .ok_or_else(|| {
            Failure::Error(format!(
                "{}: the file contains no nkey seed",
                path.display()
            ))
        })
}

/// Reads a password from stdin, without its line end. It is not an argument, because other users can see
/// arguments.
fn read_password() -> Result<String, Failure> {
    if std::io::stdin().is_terminal() {
        eprintln!("Password (visible; end with Ctrl-D):");
    }
    let mut text = String::new();
    std::io::stdin()
        .take(PASSWORD_BYTES_MAX)
        .read_to_string(&mut text)?;
    let text = text.strip_suffix('\n').unwrap_or(&text);
    Ok(text.strip_suffix('\r').unwrap_or(text).to_owned())
}

fn random<const BYTES: usize>() -> Result<[u8; BYTES], Failure> {
    let mut bytes = [0; BYTES];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| Failure::Error("the system returned no random numbers".into()))?;
    Ok(bytes)
}
