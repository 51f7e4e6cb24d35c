//! Systems that run in a JVM: Maven projects in `rivals`. Each is a process that responds to every line of
//! input with one line.

use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, ensure};

/// Builds a project with Maven, which downloads dependencies the first time. Returns the project's directory.
pub(crate) fn package(project: &str) -> Result<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("rivals")
        .join(project);
    eprintln!("building rivals/{project} with Maven");
    let status = Command::new("mvn")
        .args(["-q", "--batch-mode", "package"])
        .current_dir(&folder)
        // Standard output is reserved for the report, so send Maven's output to standard error.
        .stdout(io::stderr())
        .status()
        .context(
            "--rivals needs Maven (`mvn`) and a JDK of version 17 or later; `mvn` could not be \
             started",
        )?;
    ensure!(
        status.success(),
        "--rivals: `mvn package` failed in rivals/{project} ({status})"
    );
    Ok(folder)
}

/// A running JVM. Dropping it ends the process.
pub(crate) struct Jvm {
    child: Child,
    /// Standard input of the JVM. When it is closed, even because this process was killed, the JVM ends.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    /// Name of the project, for error messages.
    pub(crate) name: String,
    /// The first line that the JVM prints: the versions.
    pub(crate) banner: String,
}

impl Jvm {
    pub(crate) fn start(java: &Path, folder: &Path, options: &[&str], load: &str) -> Result<Self> {
        let mut child = Command::new(java)
            .args(options)
            .args(["-cp", "target/classes:target/lib/*", "fanline.Rival", load])
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| {
                let java = java.display();
                format!("--rivals needs a JDK; `{java}` could not be started")
            })?;
        let input = child.stdin.take().context("no pipe to the JVM")?;
        let output = child.stdout.take().context("no pipe from the JVM")?;
        let project = folder.file_name().unwrap_or_default().display();
        let mut jvm = Self {
            child,
            input: Some(input),
            output: BufReader::new(output),
            name: format!("{project}, {load}"),
            banner: String::new(),
        };
        jvm.banner = jvm.line()?;
        Ok(jvm)
    }

    pub(crate) fn ask(&mut self, line: &str) -> Result<String> {
        let input = self.input.as_mut().context("the JVM is being ended")?;
        writeln!(input, "{line}").with_context(|| self.name.clone())?;
        self.line()
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        let bytes = self.output.read_line(&mut line)?;
        let name = &self.name;
        ensure!(bytes > 0, "{name}: the JVM ended before it answered");
        Ok(line.trim().to_owned())
    }
}

impl Drop for Jvm {
    fn drop(&mut self) {
        self.input = None;
        // Ignore an error, because the next run starts a new process.
        let _ = self.child.wait();
    }
}
