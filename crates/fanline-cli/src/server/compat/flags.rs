//! nats-server's flags, parsed like Go's `flag` package: one dash or two, `-x v`, `-x=v`, booleans without a
//! value. Parsing ends at the first argument that is not a flag.

/// The effect of a flag. Several names may have the same effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flag {
    Help,
    HelpTls,
    Version,
    Host,
    Port,
    Name,
    MonitorPort,
    MonitorTlsPort,
    PidFile,
    PortsFileDir,
    ClientAdvertise,
    PayloadMax,
    Config,
    TestConfig,
    Signal,
    LogFile,
    LogTime,
    LogTimeUtc,
    LogSizeLimit,
    LogFormat,
    TracedPayloadMax,
    Syslog,
    RemoteSyslog,
    Debug,
    Trace,
    DebugAndTrace,
    User,
    Password,
    Token,
    JetStream,
    StoreDir,
    Tls,
    TlsVerify,
    TlsCertificate,
    TlsKey,
    TlsAuthorities,
    ClusterAdvertise,
    ClusterListen,
    ClusterName,
    ConnectRetries,
    NoAdvertise,
    Routes,
    Profile,
}

/// The type of a flag's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Switch,
    Number,
    Text,
}

/// All flags: one entry per name.
const FLAGS: &[(&str, Flag, Kind)] = &[
    ("h", Flag::Help, Kind::Switch),
    ("help", Flag::Help, Kind::Switch),
    ("help_tls", Flag::HelpTls, Kind::Switch),
    ("v", Flag::Version, Kind::Switch),
    ("version", Flag::Version, Kind::Switch),
    ("a", Flag::Host, Kind::Text),
    ("addr", Flag::Host, Kind::Text),
    ("net", Flag::Host, Kind::Text),
    ("p", Flag::Port, Kind::Number),
    ("port", Flag::Port, Kind::Number),
    ("n", Flag::Name, Kind::Text),
    ("name", Flag::Name, Kind::Text),
    ("server_name", Flag::Name, Kind::Text),
    ("m", Flag::MonitorPort, Kind::Number),
    ("http_port", Flag::MonitorPort, Kind::Number),
    ("ms", Flag::MonitorTlsPort, Kind::Number),
    ("https_port", Flag::MonitorTlsPort, Kind::Number),
    ("P", Flag::PidFile, Kind::Text),
    ("pid", Flag::PidFile, Kind::Text),
    ("ports_file_dir", Flag::PortsFileDir, Kind::Text),
    ("client_advertise", Flag::ClientAdvertise, Kind::Text),
    // nats-server has this option in its configuration file only.
    ("max_payload", Flag::PayloadMax, Kind::Text),
    ("c", Flag::Config, Kind::Text),
    ("config", Flag::Config, Kind::Text),
    ("t", Flag::TestConfig, Kind::Switch),
    ("sl", Flag::Signal, Kind::Text),
    ("signal", Flag::Signal, Kind::Text),
    ("l", Flag::LogFile, Kind::Text),
    ("log", Flag::LogFile, Kind::Text),
    ("T", Flag::LogTime, Kind::Switch),
    ("logtime", Flag::LogTime, Kind::Switch),
    ("logtime_utc", Flag::LogTimeUtc, Kind::Switch),
    ("log_size_limit", Flag::LogSizeLimit, Kind::Number),
    // Only Fanline has this flag, because nats-server's log has only one format.
    ("log_format", Flag::LogFormat, Kind::Text),
    ("log-format", Flag::LogFormat, Kind::Text),
    ("max_traced_msg_len", Flag::TracedPayloadMax, Kind::Number),
    ("s", Flag::Syslog, Kind::Switch),
    ("syslog", Flag::Syslog, Kind::Switch),
    ("r", Flag::RemoteSyslog, Kind::Text),
    ("remote_syslog", Flag::RemoteSyslog, Kind::Text),
    ("D", Flag::Debug, Kind::Switch),
    ("debug", Flag::Debug, Kind::Switch),
    ("V", Flag::Trace, Kind::Switch),
    ("trace", Flag::Trace, Kind::Switch),
    // In nats-server, "verbose" also traces the system account. Here, the system account has no client
    // protocol to trace.
    ("VV", Flag::Trace, Kind::Switch),
    ("DV", Flag::DebugAndTrace, Kind::Switch),
    ("DVV", Flag::DebugAndTrace, Kind::Switch),
    ("user", Flag::User, Kind::Text),
    ("pass", Flag::Password, Kind::Text),
    ("auth", Flag::Token, Kind::Text),
    ("js", Flag::JetStream, Kind::Switch),
    ("jetstream", Flag::JetStream, Kind::Switch),
    ("sd", Flag::StoreDir, Kind::Text),
    ("store_dir", Flag::StoreDir, Kind::Text),
    ("tls", Flag::Tls, Kind::Switch),
    ("tlsverify", Flag::TlsVerify, Kind::Switch),
    ("tlscert", Flag::TlsCertificate, Kind::Text),
    ("tlskey", Flag::TlsKey, Kind::Text),
    ("tlscacert", Flag::TlsAuthorities, Kind::Text),
    ("routes", Flag::Routes, Kind::Text),
    ("cluster", Flag::ClusterListen, Kind::Text),
    ("cluster_listen", Flag::ClusterListen, Kind::Text),
    ("cluster_name", Flag::ClusterName, Kind::Text),
    ("cluster_advertise", Flag::ClusterAdvertise, Kind::Text),
    ("no_advertise", Flag::NoAdvertise, Kind::Switch),
    ("connect_retries", Flag::ConnectRetries, Kind::Number),
    ("profile", Flag::Profile, Kind::Number),
];

