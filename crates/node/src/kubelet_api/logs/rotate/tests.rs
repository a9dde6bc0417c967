use super::*;
use crate::kubelet_api::fake::Fake;

struct Bench {
    dir: tempfile::TempDir,
    runtime: Fake,
}

impl Bench {
    fn new() -> Self {
        let bench = Self {
            dir: tempfile::tempdir().unwrap(),
            runtime: Fake::default(),
        };
        fs::write(bench.log(), "0123456789").unwrap();
        bench
    }

    fn log(&self) -> PathBuf {
        self.dir.path().join("0.log")
    }

    async fn cut(&self, max: u64) -> Result<(), CutError> {
        cut(&self.runtime, "abc", &self.log(), max).await
    }

    fn reopened(&self) -> usize {
        self.runtime.reopened.lock().unwrap().len()
    }
}

#[tokio::test]
async fn a_short_log_is_left_alone() {
    let bench = Bench::new();
    bench.cut(11).await.unwrap();
    assert!(bench.log().exists());
    assert_eq!(bench.reopened(), 0);
}

#[tokio::test]
async fn a_long_log_is_put_aside_and_the_oldest_go() {
    let bench = Bench::new();
    for day in 1..=6 {
        fs::write(
            bench.dir.path().join(format!("0.log.2026010{day}-000000")),
            "old",
        )
        .unwrap();
    }
    bench.cut(10).await.unwrap();
    assert!(!bench.log().exists(), "the runtime makes the new one");
    assert_eq!(bench.reopened(), 1);
    let left = cut_off(&bench.log()).unwrap();
    assert_eq!(left.len(), FILES_MAX - 1);
    assert!(left[0].ends_with("0.log.20260104-000000"), "{left:?}");
    assert_eq!(fs::read_to_string(&left[3]).unwrap(), "0123456789");
}

#[tokio::test]
async fn a_runtime_that_does_not_go_on_keeps_its_file() {
    let bench = Bench::new();
    *bench.runtime.stuck.lock().unwrap() = Some("busy".to_owned());
    assert_eq!(bench.cut(10).await.unwrap_err().to_string(), "busy");
    assert_eq!(fs::read_to_string(bench.log()).unwrap(), "0123456789");
}

#[tokio::test]
async fn a_runtime_that_was_not_told_is_told_again() {
    let bench = Bench::new();
    fs::remove_file(bench.log()).unwrap();
    bench.cut(10).await.unwrap();
    assert_eq!(bench.reopened(), 1);
}

#[test]
fn names_are_the_kubelets() {
    let now = "2026-01-02T03:04:05.6Z".parse().unwrap();
    let name = aside(Path::new("/x/0.log"), now);
    assert_eq!(name, Path::new("/x/0.log.20260102-030405"));
}
