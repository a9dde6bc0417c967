//! A client of an API that goes wrong: answers that are refusals, answers that get lost after the API
//! has acted, watches that break or have expired.
//!
//! What goes wrong when is drawn from a seed. What was asked for is written down, so that a test can
//! say who wrote what, and when.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::StreamExt as _;
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, BodyStream, Full, StreamBody};
use kennel_server::api::Api;
use kube::client::Body;
use serde_json::json;

use crate::inprocess;

/// How often a write goes wrong, in a hundred.
const FAULTY_WRITES: u32 = 30;
/// How often a list or the start of a watch goes wrong, in a hundred.
const FAULTY_READS: u32 = 20;
/// How many of them go wrong in all: clients wait longer and longer after each.
const FAULTY_READS_MAX: u32 = 16;
/// A watch breaks after at most so many pieces.
const PIECES: usize = 40;
/// How long an answer is awaited that never comes.
const LOST_AFTER: Duration = Duration::from_millis(20);

type Error = Box<dyn std::error::Error + Send + Sync>;
type Answered = Response<UnsyncBoxBody<Bytes, Error>>;

/// What goes wrong with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Nothing,
    /// Answered with this code, and nothing done.
    Refused(u16),
    /// Done, and answered with this code.
    DoneAndRefused(u16),
    /// The connection breaks before anything is done.
    Broken,
    /// Done, and the connection breaks before the answer.
    DoneAndBroken,
    /// A watch that ends after so many pieces.
    CutAfter(usize),
    /// A watch that begins too far back.
    Expired,
}

/// A write that was asked for.
#[derive(Clone, Debug)]
pub struct Written {
    /// When it arrived.
    pub at: Instant,
    /// How.
    pub method: Method,
    /// Where.
    pub path: String,
}

struct State {
    random: fastrand::Rng,
    failing: bool,
    faulty_reads: u32,
    cut_off: Vec<&'static str>,
    written: Vec<Written>,
    /// How often each path was read.
    read: BTreeMap<String, usize>,
}

/// What goes wrong for one client. Copies share their state.
#[derive(Clone)]
pub struct Faults(Arc<Mutex<State>>);

impl Faults {
    /// Faults drawn from a seed.
    pub fn seeded(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(State {
            random: fastrand::Rng::with_seed(seed),
            failing: true,
            faulty_reads: 0,
            cut_off: Vec::new(),
            written: Vec::new(),
            read: BTreeMap::new(),
        })))
    }

    /// None, until something is cut off; but everything is written down.
    pub fn none() -> Self {
        let faults = Self::seeded(0);
        faults.end();
        faults
    }

    /// From now on nothing goes wrong.
    pub fn end(&self) {
        self.with(|state| {
            state.failing = false;
            state.cut_off.clear();
        });
    }

    /// From now on requests whose path contains this break.
    pub fn cut_off(&self, part: &'static str) {
        self.with(|state| state.cut_off.push(part));
    }

    /// The writes that were asked for so far.
    pub fn written(&self) -> Vec<Written> {
        self.with(|state| state.written.clone())
    }

    /// How often this path was read so far.
    pub fn read(&self, path: &str) -> usize {
        self.with(|state| state.read.get(path).copied().unwrap_or(0))
    }

    /// A client of this API for which this goes wrong.
    pub fn client(&self, api: Arc<Api>, name: &'static str) -> kube::Client {
        let faults = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let (api, faults) = (api.clone(), faults.clone());
            async move { faults.answer(&api, name, request).await }
        });
        kube::Client::new(service, "default")
    }

    fn with<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn draw(&self, request: &Request<Body>) -> Fault {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let watch = request
            .uri()
            .query()
            .is_some_and(|q| q.contains("watch=true"));
        self.with(|state| {
            let writes = method != Method::GET;
            let cut = state.cut_off.iter().any(|part| path.contains(part));
            if writes {
                let at = Instant::now();
                state.written.push(Written { at, method, path });
            } else {
                *state.read.entry(path).or_default() += 1;
            }
            match (cut, state.failing) {
                (true, _) => Fault::Broken,
                (false, false) => Fault::Nothing,
                (false, true) if writes => wrong_write(&mut state.random),
                (false, true) => state.wrong_read(watch),
            }
        })
    }

    async fn answer(
        &self,
        api: &Arc<Api>,
        name: &str,
        request: Request<Body>,
    ) -> Result<Answered, &'static str> {
        match self.draw(&request) {
            Fault::Nothing => Ok(whole(inprocess::answer(api, name, request).await)),
            Fault::Refused(code) => Ok(refusal(code)),
            Fault::DoneAndRefused(code) => {
                inprocess::answer(api, name, request).await;
                Ok(refusal(code))
            }
            Fault::Broken => Err("the connection broke before the request was read"),
            Fault::DoneAndBroken => {
                inprocess::answer(api, name, request).await;
                tokio::time::sleep(LOST_AFTER).await;
                Err("the connection broke before the answer was sent")
            }
            Fault::CutAfter(pieces) => {
                let answer = inprocess::answer(api, name, request).await;
                let (head, body) = answer.into_parts();
                let some = StreamBody::new(BodyStream::new(body).take(pieces));
                let some = some.map_err(Into::into).boxed_unsync();
                Ok(Response::from_parts(head, some))
            }
            Fault::Expired => Ok(expired()),
        }
    }
}

fn wrong_write(random: &mut fastrand::Rng) -> Fault {
    if random.u32(..100) >= FAULTY_WRITES {
        return Fault::Nothing;
    }
    match random.u32(..7) {
        0 => Fault::Refused(409),
        1 => Fault::Refused(429),
        2 => Fault::Refused(500),
        3 => Fault::DoneAndRefused(500),
        4 => Fault::DoneAndRefused(504),
        5 => Fault::Broken,
        _ => Fault::DoneAndBroken,
    }
}

impl State {
    fn wrong_read(&mut self, watch: bool) -> Fault {
        let left = self.faulty_reads < FAULTY_READS_MAX;
        let wrong = left && self.random.u32(..100) < FAULTY_READS;
        self.faulty_reads += u32::from(wrong);
        match (wrong, watch) {
            (true, true) => Fault::Expired,
            (true, false) => Fault::Refused(500),
            (false, true) => Fault::CutAfter(self.random.usize(1..PIECES)),
            (false, false) => Fault::Nothing,
        }
    }
}

fn whole(answer: Response<kennel_server::http::body::Body>) -> Answered {
    answer.map(|body| body.map_err(Into::into).boxed_unsync())
}

/// A refusal as the API words it. Those that ask for patience ask for none that a test must wait for.
fn refusal(code: u16) -> Answered {
    let reason = match code {
        409 => "Conflict",
        429 => "TooManyRequests",
        504 => "Timeout",
        _ => "InternalError",
    };
    let body = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "as arranged", "reason": reason, "code": code});
    let mut response = text(body.to_string());
    *response.status_mut() = StatusCode::from_u16(code).expect("refusals have codes of HTTP");
    if code == 429 {
        let at_once = http::HeaderValue::from_static("0");
        response
            .headers_mut()
            .insert(http::header::RETRY_AFTER, at_once);
    }
    response
}

fn expired() -> Answered {
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "too old resource version", "reason": "Expired", "code": 410});
    text(format!("{}\n", json!({"type": "ERROR", "object": status})))
}

fn text(text: String) -> Answered {
    let body = Full::new(Bytes::from(text)).map_err(Into::into);
    let mut response = Response::new(body.boxed_unsync());
    let json = http::HeaderValue::from_static("application/json");
    response
        .headers_mut()
        .insert(http::header::CONTENT_TYPE, json);
    response
}
