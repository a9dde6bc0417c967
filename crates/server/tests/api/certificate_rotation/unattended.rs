//! A server without requests checks its certificates by itself: renews them, and logs what ends soon.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tracing_subscriber::fmt::MakeWriter;

use super::fixture::Fixture;
use super::{expiring, foreign_authority, warnings};

const INTERVAL: Duration = Duration::from_millis(20);
const TIMEOUT: Duration = Duration::from_secs(30);

/// The log of this test's thread, on which the server runs, too.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < deadline, "{what} in time");
        tokio::time::sleep(INTERVAL).await;
    }
}

#[tokio::test]
async fn a_running_server_renews_its_certificates_by_itself() {
    let fixture = Fixture::checking_every(INTERVAL, |_, _| {}).await;
    let authority = fixture.file("ca.crt");
    let leaf = async || {
        let connection = fixture.connect(&authority, None).await.unwrap();
        connection.leaf()
    };
    let first = leaf().await;
    fixture.clock.advance(276 * super::DAY);
    until("a new certificate", async || {
        (leaf().await != first).then_some(())
    })
    .await;
    fixture.server.stop().await;
}

#[tokio::test]
async fn a_running_server_warns_of_what_ends_in_log_and_event() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(log.clone())
        .with_ansi(false)
        .finish();
    let _logged = tracing::subscriber::set_default(subscriber);
    let fixture = Fixture::checking_every(INTERVAL, foreign_authority).await;
    fixture.clock.advance(31 * super::DAY);
    until("a warning", async || {
        (!warnings(&fixture).await.is_empty()).then_some(())
    })
    .await;
    assert_eq!(expiring(&fixture).await, ["ca"]);
    let lines = || {
        let words = "the certificate authority of this server expires in 29 days";
        let about = |line: &&str| line.contains(words);
        log.text()
            .lines()
            .filter(about)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let logged = lines();
    assert_eq!(logged.len(), 1, "{}", log.text());
    assert!(
        logged[0].contains(" WARN ") && logged[0].contains("certificate=\"ca\""),
        "{logged:?}"
    );
    // Each day once.
    fixture.clock.advance(super::DAY);
    until("the line of the next day", async || {
        log.text().contains("expires in 28 days").then_some(())
    })
    .await;
    assert_eq!(lines().len(), 1, "{}", log.text());
    fixture.server.stop().await;
}
