//! A registry of a test's own: images made on the spot, served over plain HTTP, to everybody or only to who
//! names the right user and password. Nothing can be pushed to it.
//!
//! It listens in the test's own network; [`super::Containerd::trust`] tells a containerd that it speaks no TLS.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kennel_packages::oci::digest;

use super::Image;

/// See the [module](self). Dropping it closes it.
#[derive(Debug)]
pub struct Registry {
    address: SocketAddr,
    shelf: Arc<Shelf>,
    serving: Option<JoinHandle<()>>,
}

/// What it has, and what was asked of it.
#[derive(Debug, Default)]
struct Shelf {
    /// Media type and bytes, by `manifests/…` or `blobs/…` with the image's name before it.
    things: Mutex<BTreeMap<String, (&'static str, Vec<u8>)>>,
    /// The value of `Authorization` that opens it.
    key: Option<String>,
    /// The requests that were answered, in order: `GET app/manifests/1`.
    given: Mutex<Vec<String>>,
    closed: AtomicBool,
}

impl Registry {
    /// One that is open to everybody, reached at this address of the test's own.
    pub fn open(at: Ipv4Addr) -> Self {
        Self::start(at, None)
    }

    /// One that answers to a user and a password only.
    pub fn locked(at: Ipv4Addr, user: &str, password: &str) -> Self {
        let pair = STANDARD.encode(format!("{user}:{password}"));
        Self::start(at, Some(format!("Basic {pair}")))
    }

    fn start(at: Ipv4Addr, key: Option<String>) -> Self {
        let listener = TcpListener::bind((at, 0)).expect("a port of the machine is free");
        let address = listener.local_addr().expect("it has an address");
        let shelf = Arc::new(Shelf {
            key,
            ..Shelf::default()
        });
        let shared = Arc::clone(&shelf);
        let serving = std::thread::spawn(move || shared.serve(&listener));
        Self {
            address,
            shelf,
            serving: Some(serving),
        }
    }

    /// What images' names begin with: `10.213.0.1:40123`.
    pub fn name(&self) -> String {
        self.address.to_string()
    }

    /// Makes an image, puts it on the shelf, and says its whole name: `app:1` becomes
    /// `10.213.0.1:40123/app:1`. One of the same name is replaced.
    pub fn serve(&self, image: &Image) -> String {
        let parts = image.packed().blobs().expect("images fit their form");
        let (name, tag) = image.name().split_once(':').expect("images have tags");
        let mut things = lock(&self.shelf.things);
        for blob in [parts.config, parts.layer] {
            let path = format!("{name}/blobs/{}", blob.digest);
            things.insert(path, (blob.media_type, blob.content));
        }
        let manifest = parts.manifest;
        for reference in [tag, &manifest.digest] {
            let path = format!("{name}/manifests/{reference}");
            things.insert(path, (manifest.media_type, manifest.content.clone()));
        }
        format!("{}/{name}:{tag}", self.name())
    }

    /// How often it was asked about the tag of an image, and answered. Takes the name that [`Self::serve`] gave.
    pub fn asked(&self, image: &str) -> usize {
        let own = format!("{}/", self.name());
        let rest = image.strip_prefix(&own).expect("it is one of ours");
        let path = rest.replace(':', "/manifests/");
        let given = lock(&self.shelf.given);
        given.iter().filter(|line| line.ends_with(&path)).count()
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.shelf.closed.store(true, Ordering::Release);
        // Wakes it, so that it sees that.
        let _woken = TcpStream::connect(self.address);
        if let Some(serving) = self.serving.take() {
            let _ended = serving.join();
        }
    }
}

impl Shelf {
    fn serve(self: Arc<Self>, listener: &TcpListener) {
        for socket in listener.incoming() {
            if self.closed.load(Ordering::Acquire) {
                return;
            }
            let shelf = Arc::clone(&self);
            std::thread::spawn(move || {
                // The client may disconnect in the middle of a response.
                let _gone = socket.and_then(|socket| shelf.answer(&socket));
            });
        }
    }

    /// Answers one request, and hangs up.
    fn answer(&self, mut socket: &TcpStream) -> io::Result<()> {
        let mut lines = BufReader::new(socket).lines();
        let first = lines.next().transpose()?.unwrap_or_default();
        let mut key = None;
        for line in lines {
            let line = line?;
            match line.split_once(": ") {
                Some((name, value)) if name.eq_ignore_ascii_case("authorization") => {
                    key = Some(value.to_owned());
                }
                Some(_) => {}
                None => break,
            }
        }
        let mut words = first.split(' ');
        let (method, path) = (words.next(), words.next());
        let (method, path) = (method.unwrap_or_default(), path.unwrap_or_default());
        if self.key.is_some() && key != self.key {
            let challenge = "WWW-Authenticate: Basic realm=\"the test\"";
            let words =
                r#"{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}"#;
            return reply(socket, "401 Unauthorized", &[challenge], words.as_bytes());
        }
        let path = path.trim_start_matches("/v2/");
        let path = path.split('?').next().unwrap_or_default();
        let found = lock(&self.things).get(path).cloned();
        let Some((kind, bytes)) = found else {
            let words = r#"{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}"#;
            return reply(socket, "404 Not Found", &[], words.as_bytes());
        };
        lock(&self.given).push(format!("{method} {path}"));
        let digest = format!("Docker-Content-Digest: {}", digest(&bytes));
        let kind = format!("Content-Type: {kind}");
        head(socket, "200 OK", &[&kind, &digest], bytes.len())?;
        if method == "HEAD" {
            return Ok(());
        }
        socket.write_all(&bytes)
    }
}

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

fn head(mut socket: &TcpStream, status: &str, more: &[&str], length: usize) -> io::Result<()> {
    let mut lines = vec![format!("HTTP/1.1 {status}")];
    lines.extend(more.iter().map(ToString::to_string));
    lines.push(format!("Content-Length: {length}"));
    lines.push("Connection: close\r\n\r\n".to_owned());
    socket.write_all(lines.join("\r\n").as_bytes())
}

fn reply(mut socket: &TcpStream, status: &str, more: &[&str], body: &[u8]) -> io::Result<()> {
    head(socket, status, more, body.len())?;
    socket.write_all(body)
}
