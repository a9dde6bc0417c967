//! `xtask fuzz`: builds the fuzz targets with coverage counters and the stable compiler, lets libFuzzer look for new inputs, and keeps
//! those that reach new code in `fuzz/corpus`.
//!
//! cargo-fuzz needs a nightly compiler for its sanitizers alone. The counters are a pass of LLVM that a stable compiler
//! runs, too, and in code without `unsafe` there is little that the sanitizers would find.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};

const USAGE: &str = "usage: cargo xtask fuzz [--seconds N] [TARGET…]
  --seconds N   for all targets together [60]
  TARGET        names of directories in fuzz/corpus [all]";

const SECONDS: u64 = 60;
/// What libFuzzer needs of the compiler: a counter of each edge, the edge's place, and what is compared.
const FLAGS: [&str; 7] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cllvm-args=-simplifycfg-branch-fold-threshold=0",
    "--cfg=fuzzing",
];
/// The longest input: short ones are fast, and fit the corpus.
const INPUT_BYTES_MAX: &str = "-max_len=4096";
/// An input that takes longer is a bug: the slowest takes some milliseconds.
const INPUT_SECONDS_MAX: &str = "-timeout=10";
const MEMORY_MB_MAX: &str = "-rss_limit_mb=2048";
/// Of this, not of hit counts: so that the corpus stays small.
const MERGE_BY_EDGES: &str = "-use_counters=0";

/// Where things are, all below the repository.
struct Places {
    programs: PathBuf,
    /// Inputs that are kept in the repository.
    corpus: PathBuf,
    /// Everything that was found on this machine.
    found: PathBuf,
    crashes: PathBuf,
}

/// What a run did.
#[derive(Debug, Default, PartialEq, Eq)]
struct Figures {
    executions: u64,
    edges: u64,
    found: u64,
    kept: usize,
}

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let (seconds, mut targets) = parse(arguments)?;
    let places = places()?;
    build()?;
    if targets.is_empty() {
        targets = names(&places.corpus)?;
    }
    let share = (seconds / targets.len() as u64).max(1);
    say("target                 executions    edges  found  kept");
    let mut all = Figures::default();
    for target in &targets {
        let figures = fuzz(&places, target, share)?;
        row(target, &figures);
        all.executions += figures.executions;
        all.edges += figures.edges;
        all.found += figures.found;
        all.kept += figures.kept;
    }
    row("all", &all);
    Ok(())
}

fn parse(arguments: &[String]) -> Result<(u64, Vec<String>)> {
    let (mut seconds, mut targets) = (SECONDS, Vec::new());
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        if argument == "--seconds" {
            let value = arguments.next().context(USAGE)?;
            seconds = value.parse().context(USAGE)?;
        } else if argument.starts_with('-') {
            bail!("{USAGE}");
        } else {
            targets.push(argument.clone());
        }
    }
    Ok((seconds, targets))
}

fn host() -> Result<String> {
    let output = Command::new("rustc").arg("-vV").output()?;
    let text = String::from_utf8(output.stdout)?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc does not name its host")?.to_owned())
}

fn places() -> Result<Places> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    let root = root.context("this crate is in the repository")?;
    let target = root.join("target/fuzz");
    Ok(Places {
        programs: target.join(host()?).join("fuzz"),
        corpus: root.join("fuzz/corpus"),
        found: target.join("found"),
        crashes: target.join("crashes"),
    })
}

/// With `--target`, so that the flags do not apply to build scripts and macros.
fn build() -> Result<()> {
    let status = Command::new("cargo")
        .args(["build", "--locked", "--quiet", "--package", "kennel-fuzz"])
        .args(["--profile", "fuzz", "--target-dir", "target/fuzz"])
        .args(["--target", &host()?])
        .env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\u{1f}"))
        .status()?;
    ensure!(status.success(), "the fuzz targets cannot be built");
    Ok(())
}

