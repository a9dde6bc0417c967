//! The first minutes with the binary: wrong flags, starts that fail, a container runtime that is not there, servers that
//! cannot be reached.

mod connection_errors;
mod container_runtime;
mod failed_starts;
mod health;
mod join_line;
mod usage;
mod versions;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

const KENNEL: &str = env!("CARGO_BIN_EXE_kennel");

/// How a command ended.
struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// Runs `kennel` in a directory, without the caller's clusters.
fn kennel(dir: &Path, arguments: &[&str]) -> Ended {
    let output = Command::new(KENNEL)
        .args(arguments)
        .current_dir(dir)
        .env("HOME", dir)
        .env_remove("KUBECONFIG")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Ended {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// The lines that a server prints once it serves. It is killed then.
fn announcement(dir: &Path, arguments: &[&str]) -> Vec<String> {
    let mut server = Command::new(KENNEL)
        .args(arguments)
        .arg("--log=warn")
        .current_dir(dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let lines = lines.take(3).map(Result::unwrap).collect();
    server.kill().unwrap();
    server.wait().unwrap();
    lines
}
