//! The shim's main loop: starts the container, copies its stdio, records its exit.

use std::io;
use std::os::unix::net::UnixListener;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd as _;

use crate::Options;
use crate::cgroup::Cgroups;
use crate::clients::{Client, Request};
use crate::control::FrameKind;
use crate::identity::Identity;
use crate::init::{self, Outcome};
use crate::kill::ContainerProcesses;
use crate::log::{Lines, Log};
use crate::reaper::{self, Reaper};
use crate::state::{self, ALREADY, CONTROL, Dir, Exit, OK};
use crate::stdio::{self, Read, ShimStdio};

const READ_BYTES: usize = 8 << 10;
/// Buffered stdin. Beyond this, nothing more is read from attached clients.
const STDIN_BYTES_MAX: usize = 64 << 10;
/// How long to wait for the end of the output after all processes were killed.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(2);

struct Supervisor {
    dir: Dir,
    options: Options,
    process: i32,
    /// The exit code, once it has exited.
    code: Option<i32>,
    stdio: ShimStdio,
    stdout_lines: Lines,
    stderr_lines: Lines,
    log: Log,
    /// Stdin that the container has not read yet.
    pending_stdin: Vec<u8>,
    reaper: Reaper,
    listener: UnixListener,
    clients: Vec<Client>,
}

/// Runs until the container has exited.
pub(crate) fn run(options: Options) -> ExitCode {
    let _leads_already = rustix::process::setsid();
    let dir = Dir::new(std::env::current_dir().unwrap_or_default());
    let lock = match dir.lock() {
        Ok(Some(lock)) if dir.started().is_none() && dir.exit().is_none() => lock,
        Ok(_) => return report(ALREADY),
        Err(error) => return report(&error.to_string()),
    };
    match start(dir, options) {
        Ok(mut supervisor) => {
            report(OK);
            while supervisor.code.is_none() {
                supervisor.handle_events(None);
            }
            supervisor.finish();
        }
        Err(error) => return report(&error.to_string()),
    }
    drop(lock);
    ExitCode::SUCCESS
}

/// Writes the result of the start to stdout, which the agent reads, and closes stdout.
fn report(text: &str) -> ExitCode {
    let _nobody_listens = rustix::io::write(rustix::stdio::stdout(), text.as_bytes());
    if let Ok(nowhere) = std::fs::OpenOptions::new().write(true).open("/dev/null") {
        let _open = rustix::stdio::dup2_stdout(nowhere);
    }
    ExitCode::SUCCESS
}

fn start(dir: Dir, options: Options) -> io::Result<Supervisor> {
    let own = Identity::own().ok_or(io::Error::from(io::ErrorKind::NotFound))?;
    dir.set_shim(&own)?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let log = Log::open(options.log.clone())?;
    let _none = std::fs::remove_file(CONTROL);
    let listener = UnixListener::bind(CONTROL)?;
    listener.set_nonblocking(true)?;
    let (stdio, container_stdio) = stdio::open(&options)?;
    let reaper = reaper::start()?;
    let (process, exit) = match init::start(&options, container_stdio, &reaper)? {
        Outcome::Started(process, exit) => (process, exit),
        Outcome::Failed(message) => {
            kill_all(&dir, &options);
            let now = state::now();
            let reason = "StartError".to_owned();
            record_exit(
                &dir,
                &Exit {
                    since: now,
                    until: now,
                    code: 128,
                    reason,
                    message: message.clone(),
                },
            );
            return Err(io::Error::other(message));
        }
    };
    Ok(Supervisor {
        dir,
        options,
        process,
        code: exit.map(|exit| exit.code),
        stdio,
        stdout_lines: Lines::of("stdout"),
        stderr_lines: Lines::of("stderr"),
        log,
        pending_stdin: Vec::new(),
        reaper,
        listener,
        clients: Vec::new(),
    })
}

impl Supervisor {
    /// Waits for events until the timeout, and handles them.
    fn handle_events(&mut self, timeout: Option<Duration>) {
        let Some(ready) = self.wait(timeout) else {
            return;
        };
        let [child_exited, connecting, stdout, stderr, stdin] = ready.fixed;
        if child_exited {
            self.reap();
        }
        if stdout {
            self.copy_output(FrameKind::Stdout);
        }
        if stderr {
            self.copy_output(FrameKind::Stderr);
        }
        if stdin {
            self.write_stdin();
        }
        for (client, ready) in ready
            .clients
            .into_iter()
            .enumerate()
            .filter(|(_, ready)| !ready.is_empty())
        {
            self.serve(client, ready);
        }
        if connecting && let Ok((socket, _)) = self.listener.accept() {
            self.clients.extend(Client::new(socket));
        }
        self.clients.retain(|client| !client.is_closed());
    }