/// A flag's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Switch(bool),
    Number(i64),
    Text(String),
}

impl Value {
    /// Returns whether a switch is on.
    pub(crate) fn is_on(&self) -> bool {
        *self == Value::Switch(true)
    }

    /// Returns a text. Returns `None` for an empty text, which Go does not distinguish from a missing flag.
    pub(crate) fn text(self) -> Option<String> {
        match self {
            Value::Text(text) if !text.is_empty() => Some(text),
            _ => None,
        }
    }

    /// Returns a number, or 0.
    pub(crate) fn number(&self) -> i64 {
        match self {
            Value::Number(number) => *number,
            _ => 0,
        }
    }
}

/// One flag of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    pub(crate) flag: Flag,
    /// Name as written, without dashes.
    pub(crate) name: &'static str,
    pub(crate) value: Value,
}

/// Parses flags, and returns the remaining arguments.
pub(crate) fn parse(arguments: &[String]) -> Result<(Vec<Given>, &[String]), String> {
    let mut given = Vec::new();
    let mut rest = arguments;
    while let Some((first, after)) = rest.split_first() {
        if first == "--" {
            return Ok((given, after));
        }
        let Some((written, attached)) = split(first)? else {
            break;
        };
        rest = after;
        let Some((name, flag, kind)) = find(written) else {
            return Err(format!("flag provided but not defined: -{written}"));
        };
        let value = match (kind, attached) {
            (Kind::Switch, None) => Value::Switch(true),
            (Kind::Switch, Some(text)) => Value::Switch(parse_switch(name, text)?),
            (_, attached) => {
                let text = match (attached, rest.split_first()) {
                    (Some(text), _) => text,
                    (None, Some((text, after))) => {
                        rest = after;
                        text
                    }
                    (None, None) => return Err(format!("flag needs an argument: -{name}")),
                };
                match kind {
                    Kind::Number => Value::Number(parse_number(name, text)?),
                    _ => Value::Text(text.to_owned()),
                }
            }
        };
        given.push(Given { flag, name, value });
    }
    Ok((given, rest))
}

fn find(name: &str) -> Option<(&'static str, Flag, Kind)> {
    FLAGS.iter().find(|(known, _, _)| *known == name).copied()
}

