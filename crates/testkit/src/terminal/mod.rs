//! A program on a pseudo-terminal, and what its screen shows.

mod screen;

use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

pub use screen::Screen;

use crate::{Deadline, eventually};

/// A program on a terminal. It is killed when this is dropped.
pub struct Terminal {
    child: Child,
    side: File,
    screen: Arc<Mutex<Screen>>,
}

impl Terminal {
    /// Starts a program on a terminal of so many columns and rows.
    ///
    /// # Panics
    /// If there are no pseudo-terminals, or no such program.
    pub fn start(mut command: Command, columns: u16, rows: u16) -> Self {
        let side = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
        grantpt(&side).expect("it is ours");
        unlockpt(&side).expect("it is ours");
        tcsetwinsize(&side, size(columns, rows)).expect("it has a size");
        let name = ptsname(&side, Vec::new()).expect("it has a name");
        let name = name.into_string().expect("names of terminals are ASCII");
        let other = || {
            let file = File::options().read(true).write(true).open(&name);
            Stdio::from(OwnedFd::from(file.expect("the other side opens")))
        };
        command.stdin(other()).stdout(other());
        let child = command.spawn().expect("the program starts");
        drop(command);
        let side = File::from(side);
        let screen = Arc::new(Mutex::new(Screen::new(columns.into(), rows.into())));
        let (mut output, shown) = (side.try_clone().expect("it is open"), screen.clone());
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // Reading fails when the other side is closed.
            while let Ok(read @ 1..) = output.read(&mut bytes) {
                let mut screen = shown.lock().expect("no holder panics");
                screen.write(&bytes[..read]);
            }
        });
        Self {
            child,
            side,
            screen,
        }
    }

    /// Changes the size and tells the program.
    ///
    /// # Panics
    /// If the program has ended.
    pub fn resize(&self, columns: u16, rows: u16) {
        let mut screen = self.screen.lock().expect("no holder panics");
        screen.resize(columns.into(), rows.into());
        tcsetwinsize(&self.side, size(columns, rows)).expect("it has a size");
        drop(screen);
        self.signal(Signal::WINCH);
    }

    /// # Panics
    /// If the program has ended.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
    }

    /// What is shown now.
    pub fn screen(&self) -> Screen {
        self.screen.lock().expect("no holder panics").clone()
    }

    /// Waits until the screen is as it should be, and returns it.
    pub fn wait_for(&self, what: &str, is_right: impl Fn(&Screen) -> bool) -> Screen {
        let mut found = None;
        eventually(Deadline::seconds(90), || {
            let screen = self.screen();
            let right = is_right(&screen);
            let text = screen.text();
            found = Some(screen);
            right.then_some(()).ok_or(format!("not {what}:\n{text}"))
        });
        found.expect("it was looked at")
    }

    /// Waits for the end. Returns the exit code.
    ///
    /// # Panics
    /// If it was killed by a signal.
    pub fn exit_code(&mut self) -> i32 {
        let mut code = None;
        eventually(Deadline::seconds(90), || {
            let ended = self.child.try_wait().map_err(|error| error.to_string())?;
            code = ended.map(|status| status.code());
            code.map(drop).ok_or_else(|| "it still runs".to_owned())
        });
        code.flatten().expect("it exits with a code")
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended already.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

fn size(columns: u16, rows: u16) -> Winsize {
    Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}
