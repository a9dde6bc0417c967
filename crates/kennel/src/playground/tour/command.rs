//! Runs the command lines that the tour shows, each exactly as shown, in the tour's directory and with the
//! playground's kubeconfig. Their output is passed on as it comes.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader, Lines};
use tokio::process::Command;

use super::screen::{Output, Screen};

/// So many lines of a command's output are repeated where it is told what went wrong.
const LAST_WORDS: usize = 3;

/// How a command ended.
#[derive(Debug)]
pub(super) struct Ended {
    /// Its exit code; none where a signal ended it.
    pub(super) code: Option<i32>,
    /// All that it said.
    pub(super) said: String,
}

impl Ended {
    /// The end of what it said; all of it was shown already.
    pub(super) fn last_words(&self) -> String {
        let lines: Vec<_> = self.said.lines().collect();
        lines[lines.len().saturating_sub(LAST_WORDS)..].join("\n")
    }
}

/// Where and how commands run.
#[derive(Debug)]
pub(super) struct Shell {
    /// What `kubectl` stands for.
    kubectl: PathBuf,
    /// What `kennel` stands for.
    kennel: PathBuf,
    kubeconfig: PathBuf,
    directory: PathBuf,
}

impl Shell {
    /// In this directory, which is made.
    pub(super) fn open(kubectl: &Path, kubeconfig: &Path, directory: &Path) -> Result<Self> {
        let make = std::fs::create_dir_all(directory);
        make.with_context(|| format!("cannot make {}", directory.display()))?;
        Ok(Self {
            kubectl: kubectl.to_owned(),
            kennel: std::env::current_exe().context("cannot find this program")?,
            kubeconfig: kubeconfig.to_owned(),
            directory: directory.to_owned(),
        })
    }

    /// Writes a file there.
    pub(super) fn write(&self, file: &str, text: &str) -> Result<()> {
        let path = self.directory.join(file);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Runs this line to its end. It is killed when nobody waits for it any more.
    pub(super) async fn run(&self, screen: Screen, line: &str, whole: bool) -> Result<Ended> {
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
            // kubectl keeps a cache in the home directory, which would outlive the playground.
            .env("HOME", &self.directory)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            // Ctrl-C is for us, who end it then.
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot run {}", program.display()))?;
        let mut output = Output::new(screen, whole);
        let mut said = String::new();
        let mut stdout = lines(child.stdout.take());
        let mut stderr = lines(child.stderr.take());
        while stdout.is_some() || stderr.is_some() {
            let text = tokio::select! {
                text = next(&mut stdout), if stdout.is_some() => text?,
                text = next(&mut stderr), if stderr.is_some() => text?,
            };
            if let Some(text) = text {
                output.line(&text)?;
                said += &text;
                said.push('\n');
            }
        }
        output.end()?;
        let status = child.wait().await.context("cannot wait for it")?;
        Ok(Ended {
            code: status.code(),
            said,
        })
    }
}

fn lines<R: AsyncRead + Unpin>(stream: Option<R>) -> Option<Lines<BufReader<R>>> {
    stream.map(|stream| BufReader::new(stream).lines())
}

/// The next line; the stream is taken away at its end.
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

    async fn run(line: &str) -> Result<Ended> {
        let directory = tempfile::TempDir::new().unwrap();
        let nowhere = Path::new("/nonexistent");
        let shell = Shell::open(nowhere, nowhere, directory.path()).unwrap();
        shell.write("file", "one\ntwo\n").unwrap();
        shell.run(Screen::new(), line, false).await
    }

    #[tokio::test]
    async fn commands_run_in_the_directory_and_say_how_they_ended() {
        let ended = run("cat file missing").await.unwrap();
        assert_eq!(ended.code, Some(1));
        // What a program complains of may come between its lines.
        let both = ended.said.contains("one\n") && ended.said.contains("two\n");
        assert!(both, "{ended:?}");
        assert!(ended.said.contains("missing"), "{ended:?}");
        let ended = run("printenv KUBECONFIG").await.unwrap();
        assert_eq!(ended.said, "/nonexistent\n");
    }

    #[tokio::test]
    async fn a_program_that_is_not_there_is_named() {
        let error = run("kubectl get nodes").await.unwrap_err();
        assert_eq!(error.to_string(), "cannot run /nonexistent");
    }
}
