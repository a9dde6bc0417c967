//! The life of a shim: start the container, pass on what it writes and reads, record its end.

use std::io;
use std::os::unix::net::UnixListener;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd as _;

use crate::Options;
use crate::cgroup::Cgroups;
use crate::clients::{Client, Wish};
use crate::control::What;
use crate::identity::Identity;
use crate::kill::Belongings;
use crate::log::{Lines, Log};
use crate::stage::{self, Outcome};
use crate::state::{self, ALREADY, CONTROL, Dir, Exit, OK};
use crate::stdio::{self, Ends, Read};
use crate::waiter::{self, Waiter};

/// Read at once.
const CHUNK: usize = 8 << 10;
/// Input that the container has not read yet; who attached waits beyond it.
const INPUT: usize = 64 << 10;
/// How long the last output is waited for when all that could write is dead.
const LAST_WORDS: Duration = Duration::from_secs(2);

struct Keeper {
    dir: Dir,
    options: Options,
    process: i32,
    /// What it returned.
    code: Option<i32>,
    ends: Ends,
    output: Lines,
    errors: Lines,
    log: Log,
    /// Input on its way.
    input: Vec<u8>,
    waiter: Waiter,
    listener: UnixListener,
    clients: Vec<Client>,
}

/// Runs until the container has ended.
pub(crate) fn run(options: Options) -> ExitCode {
    let _leads_already = rustix::process::setsid();
    let dir = Dir::new(std::env::current_dir().unwrap_or_default());
    let place = match dir.lock() {
        Ok(Some(place)) if dir.started().is_none() && dir.exit().is_none() => place,
        Ok(_) => return say(ALREADY),
        Err(error) => return say(&error.to_string()),
    };
    match begin(dir, options) {
        Ok(Ok(mut keeper)) => {
            say(OK);
            while keeper.code.is_none() {
                keeper.turn(None);
            }
            keeper.finish();
        }
        Ok(Err(why)) => return say(&why),
        Err(error) => return say(&error.to_string()),
    }
    drop(place);
    ExitCode::SUCCESS
}

/// Tells the agent, once.
fn say(text: &str) -> ExitCode {
    let _nobody_listens = rustix::io::write(rustix::stdio::stdout(), text.as_bytes());
    if let Ok(nowhere) = std::fs::OpenOptions::new().write(true).open("/dev/null") {
        let _open = rustix::stdio::dup2_stdout(nowhere);
    }
    ExitCode::SUCCESS
}

/// Starts the container. The inner error: it was tried, and recorded as failed.
fn begin(dir: Dir, options: Options) -> io::Result<Result<Keeper, String>> {
    let own = Identity::own().ok_or(io::ErrorKind::NotFound)?;
    dir.set_shim(&own)?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let log = Log::open(options.log.clone())?;
    let _none = std::fs::remove_file(CONTROL);
    let listener = UnixListener::bind(CONTROL)?;
    listener.set_nonblocking(true)?;
    let (ends, theirs) = stdio::make(&options)?;
    let waiter = waiter::start()?;
    let (process, end) = match stage::start(&options, theirs, &waiter)? {
        Outcome::Runs(process, end) => (process, end),
        Outcome::Failed(why) => {
            end_all(&dir, &options);
            let now = state::now();
            let reason = "StartError".to_owned();
            record(
                &dir,
                &Exit {
                    since: now,
                    until: now,
                    code: 128,
                    reason,
                    message: why.clone(),
                },
            );
            return Ok(Err(why));
        }
    };
    Ok(Ok(Keeper {
        dir,
        options,
        process,
        code: end.map(|end| end.code),
        ends,
        output: Lines::of("stdout"),
        errors: Lines::of("stderr"),
        log,
        input: Vec::new(),
        waiter,
        listener,
        clients: Vec::new(),
    }))
}

impl Keeper {
    /// Waits for something to happen, and does what is to be done.
    fn turn(&mut self, patience: Option<Duration>) {
        let Some(ready) = self.wait(patience) else {
            return;
        };
        let [ended, knocked, output, errors, input] = ready.fixed;
        if ended {
            self.reap();
        }
        if output {
            self.pass(What::Output);
        }
        if errors {
            self.pass(What::Errors);
        }
        if input {
            self.feed();
        }
        for (client, ready) in ready
            .clients
            .into_iter()
            .enumerate()
            .filter(|(_, ready)| !ready.is_empty())
        {
            self.serve(client, ready);
        }
        if knocked && let Ok((socket, _)) = self.listener.accept() {
            self.clients.extend(Client::new(socket));
        }
        self.clients.retain(|client| !client.is_gone());
    }