/// Returns a flag's name without dashes, and the value behind `=` if there is one. Returns `None` if the
/// argument is not a flag.
fn split(argument: &str) -> Result<Option<(&str, Option<&str>)>, String> {
    let Some(name) = argument.strip_prefix('-').filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    let name = name.strip_prefix('-').unwrap_or(name);
    if name.is_empty() || name.starts_with(['-', '=']) {
        return Err(format!("bad flag syntax: {argument}"));
    }
    Ok(Some(match name.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (name, None),
    }))
}

fn parse_switch(name: &str, text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(format!(
            "invalid boolean value \"{text}\" for -{name}: parse error"
        )),
    }
}

fn parse_number(name: &str, text: &str) -> Result<i64, String> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let lower = digits.to_ascii_lowercase();
    let parsed = match lower.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16),
        None => lower.parse(),
    };
    let signed = digits.starts_with(['-', '+']);
    parsed
        .ok()
        .filter(|_| !signed)
        .map(|number| sign * number)
        .ok_or_else(|| {
            let is_number =
                !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
            let reason = if is_number {
                "value out of range"
            } else {
                "parse error"
            };
            format!("invalid value \"{text}\" for flag -{name}: {reason}")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    type Expected<'a> = Result<(&'a [(Flag, Value)], &'a [&'a str]), &'a str>;

    fn check(line: &str, expected: Expected<'_>) {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let parsed = parse(&arguments).map(|(given, rest)| {
            let given: Vec<_> = given
                .into_iter()
                .map(|given| (given.flag, given.value))
                .collect();
            (given, rest.iter().map(String::as_str).collect::<Vec<_>>())
        });
        let expected = match expected {
            Ok((flags, words)) => Ok((flags.to_vec(), words.to_vec())),
            Err(text) => Err(text.to_owned()),
        };
        assert_eq!(parsed, expected, "{line}");
    }

    #[test]
    fn flags_are_parsed_like_go() {
        let port = (Flag::Port, Value::Number(4222));
        let on = |flag| (flag, Value::Switch(true));
        for line in [
            "-p 4222",
            "--port=4222",
            "-p=4222",
            "--p 0x107e",
            "-port +4222",
        ] {
            check(line, Ok((std::slice::from_ref(&port), &[])));
        }
        check("-D -p 4222", Ok((&[on(Flag::Debug), port.clone()], &[])));
        check(
            "-D=false",
            Ok((&[(Flag::Debug, Value::Switch(false))], &[])),
        );
        check("-p -1", Ok((&[(Flag::Port, Value::Number(-1))], &[])));
        check(
            "-n -D",
            Ok((&[(Flag::Name, Value::Text("-D".into()))], &[])),
        );
        check(
            "-js version -D",
            Ok((&[on(Flag::JetStream)], &["version", "-D"])),
        );
        check("-D -- -p", Ok((&[on(Flag::Debug)], &["-p"])));
        check("-", Ok((&[], &["-"])));
        check("", Ok((&[], &[])));
    }

    #[test]
    fn errors_match_go() {
        check("-zz", Err("flag provided but not defined: -zz"));
        check("--zz=1", Err("flag provided but not defined: -zz"));
        check("-p", Err("flag needs an argument: -p"));
        check("--signal", Err("flag needs an argument: -signal"));
        check(
            "-p abc",
            Err("invalid value \"abc\" for flag -p: parse error"),
        );
        check(
            "-p --1",
            Err("invalid value \"--1\" for flag -p: parse error"),
        );
        check(
            "-p 99999999999999999999",
            Err("invalid value \"99999999999999999999\" for flag -p: value out of range"),
        );
        check(
            "-D=maybe",
            Err("invalid boolean value \"maybe\" for -D: parse error"),
        );
        check("---p 2", Err("bad flag syntax: ---p"));
        check("--=3", Err("bad flag syntax: --=3"));
    }
}
