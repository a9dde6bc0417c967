//! Reads the user's answers from stdin, on a thread of its own: a blocking read cannot be cancelled and must not delay
//! the end of the program.

use std::io::BufRead as _;

use tokio::sync::mpsc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Continue,
    /// Leave the tour.
    Quit,
}

#[derive(Debug)]
pub(super) struct Keyboard {
    lines: mpsc::Receiver<String>,
    requests: mpsc::Sender<()>,
}

impl Keyboard {
    /// Reads a line of stdin for each call of [`Self::answer`], and nothing before.
    pub(super) fn listen() -> Self {
        let (sender, lines) = mpsc::channel(1);
        let (requests, mut received) = mpsc::channel::<()>(1);
        std::thread::spawn(move || {
            while received.blocking_recv().is_some() {
                let mut line = String::new();
                let read = std::io::stdin().lock().read_line(&mut line);
                if !read.is_ok_and(|bytes| bytes > 0) || sender.blocking_send(line).is_err() {
                    return;
                }
            }
        });
        Self { lines, requests }
    }

    /// Waits for a line. The end of stdin counts as [`Answer::Quit`].
    pub(super) async fn answer(&mut self) -> Answer {
        if self.requests.send(()).await.is_err() {
            return Answer::Quit;
        }
        self.lines
            .recv()
            .await
            .map_or(Answer::Quit, |line| parse(&line))
    }
}

/// Everything but a line that begins with `q` continues.
fn parse(line: &str) -> Answer {
    match line.trim_start().chars().next() {
        Some('q' | 'Q') => Answer::Quit,
        _ => Answer::Continue,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_q_quits() {
        for line in ["\n", " \n", "yes\n", ""] {
            assert_eq!(parse(line), Answer::Continue, "{line:?}");
        }
        for line in ["q\n", " Q\n", "quit\n"] {
            assert_eq!(parse(line), Answer::Quit, "{line:?}");
        }
    }
}