    fn wait(&self, patience: Option<Duration>) -> Option<Ready> {
        let listener = self.listener.as_fd();
        let input = self.ends.input.as_ref().filter(|_| !self.input.is_empty());
        // What has been closed, or has nothing to take, is not asked about.
        let fixed = [
            Some((self.waiter.ends.as_fd(), PollFlags::IN)),
            Some((listener, PollFlags::IN)),
            self.ends
                .output
                .as_ref()
                .map(|end| (end.as_fd(), PollFlags::IN)),
            self.ends
                .errors
                .as_ref()
                .map(|end| (end.as_fd(), PollFlags::IN)),
            input.map(|end| (end.as_fd(), PollFlags::OUT)),
        ];
        let clients = self.clients.iter().map(|client| {
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, self.input.len() < INPUT);
            flags.set(PollFlags::OUT, client.is_behind());
            (client.socket.as_fd(), flags)
        });
        let asked = fixed.iter().flatten().copied().chain(clients);
        let mut fds: Vec<_> = asked
            .map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags))
            .collect();
        let patience = patience.and_then(|patience| Timespec::try_from(patience).ok());
        poll(&mut fds, patience.as_ref()).ok()?;
        let mut found = fds.iter().map(PollFd::revents);
        let fixed =
            fixed.map(|slot| slot.is_some() && found.next().is_some_and(|flags| !flags.is_empty()));
        Some(Ready {
            fixed,
            clients: found.collect(),
        })
    }

    /// A child has ended: the container, or one that it left to us.
    fn reap(&mut self) {
        if let Some(end) = self.waiter.next().filter(|end| end.pid == self.process) {
            self.code = Some(end.code);
        }
    }

    /// Passes on what the container writes.
    fn pass(&mut self, what: What) {
        let (end, lines) = match what {
            What::Errors => (&mut self.ends.errors, &mut self.errors),
            _ => (&mut self.ends.output, &mut self.output),
        };
        let mut chunk = [0; CHUNK];
        match end
            .as_ref()
            .map_or(Read::End, |end| stdio::read(end, &mut chunk))
        {
            Read::Some(count) => {
                self.log
                    .write(&lines.feed(&chunk[..count], SystemTime::now()));
                for client in &mut self.clients {
                    client.show(what, &chunk[..count]);
                }
            }
            Read::Later => {}
            Read::End => *end = None,
        }
    }

    /// Passes on what was written for the container.
    fn feed(&mut self) {
        let Some(end) = &self.ends.input else {
            return self.input.clear();
        };
        match rustix::io::write(end, &self.input) {
            Ok(count) => drop(self.input.drain(..count)),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
            Err(_) => {
                self.ends.input = None;
                self.input.clear();
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
        for wish in self.clients[client].read() {
            match wish {
                Wish::Reopen => {
                    let answer = self
                        .log
                        .reopen()
                        .map_or_else(|error| format!("{error}\n"), |()| format!("{OK}\n"));
                    self.clients[client].answer(&answer);
                }
                Wish::Input(bytes) => {
                    self.input.extend(bytes);
                    self.feed();
                }
                Wish::Size(columns, rows) => self.ends.resize(columns, rows),
                Wish::Left if self.options.stdin_once => {
                    self.feed();
                    self.ends.input = None;
                }
                Wish::Left => {}
            }
        }
    }

    /// Ends what the container left behind, and records how it ended.
    fn finish(mut self) {
        let out_of_memory = end_all(&self.dir, &self.options);
        let deadline = Instant::now() + LAST_WORDS;
        while self.ends.output.is_some() || self.ends.errors.is_some() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            self.turn(Some(left));
        }
        let now = SystemTime::now();
        self.log.write(&self.output.end(now));
        self.log.write(&self.errors.end(now));
        let code = self.code.unwrap_or(255);
        let reason = if out_of_memory && code != 0 {
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
        record(&self.dir, &exit);
        for mut client in self.clients {
            client.show(What::Exit, &code.to_be_bytes());
            client.part();
        }
        let _gone = std::fs::remove_file(CONTROL);
    }
}

/// What `poll` found.
struct Ready {
    fixed: [bool; 5],
    clients: Vec<PollFlags>,
}

/// Ends all that belongs to the container; says whether it had run out of memory.
fn end_all(dir: &Dir, options: &Options) -> bool {
    let group = options
        .cgroup
        .as_ref()
        .map(|path| Cgroups::find().group(path));
    let own = rustix::process::getpid().as_raw_nonzero().get();
    Belongings {
        id: &dir.id(),
        group: group.as_ref(),
        parent: Some(own),
        process: None,
    }
    .end();
    let out_of_memory = group
        .as_ref()
        .is_some_and(crate::cgroup::Group::ran_out_of_memory);
    if let Some(group) = group {
        group.remove();
    }
    out_of_memory
}

/// An end that nobody knows of would have the container be started again, or never: it is written as soon
/// as the disk takes it. Whose directory is gone is not asked about any more.
fn record(dir: &Dir, exit: &Exit) {
    while let Err(error) = dir.set_exit(exit) {
        if error.kind() == io::ErrorKind::NotFound {
            return;
        }
        std::thread::sleep(Duration::from_secs(1));
    }
}
