//! The screen of `fanline top`, and the terminal that it is drawn on.

use std::io::{Read, Write, stdin, stdout};
use std::time::Duration;

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::Sort;
use super::sample::{LeafRow, Row, View};
use crate::failure::Failure;
use crate::show;
use crate::table::Table;

/// The action of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Quit,
    Sort(Sort),
}

impl Key {
    fn of(byte: u8) -> Option<Self> {
        Some(match byte {
            b'q' => Key::Quit,
            b'c' => Key::Sort(Sort::Cid),
            b'n' => Key::Sort(Sort::Name),
            b's' => Key::Sort(Sort::Subscriptions),
            b'p' => Key::Sort(Sort::Pending),
            b'i' => Key::Sort(Sort::InMsgs),
            b'o' => Key::Sort(Sort::OutMsgs),
            b'I' => Key::Sort(Sort::InBytes),
            b'O' => Key::Sort(Sort::OutBytes),
            b'r' => Key::Sort(Sort::Rtt),
            _ => return None,
        })
    }
}

/// The terminal. Dropping it restores its settings.
pub(super) struct Screen {
    before: Termios,
    keys: mpsc::UnboundedReceiver<Key>,
}

impl Screen {
    pub(super) fn open() -> Result<Self, Failure> {
        let before = tcgetattr(stdin()).map_err(std::io::Error::from)?;
        let mut raw = before.clone();
        // Keys arrive at once and without an echo; Ctrl-C is still a signal.
        raw.local_modes
            .remove(LocalModes::ICANON | LocalModes::ECHO);
        tcsetattr(stdin(), OptionalActions::Now, &raw).map_err(std::io::Error::from)?;
        let (pressed, keys) = mpsc::unbounded_channel();
        // The thread ends with the process, because a read of a terminal cannot be canceled.
        std::thread::spawn(move || {
            for byte in stdin().lock().bytes().map_while(Result::ok) {
                if let Some(key) = Key::of(byte)
                    && pressed.send(key).is_err()
                {
                    return;
                }
            }
        });
        // The alternate screen, without a cursor.
        write!(stdout(), "\x1b[?1049h\x1b[?25l")?;
        Ok(Screen { before, keys })
    }

    /// Returns the key that is pressed within this time.
    pub(super) async fn key_within(&mut self, time: Duration) -> Option<Key> {
        match timeout(time, self.keys.recv()).await {
            Ok(Some(key)) => Some(key),
            // If stdin is closed, no key follows.
            Ok(None) => {
                tokio::time::sleep(time).await;
                None
            }
            Err(_) => None,
        }
    }

    /// Draws as many lines as fit.
    pub(super) fn draw(&mut self, lines: &[String]) -> Result<(), Failure> {
        let size = tcgetwinsize(stdout()).ok();
        let (rows, columns) = size.map_or((24, 80), |size| (size.ws_row, size.ws_col));
        let shown = lines.iter().take(usize::from(rows.max(1)));
        let cut = |line: &String| line.chars().take(usize::from(columns)).collect::<String>();
        let text: Vec<String> = shown.map(|line| cut(line) + "\x1b[K").collect();
        let mut out = stdout().lock();
        write!(out, "\x1b[H{}\x1b[J", text.join("\r\n"))?;
        out.flush()?;
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Errors do not matter if the terminal is gone.
        let _ = write!(stdout(), "\x1b[?25h\x1b[?1049l");
        let _ = stdout().flush();
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.before);
    }
}

/// Returns the lines of the screen.
pub(super) fn lines(view: &View, sort: Sort) -> Vec<String> {
    let server = &view.server;
    let mut lines = vec![
        format!(
            "{}  version {}  up {}  cpu {:.1} %  memory {}",
            plain(&server.server_name),
            server.version,
            server.uptime,
            server.cpu,
            show::bytes(server.mem),
        ),
        format!(
            "in {}/s {}/s  out {}/s {}/s  slow consumers {}",
            rate(view.rates.in_msgs),
            byte_rate(view.rates.in_bytes),
            rate(view.rates.out_msgs),
            byte_rate(view.rates.out_bytes),
            show::count(server.slow_consumers),
        ),
        format!(
            "connections {}  subscriptions {}  sorted by {}",
            show::count(server.connections),
            show::count(server.subscriptions),
            word(sort),
        ),
        String::new(),
    ];
    if !view.leafs.is_empty() {
        lines.extend(leaf_lines(&view.leafs));
        lines.push(String::new());
    }
    let mut table = Table::new([
        ">cid", "name", "address", "user", ">subs", ">pending", ">in/s", ">out/s", ">in B/s",
        ">out B/s", ">rtt", ">idle", "slow",
    ]);
    for row in &view.rows {
        table.row(cells(row));
    }
    lines.extend(table.lines());
    lines
}

