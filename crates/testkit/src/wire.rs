//! A TLS connection that speaks HTTP/1.1 byte by byte, so that a test can also say what no HTTP library
//! would: half a request, a header too many, nothing at all. It knows no rule of Kubernetes.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::Value;

/// Longer than a server under test waits for anything: a test fails rather than hangs.
const TIMEOUT: Duration = Duration::from_secs(20);

/// How to reach a server: its address, and the certificates in its data directory.
#[derive(Clone, Debug)]
pub struct Access {
    address: SocketAddr,
    config: Arc<ClientConfig>,
}

impl Access {
    /// The administrator's access, from the certificates in a data directory.
    pub fn admin(address: SocketAddr, data_dir: &Path) -> Self {
        let pki = data_dir.join("pki");
        let read = |name| std::fs::read_to_string(pki.join(name)).expect("the file is there");
        Self::showing(address, data_dir, &read("admin.crt"), &read("admin.key"))
    }

    /// Access with this client certificate, which any authority may have signed.
    pub fn showing(address: SocketAddr, data_dir: &Path, cert_pem: &str, key_pem: &str) -> Self {
        let chain = CertificateDer::pem_slice_iter(cert_pem.as_bytes());
        let chain = chain.collect::<Result<Vec<_>, _>>();
        let key = PrivateKeyDer::from_pem_slice(key_pem.as_bytes());
        let config = trusting(&data_dir.join("pki")).with_client_auth_cert(
            chain.expect("there is a certificate"),
            key.expect("there is a key"),
        );
        Self {
            address,
            config: Arc::new(config.expect("certificate and key belong together")),
        }
    }

    /// Access without credentials.
    pub fn stranger(address: SocketAddr, data_dir: &Path) -> Self {
        let config = trusting(&data_dir.join("pki")).with_no_client_auth();
        Self {
            address,
            config: Arc::new(config),
        }
    }

    /// The same access, for HTTP/2 connections. The test writes the frames.
    #[must_use]
    pub fn http2(&self) -> Self {
        let mut config = (*self.config).clone();
        config.alpn_protocols = vec![b"h2".to_vec()];
        Self {
            address: self.address,
            config: Arc::new(config),
        }
    }

    /// A new connection, its handshake done.
    pub fn open(&self) -> io::Result<Wire> {
        let socket = TcpStream::connect(self.address)?;
        socket.set_read_timeout(Some(TIMEOUT))?;
        socket.set_write_timeout(Some(TIMEOUT))?;
        let name = ServerName::from(self.address.ip());
        let session = ClientConnection::new(Arc::clone(&self.config), name);
        let mut stream = StreamOwned::new(session.map_err(io::Error::other)?, socket);
        stream.conn.complete_io(&mut stream.sock)?;
        Ok(Wire {
            stream,
            read: Vec::new(),
        })
    }

    /// One request on a connection of its own.
    pub fn ask(&self, method: &str, path: &str, body: &[u8]) -> Reply {
        let mut wire = self.open().expect("the server accepts connections");
        wire.ask(method, path, "application/json", body)
            .expect("the server answers")
    }

    /// One request with further headers, on a connection of its own.
    pub fn ask_with(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Reply {
        let own = headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"));
        let (own, length) = (own.collect::<String>(), body.len());
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: kennel\r\n{own}\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        );
        let mut wire = self.open().expect("the server accepts connections");
        let sent = wire.send(&[head.as_bytes(), body].concat());
        sent.expect("the server reads requests");
        wire.reply().expect("the server answers")
    }
}

fn trusting(pki: &Path) -> rustls::ConfigBuilder<ClientConfig, rustls::client::WantsClientCert> {
    let ca = CertificateDer::from_pem_file(pki.join("ca.crt")).expect("there is a CA");
    let mut roots = RootCertStore::empty();
    roots.add(ca).expect("the CA is one");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider knows TLS")
        .with_root_certificates(roots)
}

