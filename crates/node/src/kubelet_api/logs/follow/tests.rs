use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use tokio::time::timeout;

use super::*;
use crate::kubelet_api::route::Query;

const DEADLINE: Duration = Duration::from_secs(10);

struct Bench {
    dir: tempfile::TempDir,
    runs: Arc<AtomicBool>,
}

impl Bench {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            runs: Arc::new(AtomicBool::new(true)),
        }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("0.log")
    }

    fn write(&self, lines: &[&str]) {
        let file = File::options().append(true).create(true).open(self.path());
        let mut text = String::new();
        for line in lines {
            text.push_str("T stdout F ");
            text.push_str(line);
            text.push('\n');
        }
        file.unwrap().write_all(text.as_bytes()).unwrap();
    }

    async fn read(&self, query: &str) -> mpsc::Receiver<Bytes> {
        let (sender, queue) = mpsc::channel(4);
        let options = Options::parse(&Query::parse(query), Timestamp::UNIX_EPOCH).unwrap();
        let log = Log::open(self.path(), options).await.unwrap();
        let runs = Arc::clone(&self.runs);
        tokio::spawn(log.send(move || runs.load(Ordering::Relaxed), sender));
        queue
    }
}

/// The next words.
async fn next(queue: &mut mpsc::Receiver<Bytes>) -> Option<String> {
    let piece = timeout(DEADLINE, queue.recv()).await.expect("in time");
    piece.map(|piece| String::from_utf8(piece.to_vec()).unwrap())
}

async fn all(queue: &mut mpsc::Receiver<Bytes>) -> String {
    let mut text = String::new();
    while let Some(piece) = next(queue).await {
        text.push_str(&piece);
    }
    text
}

#[tokio::test]
async fn a_log_is_read_to_its_end() {
    let bench = Bench::new();
    bench.write(&["one", "two", "three"]);
    assert_eq!(all(&mut bench.read("").await).await, "one\ntwo\nthree\n");
    assert_eq!(
        all(&mut bench.read("tailLines=2").await).await,
        "two\nthree\n"
    );
    assert_eq!(all(&mut bench.read("limitBytes=2").await).await, "on");
}

#[tokio::test]
async fn a_long_log_is_read_whole() {
    let bench = Bench::new();
    let line = "x".repeat(99);
    bench.write(&vec![line.as_str(); 5000]);
    assert_eq!(all(&mut bench.read("").await).await.len(), 500_000);
}

#[tokio::test]
async fn who_follows_sees_what_is_written_and_the_end() {
    let bench = Bench::new();
    bench.write(&["one"]);
    let mut queue = bench.read("follow=true").await;
    assert_eq!(next(&mut queue).await.unwrap(), "one\n");
    bench.write(&["two"]);
    assert_eq!(next(&mut queue).await.unwrap(), "two\n");
    bench.write(&["three"]);
    bench.runs.store(false, Ordering::Relaxed);
    assert_eq!(all(&mut queue).await, "three\n");
}

#[tokio::test]
async fn who_follows_loses_nothing_when_the_log_is_cut() {
    let bench = Bench::new();
    bench.write(&["one"]);
    let mut queue = bench.read("follow=true&tailLines=0").await;
    let aside = bench.dir.path().join("0.log.20260101-000000");
    std::fs::rename(bench.path(), &aside).unwrap();
    let mut old = File::options().append(true).open(aside).unwrap();
    old.write_all(b"T stdout F late\n").unwrap();
    bench.write(&["new"]);
    let mut heard = String::new();
    while !heard.ends_with("new\n") {
        heard.push_str(&next(&mut queue).await.unwrap());
    }
    assert_eq!(heard, "late\nnew\n");
}

#[tokio::test]
async fn half_a_line_waits_for_the_other_half() {
    let bench = Bench::new();
    bench.write(&["one"]);
    let mut file = File::options().append(true).open(bench.path()).unwrap();
    file.write_all(b"T stdout F tw").unwrap();
    let mut queue = bench.read("follow=true").await;
    assert_eq!(next(&mut queue).await.unwrap(), "one\n");
    file.write_all(b"o\n").unwrap();
    assert_eq!(next(&mut queue).await.unwrap(), "two\n");
}
