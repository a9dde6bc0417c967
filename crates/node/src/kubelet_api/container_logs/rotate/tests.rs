use super::*;
use crate::kubelet_api::tests::stub_runtime::StubRuntime;

struct Fixture {
    dir: tempfile::TempDir,
    runtime: StubRuntime,
}

impl Fixture {
    fn new() -> Self {
        let fixture = Self {
            dir: tempfile::tempdir().unwrap(),
            runtime: StubRuntime::default(),
        };
        fs::write(fixture.log(), "0123456789").unwrap();
        fixture
    }

    fn log(&self) -> PathBuf {
        self.dir.path().join("0.log")
    }

    async fn rotate(&self, max: u64) -> Result<(), RotateError> {
        rotate_if_large(&self.runtime, "abc", &self.log(), max).await
    }

    fn reopened(&self) -> usize {
        self.runtime.reopened.lock().unwrap().len()
    }
}

#[tokio::test]
async fn a_small_log_is_not_rotated() {
    let fixture = Fixture::new();
    fixture.rotate(11).await.unwrap();
    assert!(fixture.log().exists());
    assert_eq!(fixture.reopened(), 0);
}

#[tokio::test]
async fn a_large_log_is_rotated_and_the_oldest_files_are_removed() {
    let fixture = Fixture::new();
    for day in 1..=6 {
        fs::write(
            fixture
                .dir
                .path()
                .join(format!("0.log.2026010{day}-000000")),
            "old",
        )
        .unwrap();
    }
    fixture.rotate(10).await.unwrap();
    assert!(!fixture.log().exists(), "the runtime makes the new one");
    assert_eq!(fixture.reopened(), 1);
    let left = rotated_files(&fixture.log()).unwrap();
    assert_eq!(left.len(), FILES_MAX - 1);
    assert!(left[0].ends_with("0.log.20260104-000000"), "{left:?}");
    assert_eq!(fs::read_to_string(&left[3]).unwrap(), "0123456789");
}

#[tokio::test]
async fn a_failed_reopen_undoes_the_rename() {
    let fixture = Fixture::new();
    *fixture.runtime.reopen_error.lock().unwrap() = Some("busy".to_owned());
    assert_eq!(fixture.rotate(10).await.unwrap_err().to_string(), "busy");
    assert_eq!(fs::read_to_string(fixture.log()).unwrap(), "0123456789");
}

#[tokio::test]
async fn a_missing_log_is_reopened() {
    let fixture = Fixture::new();
    fs::remove_file(fixture.log()).unwrap();
    fixture.rotate(10).await.unwrap();
    assert_eq!(fixture.reopened(), 1);
}

#[test]
fn names_are_the_kubelets() {
    let now = "2026-01-02T03:04:05.6Z".parse().unwrap();
    let name = rotated_name(Path::new("/x/0.log"), now);
    assert_eq!(name, Path::new("/x/0.log.20260102-030405"));
}
