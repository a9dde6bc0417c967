use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kennel_types::Timestamp;
use tokio::time::timeout;

use super::*;
use crate::kubelet_api::route::Query;

const DEADLINE: Duration = Duration::from_secs(10);

struct Fixture {
    dir: tempfile::TempDir,
    running: Arc<AtomicBool>,
}

impl Fixture {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            running: Arc::new(AtomicBool::new(true)),
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
        let options = Options::parse(&Query::parse(query), Timestamp::EPOCH).unwrap();
        let log = Log::open(self.path(), options).await.unwrap();
        let running = Arc::clone(&self.running);
        tokio::spawn(log.send(move || running.load(Ordering::Relaxed), sender));
        queue
    }
}

async fn next(queue: &mut mpsc::Receiver<Bytes>) -> Option<String> {
    let chunk = timeout(DEADLINE, queue.recv()).await.expect("in time");
    chunk.map(|chunk| String::from_utf8(chunk.to_vec()).unwrap())
}

async fn all(queue: &mut mpsc::Receiver<Bytes>) -> String {
    let mut text = String::new();
    while let Some(chunk) = next(queue).await {
        text.push_str(&chunk);
    }
    text
}

#[tokio::test]
async fn a_log_is_read_to_its_end() {
    let fixture = Fixture::new();
    fixture.write(&["one", "two", "three"]);
    assert_eq!(all(&mut fixture.read("").await).await, "one\ntwo\nthree\n");
    assert_eq!(
        all(&mut fixture.read("tailLines=2").await).await,
        "two\nthree\n"
    );
    assert_eq!(all(&mut fixture.read("limitBytes=2").await).await, "on");
}

#[tokio::test]
async fn a_long_log_is_read_whole() {
    let fixture = Fixture::new();
    let line = "x".repeat(99);
    fixture.write(&vec![line.as_str(); 5000]);
    assert_eq!(all(&mut fixture.read("").await).await.len(), 500_000);
}

#[tokio::test]
async fn following_sends_new_lines_until_the_container_exits() {
    let fixture = Fixture::new();
    fixture.write(&["one"]);
    let mut queue = fixture.read("follow=true").await;
    assert_eq!(next(&mut queue).await.unwrap(), "one\n");
    fixture.write(&["two"]);
    assert_eq!(next(&mut queue).await.unwrap(), "two\n");
    fixture.write(&["three"]);
    fixture.running.store(false, Ordering::Relaxed);
    assert_eq!(all(&mut queue).await, "three\n");
}

#[tokio::test]
async fn following_loses_nothing_at_a_rotation() {
    let fixture = Fixture::new();
    fixture.write(&["one"]);
    let mut queue = fixture.read("follow=true&tailLines=0").await;
    let rotated = fixture.dir.path().join("0.log.20260101-000000");
    std::fs::rename(fixture.path(), &rotated).unwrap();
    let mut old = File::options().append(true).open(rotated).unwrap();
    old.write_all(b"T stdout F late\n").unwrap();
    fixture.write(&["new"]);
    let mut text = String::new();
    while !text.ends_with("new\n") {
        text.push_str(&next(&mut queue).await.unwrap());
    }
    assert_eq!(text, "late\nnew\n");
}

#[tokio::test]
async fn an_incomplete_line_is_sent_when_it_is_complete() {
    let fixture = Fixture::new();
    fixture.write(&["one"]);
    let mut file = File::options().append(true).open(fixture.path()).unwrap();
    file.write_all(b"T stdout F tw").unwrap();
    let mut queue = fixture.read("follow=true").await;
    assert_eq!(next(&mut queue).await.unwrap(), "one\n");
    file.write_all(b"o\n").unwrap();
    assert_eq!(next(&mut queue).await.unwrap(), "two\n");
}
