//! The thread that writes the audit log: it formats events, writes them in batches, and reports lost
//! lines. Only the shutdown of the server waits for it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::file::Output;
use super::line;
use super::pending::Event;
use super::queue::Queue;

/// Bytes per write: few system calls, and little is lost when one fails.
const CHUNK_BYTES: usize = 64 << 10;

/// How often the server's log says that the queue was full: it can be so for as long as the disk is too slow.
const OVERFLOW_WARNING_EVERY: Duration = Duration::from_secs(10);

pub(super) struct Writer {
    queue: Arc<Queue>,
    output: Output,
    skip_heartbeats: bool,
    /// Formatted and not yet written.
    lines: Vec<u8>,
    /// How many lost lines the log has reported.
    reported_lost: u64,
    /// How many events that found the queue full the server's log has reported, and when.
    warned_overflow: (u64, Option<Instant>),
    /// The last write failed. Logged once, not for every write.
    is_failing: bool,
}

impl Writer {
    pub(super) fn new(queue: Arc<Queue>, output: Output, skip_heartbeats: bool) -> Self {
        Self {
            queue,
            output,
            skip_heartbeats,
            lines: Vec::new(),
            reported_lost: 0,
            warned_overflow: (0, None),
            is_failing: false,
        }
    }

    /// Writes until the queue is closed and empty.
    pub(super) fn run(mut self) {
        while let Some(events) = self.queue.take() {
            self.write(&events);
        }
        self.report_lost();
        self.report_suppressed(true);
        self.warn_overflow(true);
        self.output.sync();
    }

    fn write(&mut self, events: &[Box<Event>]) {
        self.report_lost();
        self.report_suppressed(false);
        self.warn_overflow(false);
        let mut line = Vec::new();
        for event in events {
            if self.skip_heartbeats && line::is_heartbeat(event) {
                continue;
            }
            line.clear();
            line::write(&mut line, event);
            let together = self.lines.len() + line.len();
            if together > CHUNK_BYTES.min(self.output.remaining()) {
                self.flush();
            }
            self.lines.extend_from_slice(&line);
        }
        self.flush();
    }

    /// Writes a line that reports new lost lines. If that fails, the next attempt reports them again.
    fn report_lost(&mut self) {
        let lost = self.queue.lost();
        if lost == self.reported_lost {
            return;
        }
        let mut line = Vec::new();
        line::write_lost(&mut line, lost - self.reported_lost);
        if self.output.append(&line).is_ok() {
            self.reported_lost = lost;
        }
    }

    /// Writes a line that counts refused unauthenticated requests without lines of their own.
    fn report_suppressed(&mut self, closing: bool) {
        let Some(suppressed) = self.queue.take_suppressed(closing) else {
            return;
        };
        let from = suppressed.sources.first();
        let from = from.map_or_else(String::new, |(address, count)| {
            format!(", most ({count}) from {address}")
        });
        let requests = suppressed.requests;
        tracing::warn!(
            "refused {requests} more unauthenticated requests than the audit log records{from}"
        );
        line::write_suppressed(&mut self.lines, &suppressed);
        self.flush();
    }

    /// Tells the server's log that the queue was full.
    fn warn_overflow(&mut self, closing: bool) {
        let (warned, at) = self.warned_overflow;
        let overflowed = self.queue.overflowed();
        let is_early = at.is_some_and(|at| at.elapsed() < OVERFLOW_WARNING_EVERY) && !closing;
        if overflowed == warned || is_early {
            return;
        }
        self.warned_overflow = (overflowed, Some(Instant::now()));
        let lost = overflowed - warned;
        tracing::warn!("the queue of the audit log was full: {lost} lines are lost");
    }