/// Returns the lines of leaf connections. They precede the clients, because they are few and have much
/// traffic.
fn leaf_lines(leafs: &[LeafRow]) -> Vec<String> {
    let mut table = Table::new([
        ">leaf",
        "name",
        "address",
        "account",
        "is",
        ">subs",
        ">in/s",
        ">out/s",
        ">in B/s",
        ">out B/s",
        ">rtt",
        ">reconnects",
        "compression",
    ]);
    for LeafRow { leaf, rates } in leafs {
        table.row([
            leaf.id.to_string(),
            plain(&leaf.name),
            format!("{}:{}", leaf.ip, leaf.port),
            plain(&leaf.account),
            // The role of the other server.
            if leaf.is_spoke { "hub" } else { "spoke" }.to_owned(),
            show::count(leaf.subscriptions),
            rate(rates.in_msgs),
            rate(rates.out_msgs),
            byte_rate(rates.in_bytes),
            byte_rate(rates.out_bytes),
            leaf.rtt.clone(),
            show::count(leaf.reconnects),
            plain(&leaf.compression),
        ]);
    }
    table.lines()
}

fn cells(row: &Row) -> [String; 13] {
    let Row { connection, rates } = row;
    let user = match (
        connection.account.as_str(),
        connection.authorized_user.as_str(),
    ) {
        ("" | "$G", user) => user.to_owned(),
        (account, user) => format!("{account}/{user}"),
    };
    [
        connection.cid.to_string(),
        plain(&connection.name),
        format!("{}:{}", connection.ip, connection.port),
        plain(&user),
        show::count(connection.subscriptions),
        show::bytes(connection.pending_bytes),
        rate(rates.in_msgs),
        rate(rates.out_msgs),
        byte_rate(rates.in_bytes),
        byte_rate(rates.out_bytes),
        connection.rtt.clone(),
        connection.idle.clone(),
        slow(row),
    ]
}

/// Returns how long a connection has been slow, and the subject of its backlog.
fn slow(row: &Row) -> String {
    let Some(slow) = &row.connection.slow_consumer else {
        return String::new();
    };
    let waited = slow.waited.as_deref().unwrap_or_default();
    let waited = rounded(waited);
    let subject = plain(slow.subject.as_deref().unwrap_or_default());
    format!("{waited} {subject}").trim().to_owned()
}

/// Replaces control characters in a client's text, so that the text cannot control the terminal.
pub(super) fn plain(text: &str) -> String {
    /// Largest number of characters. A longer text would move the other columns off the screen.
    const CHARACTERS_MAX: usize = 32;
    let visible = text.chars().map(|c| if c.is_control() { '?' } else { c });
    visible.take(CHARACTERS_MAX).collect()
}

fn rounded(duration: &str) -> String {
    match seconds(duration) {
        0.0 => duration.to_owned(),
        seconds => format!("{seconds:.1}s"),
    }
}

/// Parses a duration in Go's notation, such as `1m2.5s`, to seconds; 0 if it is invalid.
pub(super) fn seconds(text: &str) -> f64 {
    let mut sum = 0.0;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, behind) = rest.split_at(digits.unwrap_or(rest.len()));
        let unit_bytes = behind
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(unit_bytes);
        let scale = match unit {
            "ns" => 1e-9,
            "µs" | "us" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return 0.0,
        };
        let Ok(number) = number.parse::<f64>() else {
            return 0.0;
        };
        sum += number * scale;
        rest = behind;
    }
    sum
}

pub(super) fn rate(each_second: f64) -> String {
    show::count(whole(each_second))
}

pub(super) fn byte_rate(each_second: f64) -> String {
    show::bytes(whole(each_second))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rate is rounded, and never negative"
)]
fn whole(number: f64) -> u64 {
    number.round().max(0.0) as u64
}

fn word(sort: Sort) -> String {
    let value = clap::ValueEnum::to_possible_value(&sort);
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed_to_seconds() {
        for (text, expected) in [
            ("", 0.0),
            ("1s", 1.0),
            ("250ms", 0.25),
            ("1m2.5s", 62.5),
            ("2h0m0s", 7200.0),
            ("x", 0.0),
            ("12", 0.0),
        ] {
            assert!((seconds(text) - expected).abs() < 1e-9, "{text}");
        }
    }

    #[test]
    fn control_characters_are_replaced() {
        assert_eq!(plain("a\x1b[2Jb"), "a?[2Jb");
        assert_eq!(plain(&"x".repeat(99)).len(), 32);
    }
}
