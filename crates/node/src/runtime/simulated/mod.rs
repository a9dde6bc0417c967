//! A runtime that runs nothing: sandboxes and containers are entries in memory, and what containers do is read
//! from their commands ([`play`]).
//!
//! For one node that is driven by the whole agent (`--runtime=simulated`), and for tests of the agent. Thousands
//! of nodes at once are [`crate::simulated`]'s. There is nothing in such a container to look into.

mod play;
mod state;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{
    About, Attachment, ContainerConfig, Duplex, Error, ExecRequest, Found, Health, Image, Output,
    PullPolicy, RegistryLogin, Result, Runtime, SandboxConfig, Session, Usage,
};
use play::Play;
pub use state::Happening;
use state::State;

/// The code of what ends because it was asked to.
const TERMINATED: i32 = 143;
/// The code of what was killed.
const KILLED: i32 = 137;
/// Images of this registry cannot be had.
const NOWHERE: &str = "nowhere.invalid/";

/// See the [module](self). Copies are the same runtime.
#[derive(Clone)]
pub struct Simulated(Arc<Inner>);

struct Inner {
    state: Mutex<State>,
    listener: Mutex<Option<mpsc::Sender<String>>>,
    answers: Mutex<BTreeMap<String, i32>>,
    unavailable: Mutex<Option<String>>,
    stuck: Mutex<Option<String>>,
    /// How long each request takes.
    latency: Duration,
    began: Instant,
    epoch: i64,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Simulated {
    /// One that answers at once.
    pub fn new() -> Self {
        Self::with_latency(Duration::ZERO)
    }

    /// One that takes a while for each request.
    pub fn with_latency(latency: Duration) -> Self {
        Self(Arc::new(Inner {
            state: Mutex::default(),
            listener: Mutex::default(),
            answers: Mutex::default(),
            unavailable: Mutex::default(),
            stuck: Mutex::default(),
            latency,
            began: Instant::now(),
            epoch: jiff::Timestamp::now().as_second(),
        }))
    }

    /// From now on, this command returns that in every container.
    pub fn set_answer(&self, command: &str, code: i32) {
        locked(&self.0.answers).insert(command.to_owned(), code);
    }

    /// From now on, nothing can be asked of it, for this reason; or everything again.
    pub fn set_unavailable(&self, why: Option<&str>) {
        *locked(&self.0.unavailable) = why.map(str::to_owned);
        if why.is_none() {
            self.0.tell(String::new());
        }
    }

    /// From now on, nothing can be ended, for this reason; or everything again.
    pub fn set_stuck(&self, why: Option<&str>) {
        *locked(&self.0.stuck) = why.map(str::to_owned);
    }

    fn may_end(&self) -> Result<()> {
        match &*locked(&self.0.stuck) {
            Some(why) => Err(Error::Failed(why.clone())),
            None => Ok(()),
        }
    }

    /// A container ends by itself.
    pub fn crash(&self, id: &str, code: i32) {
        self.0.end(id, code);
    }

    /// A sandbox dies, and all in it.
    pub fn crash_sandbox(&self, id: &str) {
        let ended = self.0.state().end_sandbox(id, self.0.now());
        if let Some(uid) = ended {
            self.0.tell(uid);
        }
    }

    /// All that happened so far, with its time since the runtime began.
    pub fn happened(&self) -> Vec<(Duration, Happening)> {
        self.0.state().happened.clone()
    }

    /// All there is.
    pub fn all(&self) -> Vec<Found> {
        self.0.state().all()
    }

    async fn asked(&self) -> Result<()> {
        if !self.0.latency.is_zero() {
            tokio::time::sleep(self.0.latency).await;
        }
        match &*locked(&self.0.unavailable) {
            Some(why) => Err(Error::Unavailable(why.clone())),
            None => Ok(()),
        }
    }

    fn end_later(&self, id: &str, after: Duration, code: i32) {
        if after.is_zero() {
            return self.0.end(id, code);
        }
        let (inner, id) = (Arc::downgrade(&self.0), id.to_owned());
        tokio::spawn(async move {
            tokio::time::sleep(after).await;
            if let Some(inner) = inner.upgrade() {
                inner.end(&id, code);
            }
        });
    }
}

impl Default for Simulated {
    fn default() -> Self {
        Self::new()
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        let mut state = locked(&self.state);
        state.age = self.began.elapsed();
        state
    }

    /// Seconds since the epoch. They pass as the time of tasks does.
    fn now(&self) -> i64 {
        let passed = i64::try_from(self.began.elapsed().as_secs()).unwrap_or(i64::MAX);
        self.epoch.saturating_add(passed)
    }

    fn end(&self, id: &str, code: i32) {
        let ended = self.state().end(id, code, self.now());
        if let Some(uid) = ended {
            self.tell(uid);
        }
    }

    fn tell(&self, uid: String) {
        if let Some(listener) = &*locked(&self.listener) {
            // Whoever is that far behind looks anyway.
            let _full = listener.try_send(uid);
        }
    }
}

fn nothing_inside() -> Error {
    Error::Refused(
        "a simulated container runs nothing that could be looked into: \
         start the agent with --runtime=process or --runtime=cri"
            .to_owned(),
    )
}

#[async_trait]
impl Runtime for Simulated {
    fn about(&self) -> About {
        About {
            name: "simulated".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            images: true,
        }
    }

