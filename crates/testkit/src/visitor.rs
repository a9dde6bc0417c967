//! A visitor of a page who sends exactly the headers that a test says, and reads streams of events.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use crate::Deadline;

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Sends requests with fixed headers.
#[derive(Clone, Debug)]
pub struct Visitor {
    host: String,
    headers: BTreeMap<String, String>,
}

/// An answer. Names of headers are in lower case.
#[derive(Clone, Debug)]
pub struct Answered {
    pub status: u16,
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

impl Answered {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        let parsed = serde_json::from_slice(&self.body);
        parsed.unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }
}

impl Visitor {
    /// Of the server at this `host:port`.
    pub(crate) fn new(host: &str) -> Self {
        let headers = BTreeMap::from([("Host".to_owned(), host.to_owned())]);
        Self {
            host: host.to_owned(),
            headers,
        }
    }

    /// With this header, instead of one of that name.
    #[must_use]
    pub fn with(&self, name: &str, value: &str) -> Self {
        let mut other = self.clone();
        other.headers.insert(name.to_owned(), value.to_owned());
        other
    }

    pub fn get(&self, path: &str) -> Answered {
        self.send("GET", path, "")
    }

    /// As the page posts: JSON, from its own origin.
    pub fn post(&self, path: &str, body: &Value) -> Answered {
        self.with("Origin", &format!("http://{}", self.host))
            .with("Content-Type", "application/json")
            .send("POST", path, &body.to_string())
    }

    pub fn send(&self, method: &str, path: &str, body: &str) -> Answered {
        let mut socket = self.request(method, path, body, "close");
        let (status, headers) = head(&mut socket);
        let mut body = Vec::new();
        if headers.get("transfer-encoding").map(String::as_str) == Some("chunked") {
            while let Some(chunk) = chunk(&mut socket) {
                body.extend(chunk);
            }
        } else {
            socket
                .read_to_end(&mut body)
                .expect("the answer can be read");
        }
        Answered {
            status,
            headers,
            body,
        }
    }

    /// Opens a stream of events.
    pub fn events(&self, path: &str) -> Events {
        let opened = self.try_events(path);
        opened.unwrap_or_else(|status| panic!("{path}: {status}"))
    }

    /// Opens a stream of events, or returns the status with which it is refused.
    pub fn try_events(&self, path: &str) -> Result<Events, u16> {
        let mut socket = self.request("GET", path, "", "keep-alive");
        let (status, _) = head(&mut socket);
        if status != 200 {
            return Err(status);
        }
        let rest = Vec::new();
        Ok(Events { socket, rest })
    }

    fn request(
        &self,
        method: &str,
        path: &str,
        body: &str,
        connection: &str,
    ) -> BufReader<TcpStream> {
        let mut socket = TcpStream::connect(&self.host).expect("the dashboard listens");
        let bounded = socket.set_read_timeout(Some(TIMEOUT));
        bounded.expect("a socket can have a timeout");
        let length = body.len().to_string();
        let own = [("Connection", connection), ("Content-Length", &length)];
        let given = self.headers.iter().map(|(name, value)| (&**name, &**value));
        let headers = own.into_iter().chain(given);
        let headers: Vec<String> = headers
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        let text = format!("{method} {path} HTTP/1.1\r\n{}\r\n{body}", headers.concat());
        let sent = socket.write_all(text.as_bytes());
        sent.expect("a request can be sent");
        BufReader::new(socket)
    }
}

/// A stream of server-sent events.
#[derive(Debug)]
pub struct Events {
    socket: BufReader<TcpStream>,
    rest: Vec<u8>,
}

/// Events and their data, until the stream ends.
impl Iterator for Events {
    type Item = (String, Value);

    fn next(&mut self) -> Option<(String, Value)> {
        loop {
            if let Some(end) = self.rest.windows(2).position(|pair| pair == b"\n\n") {
                let event: Vec<u8> = self.rest.drain(..end + 2).collect();
                return Some(parsed(&String::from_utf8_lossy(&event)));
            }
            self.rest.extend(chunk(&mut self.socket)?);
        }
    }
}

impl Events {
    /// Waits for an event of this name that `found` turns into something.
    pub fn wait<T>(&mut self, name: &str, mut found: impl FnMut(&Value) -> Option<T>) -> T {
        let deadline = Deadline::seconds(TIMEOUT.as_secs());
        let mut last = Value::Null;
        loop {
            let next = self.next();
            let (event, data) = next.unwrap_or_else(|| panic!("it ended; last {name}: {last}"));
            if event == name {
                if let Some(found) = found(&data) {
                    return found;
                }
                last = data;
            }
            assert!(!deadline.passed(), "not in time; last {name}: {last}");
        }
    }
}

fn parsed(event: &str) -> (String, Value) {
    let field = |name: &str| {
        let lines = event.lines();
        let mut values = lines.filter_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        values.next().unwrap_or_default()
    };
    let data = serde_json::from_str(field("data")).expect("data is JSON in one line");
    (field("event").to_owned(), data)
}

fn head(socket: &mut BufReader<TcpStream>) -> (u16, BTreeMap<String, String>) {
    let first = line(socket);
    let status = first
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let mut headers = BTreeMap::new();
    loop {
        let line = line(socket);
        let Some((name, value)) = line.split_once(':') else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    (
        status.unwrap_or_else(|| panic!("no status in {first:?}")),
        headers,
    )
}

/// A chunk of a body; nothing at its end.
fn chunk(socket: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let size = line(socket);
    let size = usize::from_str_radix(&size, 16)
        .ok()
        .filter(|size| *size > 0)?;
    let mut chunk = vec![0; size + 2];
    socket.read_exact(&mut chunk).ok()?;
    chunk.truncate(size);
    Some(chunk)
}

fn line(socket: &mut BufReader<TcpStream>) -> String {
    let mut line = String::new();
    let read = socket.read_line(&mut line);
    read.expect("the answer can be read");
    line.trim_end().to_owned()
}
