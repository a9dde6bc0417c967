//! A server in the test's own process with one page, which the test can change.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// See the [module](self).
pub(super) struct Page {
    pub(super) address: SocketAddr,
    shown: Arc<Mutex<(u16, String)>>,
    received: Arc<Mutex<Vec<String>>>,
}

impl Page {
    pub(super) fn new(status: u16, body: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let page = Self {
            address: listener.local_addr().unwrap(),
            shown: Arc::new(Mutex::new((status, body.to_owned()))),
            received: Arc::default(),
        };
        let (shown, received) = (page.shown.clone(), page.received.clone());
        // It ends with the test's process.
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                // A client that is gone misses nothing.
                if let Ok(body) = answer(socket, &shown) {
                    received.lock().unwrap().push(body);
                }
            }
        });
        page
    }

    pub(super) fn show(&self, status: u16, body: &str) {
        *self.shown.lock().unwrap() = (status, body.to_owned());
    }

    /// The bodies of all requests so far.
    pub(super) fn received(&self) -> Vec<String> {
        self.received.lock().unwrap().clone()
    }
}

/// Answers one request; returns its body.
fn answer(mut socket: TcpStream, shown: &Mutex<(u16, String)>) -> std::io::Result<String> {
    let mut reader = BufReader::new(socket.try_clone()?);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let (status, page) = shown.lock().unwrap().clone();
    let size = page.len();
    write!(
        socket,
        "HTTP/1.1 {status} X\r\nContent-Type: text/plain\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n{page}"
    )?;
    Ok(String::from_utf8_lossy(&body).into_owned())
}