    async fn health(&self) -> Health {
        Health {
            runtime: self.asked().await.err().map(|error| error.to_string()),
            network: None,
        }
    }

    async fn list(&self) -> Result<Vec<Found>> {
        self.asked().await?;
        Ok(self.all())
    }

    async fn look(&self, uid: &str) -> Result<Option<Found>> {
        self.asked().await?;
        Ok(self.0.state().found(uid))
    }

    fn changes(&self) -> mpsc::Receiver<String> {
        let (sender, receiver) = mpsc::channel(1024);
        *locked(&self.0.listener) = Some(sender);
        receiver
    }

    async fn image(
        &self,
        image: &str,
        policy: PullPolicy,
        _logins: &[RegistryLogin],
    ) -> Result<Image> {
        self.asked().await?;
        if image.starts_with(NOWHERE) {
            let never = policy == PullPolicy::Never;
            return Err(Error::Image {
                reason: if never {
                    "ErrImageNeverPull"
                } else {
                    "ErrImagePull"
                },
                message: format!("{image}: no such host"),
            });
        }
        Ok(Image {
            reference: image.to_owned(),
            id: format!("simulated:{image}"),
            ..Image::default()
        })
    }

    async fn start_sandbox(&self, config: &SandboxConfig) -> Result<String> {
        self.asked().await?;
        let id = self.0.state().add_sandbox(config)?;
        self.0.tell(config.pod.uid.clone());
        Ok(id)
    }

    async fn stop_sandbox(&self, id: &str) -> Result<()> {
        self.asked().await?;
        self.may_end()?;
        self.crash_sandbox(id);
        Ok(())
    }

    async fn remove_sandbox(&self, id: &str) -> Result<()> {
        self.asked().await?;
        self.may_end()?;
        self.crash_sandbox(id);
        self.0.state().forget_sandbox(id);
        Ok(())
    }

    async fn create(
        &self,
        _sandbox: &SandboxConfig,
        id: &str,
        config: &ContainerConfig,
    ) -> Result<String> {
        self.asked().await?;
        let (id, uid) = self.0.state().add_container(id, config)?;
        self.0.tell(uid);
        Ok(id)
    }

    async fn start(&self, id: &str) -> Result<()> {
        self.asked().await?;
        let (uid, play) = self.0.state().begin(id, self.0.now())?;
        self.0.tell(uid);
        if let Some((after, code)) = play.ends {
            self.end_later(id, after, code);
        }
        Ok(())
    }

    async fn stop(&self, id: &str, grace: Duration) -> Result<()> {
        self.asked().await?;
        self.may_end()?;
        let play = self
            .0
            .state()
            .containers
            .get(id)
            .filter(|contained| contained.run.is_running())
            .map(|contained| contained.play);
        let Some(play) = play else {
            return Ok(());
        };
        if let Some(after) = play.obeys {
            self.end_later(id, after, TERMINATED);
        }
        let (after, code) = match play.obeys {
            Some(after) if after <= grace => (after, TERMINATED),
            _ => (grace, KILLED),
        };
        tokio::time::sleep(after).await;
        self.0.end(id, code);
        Ok(())
    }

    async fn remove(&self, id: &str) -> Result<()> {
        self.asked().await?;
        self.0.state().containers.remove(id);
        Ok(())
    }

    async fn exec(&self, id: &str, command: &[String], timeout: Duration) -> Result<Output> {
        self.asked().await?;
        let running = self
            .0
            .state()
            .containers
            .get(id)
            .is_some_and(|contained| contained.run.is_running());
        if !running {
            return Err(Error::NotFound(format!("container {id} does not run")));
        }
        let words = command.join(" ");
        let set = locked(&self.0.answers).get(&words).copied();
        self.0.state().happened(Happening::Ran(words));
        let (takes, code) = match set {
            Some(code) => (Duration::ZERO, code),
            None => Play::read(command).ends.unwrap_or_default(),
        };
        tokio::time::sleep(takes.min(timeout)).await;
        if takes > timeout {
            return Err(Error::TimedOut(format!("command timed out: {command:?}")));
        }
        let text = Vec::new();
        Ok(Output { code, text })
    }

    async fn exec_session(&self, _id: &str, _request: &ExecRequest) -> Result<Session> {
        Err(nothing_inside())
    }

    async fn attach(&self, _id: &str, _attachment: Attachment) -> Result<Session> {
        Err(nothing_inside())
    }

    async fn connect(&self, _sandbox: &str, _port: u16) -> Result<Box<dyn Duplex>> {
        Err(nothing_inside())
    }

    async fn reopen_log(&self, _id: &str) -> Result<()> {
        Ok(())
    }

    async fn usage(&self) -> Result<Vec<Usage>> {
        Ok(Vec::new())
    }

    async fn remove_unused_images(&self) -> Result<u64> {
        Ok(0)
    }

    fn image_dir(&self) -> Option<PathBuf> {
        None
    }
}
