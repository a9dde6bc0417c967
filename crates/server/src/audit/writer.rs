//! The thread that writes the audit log: it formats events, writes them in batches, and reports lost
//! lines. Only the shutdown of the server waits for it.

use std::sync::Arc;

use super::file::Output;
use super::line;
use super::pending::Event;
use super::queue::Queue;

/// Bytes per write: few system calls, and little is lost when one fails.
const CHUNK_BYTES: usize = 64 << 10;

pub(super) struct Writer {
    queue: Arc<Queue>,
    output: Output,
    skip_heartbeats: bool,
    /// Formatted and not yet written.
    lines: Vec<u8>,
    /// How many lost lines the log has reported.
    reported_lost: u64,
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
            is_failing: false,
        }
    }

    /// Writes until the queue is closed and empty.
    pub(super) fn run(mut self) {
        while let Some(events) = self.queue.take() {
            self.write(&events);
        }
        self.report_lost();
        self.output.sync();
    }

    fn write(&mut self, events: &[Box<Event>]) {
        self.report_lost();
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

    use tempfile::TempDir;

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
}
