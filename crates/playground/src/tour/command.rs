//! Runs the command lines that the tour shows, in the tour's directory and with the playground's kubeconfig, and
//! prints their output as it arrives.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader, Lines};
use tokio::process::Command;

use super::terminal::{Output, Terminal};

/// Number of output lines that are repeated in an error message.
const TAIL_LINES: usize = 3;

#[derive(Debug)]
pub(super) struct Finished {
    /// `None` if a signal killed it.
    pub(super) code: Option<i32>,
    /// Stdout and stderr.
    pub(super) output: String,
}

impl Finished {
    /// The last lines of the output, for error messages.
    pub(super) fn tail(&self) -> String {
        let lines: Vec<_> = self.output.lines().collect();
        lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
    }
}

#[derive(Debug)]
pub(super) struct Shell {
    kubectl: PathBuf,
    kennel: PathBuf,
    kubeconfig: PathBuf,
    directory: PathBuf,
}

impl Shell {
    /// Creates the directory that commands run in.
    pub(super) fn open(kubectl: &Path, kubeconfig: &Path, directory: &Path) -> Result<Self> {
        let created = std::fs::create_dir_all(directory);
        created.with_context(|| format!("cannot create {}", directory.display()))?;
        Ok(Self {
            kubectl: kubectl.to_owned(),
            kennel: std::env::current_exe().context("cannot find the path of this program")?,
            kubeconfig: kubeconfig.to_owned(),
            directory: directory.to_owned(),
        })
    }

    /// Writes a file in the directory.
    pub(super) fn write(&self, file: &str, text: &str) -> Result<()> {
        let path = self.directory.join(file);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Runs a command line. Dropping the future kills the command.
    pub(super) async fn run(
        &self,
        terminal: Terminal,
        line: &str,
        whole: bool,
    ) -> Result<Finished> {
        let mut words = line.split_whitespace();
        let program = match words.next().unwrap_or_default() {
            "kubectl" => self.kubectl.as_path(),
            "kennel" => self.kennel.as_path(),
            other => Path::new(other),
        };
        let mut child = Command::new(program)
            .args(words)
            .current_dir(&self.directory)
            .env("KUBECONFIG", &self.kubeconfig)
            // kubectl caches in the home directory, where its files would outlive the playground.
            .env("HOME", &self.directory)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            // Ctrl-C signals only this process, which kills the command.
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot run {}", program.display()))?;
        let mut printer = Output::new(terminal, whole);
        let mut output = String::new();
        let mut stdout = lines(child.stdout.take());
        let mut stderr = lines(child.stderr.take());
        while stdout.is_some() || stderr.is_some() {
            let text = tokio::select! {
                text = next(&mut stdout), if stdout.is_some() => text?,
                text = next(&mut stderr), if stderr.is_some() => text?,
            };
            if let Some(text) = text {
                printer.line(&text)?;
                output += &text;
                output.push('\n');
            }
        }
        printer.end()?;
        let status = child.wait().await.context("cannot wait for the command")?;
        Ok(Finished {
            code: status.code(),
            output,
        })
    }
}

fn lines<R: AsyncRead + Unpin>(stream: Option<R>) -> Option<Lines<BufReader<R>>> {
    stream.map(|stream| BufReader::new(stream).lines())
}

/// The next line. Sets the stream to `None` at its end.
async fn next<R: AsyncRead + Unpin>(
    stream: &mut Option<Lines<BufReader<R>>>,
) -> std::io::Result<Option<String>> {
    let Some(lines) = stream else {
        return Ok(None);
    };
    let line = lines.next_line().await?;
    if line.is_none() {
        *stream = None;
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn run(line: &str) -> Result<Finished> {
        let directory = tempfile::TempDir::new().unwrap();
        let nowhere = Path::new("/nonexistent");
        let shell = Shell::open(nowhere, nowhere, directory.path()).unwrap();
        shell.write("file", "one\ntwo\n").unwrap();
        shell.run(Terminal::stdout(), line, false).await
    }

    #[tokio::test]
    async fn commands_run_in_the_directory_and_return_code_and_output() {
        let finished = run("cat file missing").await.unwrap();
        assert_eq!(finished.code, Some(1));
        // Stdout and stderr may be interleaved.
        let both = finished.output.contains("one\n") && finished.output.contains("two\n");
        assert!(both, "{finished:?}");
        assert!(finished.output.contains("missing"), "{finished:?}");
        let finished = run("printenv KUBECONFIG").await.unwrap();
        assert_eq!(finished.output, "/nonexistent\n");
    }

    #[tokio::test]
    async fn a_missing_program_is_named_in_the_error() {
        let error = run("kubectl get nodes").await.unwrap_err();
        assert_eq!(error.to_string(), "cannot run /nonexistent");
    }
}
