//! What the person at the keyboard answers. Reading is left to a thread of its own: a read of a terminal
//! cannot be called off, and must not keep the program from ending.

use std::io::BufRead as _;

use tokio::sync::mpsc;

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Go on.
    Next,
    /// Leave the tour.
    Leave,
}

/// The lines that are typed.
#[derive(Debug)]
pub(super) struct Keys {
    lines: mpsc::Receiver<String>,
    asked: mpsc::Sender<()>,
}

impl Keys {
    /// Standard input. Nothing is read of it until somebody was asked.
    pub(super) fn listen() -> Self {
        let (sender, lines) = mpsc::channel(1);
        let (asked, mut asks) = mpsc::channel::<()>(1);
        std::thread::spawn(move || {
            while asks.blocking_recv().is_some() {
                let mut line = String::new();
                let read = std::io::stdin().lock().read_line(&mut line);
                if !read.is_ok_and(|bytes| bytes > 0) || sender.blocking_send(line).is_err() {
                    return;
                }
            }
        });
        Self { lines, asked }
    }

    /// Waits for the next line. Where no more can come, nobody is there to go on.
    pub(super) async fn answer(&mut self) -> Answer {
        if self.asked.send(()).await.is_err() {
            return Answer::Leave;
        }
        self.lines
            .recv()
            .await
            .map_or(Answer::Leave, |line| meaning(&line))
    }
}

/// Only what begins like `q` leaves: people hit Enter in many ways.
fn meaning(line: &str) -> Answer {
    match line.trim_start().chars().next() {
        Some('q' | 'Q') => Answer::Leave,
        _ => Answer::Next,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_q_leaves() {
        for line in ["\n", " \n", "yes\n", ""] {
            assert_eq!(meaning(line), Answer::Next, "{line:?}");
        }
        for line in ["q\n", " Q\n", "quit\n"] {
            assert_eq!(meaning(line), Answer::Leave, "{line:?}");
        }
    }
}