fn names(corpus: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(corpus)?;
    let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let mut names: Vec<String> = names.collect::<Result<_>>()?;
    names.sort();
    Ok(names)
}

fn fuzz(places: &Places, target: &str, seconds: u64) -> Result<Figures> {
    let (corpus, found) = (places.corpus.join(target), places.found.join(target));
    ensure!(corpus.is_dir(), "{} is not a directory", corpus.display());
    fs::create_dir_all(&found)?;
    fs::create_dir_all(&places.crashes)?;
    let crashes = places.crashes.join(format!("{target}-"));
    let said = libfuzzer(
        places,
        target,
        &[
            &format!("-max_total_time={seconds}"),
            &format!("-artifact_prefix={}", crashes.display()),
            "-print_final_stats=1",
            INPUT_SECONDS_MAX,
            MEMORY_MB_MAX,
        ],
        &[&found, &corpus],
    )?;
    let mut figures = figures(&said);
    let before = fs::read_dir(&corpus)?.count();
    // Adds to the first directory what reaches more than it does.
    libfuzzer(
        places,
        target,
        &["-merge=1", MERGE_BY_EDGES],
        &[&corpus, &found],
    )?;
    figures.kept = fs::read_dir(&corpus)?.count() - before;
    Ok(figures)
}

/// Runs a target on directories of inputs; returns what it said.
fn libfuzzer(
    places: &Places,
    target: &str,
    options: &[&str],
    directories: &[&Path],
) -> Result<String> {
    let program = places.programs.join(target);
    let output = Command::new(&program)
        .arg(INPUT_BYTES_MAX)
        .args(options)
        .args(directories)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .with_context(|| format!("{} cannot be started", program.display()))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let end: Vec<&str> = said.lines().rev().take(30).collect();
    let end: Vec<&str> = end.into_iter().rev().collect();
    ensure!(
        output.status.success(),
        "{target} failed; copy the input that it names to fuzz/corpus/{target} and fix the bug:\n{}",
        end.join("\n")
    );
    Ok(said)
}

/// The statistics that libFuzzer prints at its end, and the coverage of its last line of progress.
fn figures(said: &str) -> Figures {
    let statistic = |name: &str| {
        let mut lines = said.lines();
        let value = lines.find_map(|line| line.strip_prefix(name));
        value
            .and_then(|value| value.trim().parse().ok())
            .unwrap_or(0)
    };
    let edges = said.lines().rev().find_map(|line| {
        let (_, rest) = line.split_once("cov: ")?;
        rest.split(' ').next()?.parse().ok()
    });
    Figures {
        executions: statistic("stat::number_of_executed_units:"),
        edges: edges.unwrap_or(0),
        found: statistic("stat::new_units_added:"),
        kept: 0,
    }
}

fn row(name: &str, figures: &Figures) {
    say(&format!(
        "{name:<22} {:>10} {:>8} {:>6} {:>5}",
        figures.executions, figures.edges, figures.found, figures.kept
    ));
}

#[expect(clippy::print_stdout, reason = "the table is what the task is for")]
fn say(line: &str) {
    println!("{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read() {
        let parsed = |text: &str| {
            let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            parse(&words).ok()
        };
        assert_eq!(parsed(""), Some((SECONDS, vec![])));
        let some = Some((9, vec!["dns".to_owned(), "spdy".to_owned()]));
        assert_eq!(parsed("dns --seconds 9 spdy"), some);
        assert_eq!(parsed("--seconds"), None);
        assert_eq!(parsed("--jobs 4"), None);
    }

    #[test]
    fn figures_are_read() {
        let said = "#2\tINITED cov: 10 ft: 11 corp: 1/1b\n#900\tDONE   cov: 712 ft: 1400 corp: 9/1Kb\n\
                    stat::number_of_executed_units: 900\nstat::new_units_added:          7\n";
        let expected = Figures {
            executions: 900,
            edges: 712,
            found: 7,
            kept: 0,
        };
        assert_eq!(figures(said), expected);
    }
}