/// An answer.
#[derive(Debug)]
pub struct Reply {
    /// The HTTP status code.
    pub code: u16,
    /// The status line and the headers.
    pub head: String,
    /// The body.
    pub body: Vec<u8>,
}

impl Reply {
    /// The body as JSON; null when it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = head.lines().filter_map(|line| line.split_once(':'));
    let found = fields.find(|(field, _)| field.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.trim())
}

/// A connection.
pub struct Wire {
    stream: StreamOwned<ClientConnection, TcpStream>,
    /// Read, but not yet asked for.
    read: Vec<u8>,
}

impl Wire {
    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)?;
        self.stream.flush()
    }

    /// Sends a request with a body and waits for its answer.
    pub fn ask(
        &mut self,
        method: &str,
        path: &str,
        content_type: &str,
        body: &[u8],
    ) -> io::Result<Reply> {
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: kennel\r\nUser-Agent: wire/1 (test)\r\n\
             Content-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n"
        );
        self.send(&[head.as_bytes(), body].concat())?;
        self.reply()
    }

    /// Waits for an answer and reads it whole.
    pub fn reply(&mut self) -> io::Result<Reply> {
        let (code, head) = self.head()?;
        let body = match header(&head, "content-length").and_then(|n| n.parse().ok()) {
            Some(length) => self.exactly(length)?,
            None if header(&head, "transfer-encoding").is_some() => self.chunks()?,
            None => Vec::new(),
        };
        Ok(Reply { code, head, body })
    }

    /// Waits for the status line and headers of an answer.
    pub fn head(&mut self) -> io::Result<(u16, String)> {
        loop {
            let end = self.until(b"\r\n\r\n")?;
            let head = String::from_utf8_lossy(&end).into_owned();
            let code = head.split(' ').nth(1).and_then(|code| code.parse().ok());
            let code: u16 = code.ok_or_else(|| io::Error::other(format!("no HTTP: {head}")))?;
            if code >= 200 {
                return Ok((code, head));
            }
        }
    }

    /// The next chunk of an answer that comes in chunks; `None` at its proper end.
    pub fn chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        let size = self.until(b"\r\n")?;
        let size = String::from_utf8_lossy(&size[..size.len() - 2]).into_owned();
        let size = usize::from_str_radix(&size, 16).map_err(io::Error::other)?;
        let mut chunk = self.exactly(size + 2)?;
        chunk.truncate(size);
        Ok((size > 0).then_some(chunk))
    }

    /// Waits for the end of the connection; returns what still came.
    pub fn rest(&mut self) -> io::Result<Vec<u8>> {
        loop {
            match self.more() {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    return Ok(std::mem::take(&mut self.read));
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Says that nothing more will be sent, and goes on listening.
    pub fn half_close(&mut self) -> io::Result<()> {
        self.stream.conn.send_close_notify();
        self.stream.conn.complete_io(&mut self.stream.sock)?;
        self.stream.sock.shutdown(Shutdown::Write)
    }

    fn chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        while let Some(chunk) = self.chunk()? {
            body.extend(chunk);
        }
        Ok(body)
    }

    fn until(&mut self, end: &[u8]) -> io::Result<Vec<u8>> {
        loop {
            let found = self.read.windows(end.len()).position(|w| w == end);
            if let Some(position) = found {
                return self.exactly(position + end.len());
            }
            self.more()?;
        }
    }

    /// The next bytes, whatever they are.
    pub fn exactly(&mut self, length: usize) -> io::Result<Vec<u8>> {
        while self.read.len() < length {
            self.more()?;
        }
        let rest = self.read.split_off(length);
        Ok(std::mem::replace(&mut self.read, rest))
    }

    fn more(&mut self) -> io::Result<()> {
        let mut buffer = [0; 16 * 1024];
        match self.stream.read(&mut buffer)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            count => {
                self.read.extend_from_slice(&buffer[..count]);
                Ok(())
            }
        }
    }
}