    fn wait(&self, timeout: Option<Duration>) -> Option<Ready> {
        let listener = self.listener.as_fd();
        let pending = !self.pending_stdin.is_empty();
        let stdin = self.stdio.stdin.as_ref().filter(|_| pending);
        // Closed streams, and stdin without pending data, are not polled.
        let fixed = [
            Some((self.reaper.exits.as_fd(), PollFlags::IN)),
            Some((listener, PollFlags::IN)),
            self.stdio
                .stdout
                .as_ref()
                .map(|end| (end.as_fd(), PollFlags::IN)),
            self.stdio
                .stderr
                .as_ref()
                .map(|end| (end.as_fd(), PollFlags::IN)),
            stdin.map(|end| (end.as_fd(), PollFlags::OUT)),
        ];
        let clients = self.clients.iter().map(|client| {
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, self.pending_stdin.len() < STDIN_BYTES_MAX);
            flags.set(PollFlags::OUT, client.has_unsent());
            (client.socket.as_fd(), flags)
        });
        let polled = fixed.iter().flatten().copied().chain(clients);
        let mut fds: Vec<_> = polled
            .map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags))
            .collect();
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        poll(&mut fds, timeout.as_ref()).ok()?;
        let mut found = fds.iter().map(PollFd::revents);
        let fixed =
            fixed.map(|slot| slot.is_some() && found.next().is_some_and(|flags| !flags.is_empty()));
        Some(Ready {
            fixed,
            clients: found.collect(),
        })
    }

    /// Notes the exit of the container; other children are orphans of it.
    fn reap(&mut self) {
        let exit = self.reaper.next();
        if let Some(exit) = exit.filter(|exit| exit.pid == self.process) {
            self.code = Some(exit.code);
        }
    }

    /// Copies output of the container to the log and the attached clients.
    fn copy_output(&mut self, kind: FrameKind) {
        let (end, lines) = match kind {
            FrameKind::Stderr => (&mut self.stdio.stderr, &mut self.stderr_lines),
            _ => (&mut self.stdio.stdout, &mut self.stdout_lines),
        };
        let mut chunk = [0; READ_BYTES];
        match end
            .as_ref()
            .map_or(Read::End, |end| stdio::read(end, &mut chunk))
        {
            Read::Some(count) => {
                self.log
                    .write(&lines.push(&chunk[..count], SystemTime::now()));
                for client in &mut self.clients {
                    client.send_frame(kind, &chunk[..count]);
                }
            }
            Read::WouldBlock => {}
            Read::End => *end = None,
        }
    }

    /// Writes pending stdin to the container.
    fn write_stdin(&mut self) {
        let Some(end) = &self.stdio.stdin else {
            return self.pending_stdin.clear();
        };
        match rustix::io::write(end, &self.pending_stdin) {
            Ok(count) => drop(self.pending_stdin.drain(..count)),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
            Err(_) => {
                self.stdio.stdin = None;
                self.pending_stdin.clear();
            }
        }
    }

    fn serve(&mut self, client: usize, ready: PollFlags) {
        if ready.contains(PollFlags::OUT) {
            self.clients[client].flush();
        }
        if !ready.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
            return;
        }
        for request in self.clients[client].read() {
            match request {
                Request::ReopenLog => {
                    let reply = self
                        .log
                        .reopen()
                        .map_or_else(|error| format!("{error}\n"), |()| format!("{OK}\n"));
                    self.clients[client].reply(&reply);
                }
                Request::Stdin(bytes) => {
                    self.pending_stdin.extend(bytes);
                    self.write_stdin();
                }
                Request::Resize(columns, rows) => self.stdio.resize(columns, rows),
                Request::Detach if self.options.stdin_once => {
                    self.write_stdin();
                    self.stdio.stdin = None;
                }
                Request::Detach => {}
            }
        }
    }

    /// Kills what the container left behind, drains its output, and records its exit.
    fn finish(mut self) {
        let oom_killed = kill_all(&self.dir, &self.options);
        let deadline = Instant::now() + OUTPUT_TIMEOUT;
        while self.stdio.stdout.is_some() || self.stdio.stderr.is_some() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            self.handle_events(Some(left));
        }
        let now = SystemTime::now();
        self.log.write(&self.stdout_lines.finish(now));
        self.log.write(&self.stderr_lines.finish(now));
        let code = self.code.unwrap_or(255);
        let reason = if oom_killed && code != 0 {
            "OOMKilled"
        } else {
            ""
        };
        let since = self
            .dir
            .started()
            .map_or_else(state::now, |start| start.since);
        let exit = Exit {
            since,
            until: state::now(),
            code,
            reason: reason.to_owned(),
            message: String::new(),
        };
        record_exit(&self.dir, &exit);
        for mut client in self.clients {
            client.send_frame(FrameKind::Exit, &code.to_be_bytes());
            client.flush_and_close();
        }
        let _gone = std::fs::remove_file(CONTROL);
    }
}

/// The result of `poll`: the fixed descriptors, then the clients.
struct Ready {
    fixed: [bool; 5],
    clients: Vec<PollFlags>,
}

/// Kills all processes of the container. Returns whether the kernel has OOM-killed one.
fn kill_all(dir: &Dir, options: &Options) -> bool {
    let group = options
        .cgroup
        .as_ref()
        .map(|path| Cgroups::find().group(path));
    let own = rustix::process::getpid().as_raw_nonzero().get();
    ContainerProcesses {
        id: &dir.id(),
        group: group.as_ref(),
        parent: Some(own),
        process: None,
    }
    .kill_all();
    let oom_killed = group
        .as_ref()
        .is_some_and(crate::cgroup::Group::was_oom_killed);
    if let Some(group) = group {
        group.remove();
    }
    oom_killed
}

/// Records the exit, and retries until the disk accepts it: without the record, the agent could not restart the
/// container. If the directory is gone, the container was removed.
fn record_exit(dir: &Dir, exit: &Exit) {
    while let Err(error) = dir.set_exit(exit) {
        if error.kind() == io::ErrorKind::NotFound {
            return;
        }
        std::thread::sleep(Duration::from_secs(1));
    }
}