    fn flush(&mut self) {
        if self.lines.is_empty() {
            return;
        }
        match self.output.append(&self.lines) {
            Ok(()) => {
                if std::mem::take(&mut self.is_failing) {
                    tracing::info!("writing to the audit log works again");
                }
            }
            Err(failed) => {
                let missing = &self.lines[failed.written..];
                let lines = missing.split_inclusive(|byte| *byte == b'\n').count();
                self.queue.count_lost(lines as u64);
                if !std::mem::replace(&mut self.is_failing, true) {
                    tracing::warn!(
                        "cannot write to the audit log, lines are lost: {}",
                        failed.error
                    );
                }
            }
        }
        self.lines.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Mutex;

    use tempfile::TempDir;
    use tracing_subscriber::fmt::MakeWriter;

    use super::super::options::{Bytes, Options, Target};
    use super::*;

    fn writer(dir: &Path) -> (Writer, Arc<Queue>) {
        let options = Options {
            target: Target::File(dir.join("audit.log")),
            max_size: Bytes(1 << 20),
            max_files: 2,
            skip_heartbeats: false,
        };
        let output = Output::open(&options).unwrap().unwrap();
        let queue = Arc::new(Queue::default());
        (Writer::new(Arc::clone(&queue), output, false), queue)
    }

    #[test]
    fn unauthenticated_requests_without_lines_are_reported_when_the_log_is_closed() {
        let dir = TempDir::new().unwrap();
        let (writer, queue) = writer(dir.path());
        for _ in 0..100 {
            let mut event = Event::example();
            (event.code, event.user) = (401, None);
            event.address = Some([192, 0, 2, 7].into());
            queue.push(event);
        }
        queue.close();
        writer.run();
        let text = std::fs::read_to_string(dir.path().join("audit.log")).unwrap();
        let last: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        let recorded = text.lines().count() as u64 - 1;
        let counted = 100 - recorded;
        assert_eq!(queue.suppressed(), counted);
        let said = &last["annotations"];
        assert_eq!(
            said["audit.kennel.dev/suppressed-requests"],
            counted.to_string()
        );
        assert_eq!(
            said["audit.kennel.dev/suppressed-sources"],
            format!("192.0.2.7: {counted}")
        );
    }

    #[test]
    fn lost_lines_are_counted_and_reported_once_writing_works_again() {
        let dir = TempDir::new().unwrap();
        let place = dir.path().join("place");
        let (mut writer, queue) = writer(&place);
        writer.write(&[Event::example()]);
        // A file where the directory was: nothing can be written there.
        std::fs::remove_dir_all(&place).unwrap();
        std::fs::write(&place, "in the way").unwrap();
        writer.write(&[Event::example(), Event::example()]);
        writer.write(&[Event::example()]);
        assert_eq!(queue.lost(), 3);
        std::fs::remove_file(&place).unwrap();
        writer.write(&[Event::example()]);
        writer.write(&[Event::example()]);
        let text = std::fs::read_to_string(place.join("audit.log")).unwrap();
        let lines: Vec<serde_json::Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert_eq!(lines[0]["annotations"]["audit.kennel.dev/lost-lines"], "3");
        assert_eq!(lines[1]["verb"], "create");
    }

    /// What this thread logs.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Log {
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

    #[test]
    fn the_servers_log_says_how_many_lines_a_full_queue_lost() {
        let log = Log::default();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(log.clone())
            .with_ansi(false)
            .finish();
        let _logged = tracing::subscriber::set_default(subscriber);
        let dir = TempDir::new().unwrap();
        let (mut writer, queue) = writer(dir.path());
        let overflow = |count| {
            while queue.overflowed() < count {
                queue.push(Event::example());
            }
        };
        let said = || {
            let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
            let lines = text.lines().filter(|line| line.contains("was full"));
            let lines = lines.map(|line| line.split("was full: ").last().unwrap().to_owned());
            lines.collect::<Vec<_>>()
        };
        overflow(3);
        writer.write(&[]);
        assert_eq!(said(), ["3 lines are lost"]);
        // Too early for another line; the end waits for nothing.
        overflow(5);
        writer.write(&[]);
        assert_eq!(said().len(), 1);
        queue.close();
        writer.run();
        assert_eq!(said(), ["3 lines are lost", "2 lines are lost"]);
    }
}
