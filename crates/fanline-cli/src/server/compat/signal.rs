//! `--signal`: sends a command to a running server.

use std::fs;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpid, kill_process};

/// Sends a signal: `command[=pid or file]`. Without a target, sends it to the only process with this
/// program's name.
pub(crate) fn send(program: &str, argument: &str) -> Result<(), String> {
    let (command, target) = match argument.split_once('=') {
        Some((command, target)) if !target.is_empty() => (command, Some(target)),
        _ => (argument.trim_end_matches('='), None),
    };
    let pids = match target {
        None => vec![only_one(program, running(program, ""))?],
        Some(target) => resolve(program, target)?,
    };
    let signal = match command {
        "stop" => Signal::KILL,
        "quit" => Signal::INT,
        "term" => Signal::TERM,
        "reopen" => Signal::USR1,
        "reload" => Signal::HUP,
        "ldm" => Signal::USR2,
        _ => return Err(format!("unknown signal \"{command}\"")),
    };
    let failed: Vec<_> = pids
        .into_iter()
        .filter_map(|pid| kill(pid, signal, command).err())
        .collect();
    if failed.is_empty() {
        Ok(())
    } else {
        Err(format!("\n{}", failed.join("\n")))
    }
}

fn kill(pid: i32, signal: Signal, command: &str) -> Result<(), String> {
    let pid_valid = Pid::from_raw(pid).ok_or_else(|| format!("invalid pid: {pid}"))?;
    kill_process(pid_valid, signal).map_err(|error| {
        let reason = match error {
            Errno::SRCH => "no such process".to_owned(),
            Errno::PERM => "operation not permitted".to_owned(),
            error => error.to_string(),
        };
        format!("signal \"{command}\" {pid}: {reason}")
    })
}

/// Resolves a pid, a pid prefix with `*`, or a file with a pid.
fn resolve(program: &str, target: &str) -> Result<Vec<i32>, String> {
    if let Some(start) = target.strip_suffix('*') {
        let pids = running(program, start);
        return if pids.is_empty() {
            Err(none_running(program))
        } else {
            Ok(pids)
        };
    }
    let pid = match target.parse() {
        Ok(pid) => Some(pid),
        Err(_) => fs::read_to_string(target)
            .ok()
            .and_then(|text| text.trim().parse().ok()),
    };
    // Zero and negative numbers would address process groups.
    let pid = pid
        .filter(|pid| *pid > 0)
        .ok_or_else(|| format!("invalid pid: {target}"))?;
    Ok(vec![pid])
}

fn only_one(program: &str, pids: Vec<i32>) -> Result<i32, String> {
    match pids[..] {
        [] => Err(none_running(program)),
        [pid] => Ok(pid),
        _ => {
            let list: Vec<_> = pids.iter().map(i32::to_string).collect();
            Err(format!(
                "multiple {program} processes running:\n{}",
                list.join("\n")
            ))
        }
    }
}

fn none_running(program: &str) -> String {
    format!("no {program} processes running")
}

/// Returns the other processes with this program's name and a pid that starts with `start`. Works only on
/// Linux. Without `/proc`, a pid is required.
fn running(program: &str, start: &str) -> Vec<i32> {
    let own = getpid().as_raw_nonzero().get();
    // The kernel stores fifteen bytes of a name.
    let short = program.get(..15).unwrap_or(program);
    let mut pids: Vec<i32> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.starts_with(start))
        .filter(|name| {
            fs::read_to_string(format!("/proc/{name}/comm")).is_ok_and(|comm| comm.trim() == short)
        })
        .filter_map(|name| name.parse().ok())
        .filter(|pid| *pid != own)
        .collect();
    pids.sort_unstable();
    pids
}
