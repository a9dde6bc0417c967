//! Probes and hooks against test servers on the loopback interface, and a fake runtime that knows a few commands.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use kennel_types::{Container, PodSpec};
use serde::Deserialize as _;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::*;
use crate::runtime::{
    About, Attachment, ContainerConfig, Duplex, Error, ExecRequest, Found, Health, Image, Output,
    PullPolicy, RegistryLogin, Result as Answer, SandboxConfig, Session, Usage,
};

/// Runs the commands `true`, `false` and `slow down`; all others find the runtime unavailable.
struct FakeRuntime;

#[async_trait]
impl Runtime for FakeRuntime {
    async fn exec(&self, id: &str, command: &[String], _: Duration) -> Answer<Output> {
        assert_eq!(id, "c1");
        let answer = |code, text: &str| {
            let text = text.into();
            Ok(Output { code, text })
        };
        match command.join(" ").as_str() {
            "true" => answer(0, "fine"),
            "false" => answer(3, "no such file"),
            "slow down" => Err(Error::TimedOut("too slow".to_owned())),
            _ => Err(Error::Unavailable("the runtime is unavailable".to_owned())),
        }
    }
    fn about(&self) -> About {
        unreachable!()
    }
    async fn health(&self) -> Health {
        unreachable!()
    }
    async fn list(&self) -> Answer<Vec<Found>> {
        unreachable!()
    }
    async fn inspect(&self, _: &str) -> Answer<Option<Found>> {
        unreachable!()
    }
    fn changes(&self) -> mpsc::Receiver<String> {
        unreachable!()
    }
    async fn image(&self, _: &str, _: PullPolicy, _: &[RegistryLogin]) -> Answer<Image> {
        unreachable!()
    }
    async fn start_sandbox(&self, _: &SandboxConfig) -> Answer<String> {
        unreachable!()
    }
    async fn stop_sandbox(&self, _: &str) -> Answer<()> {
        unreachable!()
    }
    async fn remove_sandbox(&self, _: &str) -> Answer<()> {
        unreachable!()
    }
    async fn create(&self, _: &SandboxConfig, _: &str, _: &ContainerConfig) -> Answer<String> {
        unreachable!()
    }
    async fn start(&self, _: &str) -> Answer<()> {
        unreachable!()
    }
    async fn stop(&self, _: &str, _: Duration) -> Answer<()> {
        unreachable!()
    }
    async fn remove(&self, _: &str) -> Answer<()> {
        unreachable!()
    }
    async fn exec_session(&self, _: &str, _: &ExecRequest) -> Answer<Session> {
        unreachable!()
    }
    async fn attach(&self, _: &str, _: Attachment) -> Answer<Session> {
        unreachable!()
    }
    async fn connect(&self, _: &str, _: u16) -> Answer<Box<dyn Duplex>> {
        unreachable!()
    }
    async fn reopen_log(&self, _: &str) -> Answer<()> {
        unreachable!()
    }
    async fn usage(&self, _: bool) -> Answer<Vec<Usage>> {
        unreachable!()
    }
    async fn remove_unused_images(&self) -> Answer<u64> {
        unreachable!()
    }
    fn image_dir(&self) -> Option<PathBuf> {
        unreachable!()
    }
}

fn container(port: u16) -> Container {
    let ports = json!([{"name": "web", "containerPort": port}]);
    let spec = json!({"containers": [{"name": "app", "ports": ports}]});
    PodSpec::deserialize(&spec).unwrap().containers.remove(0)
}

/// Probes a container whose port `web` is the given one.
async fn run_probe(port: u16, probe: Value) -> Result<(), ProbeError> {
    let (pod, container) = (PodId::default(), container(port));
    super::probe(&target(&pod, &container), &probe).await
}

fn target<'a>(pod: &'a PodId, container: &'a Container) -> Target<'a> {
    Target {
        runtime: &FakeRuntime,
        pod,
        container,
        id: "c1",
        address: Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
    }
}

fn failed(why: &str) -> Result<(), ProbeError> {
    Err(ProbeError::Failed(why.to_owned()))
}

/// A server whose response depends on the path. Returns its port and the requests it gets.
async fn serve() -> (u16, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, receiver) = mpsc::channel(100);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 4096];
            let length = stream.read(&mut request).await.unwrap();
            request.truncate(length);
            let request = String::from_utf8_lossy(&request).into_owned();
            let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
            sender.send(request.clone()).await.ok();
            let answer = match path.as_str() {
                _ if !request.starts_with("GET ") => "HTTP/1.1 400 Bad Request\r\n\r\n",
                "/ok" => "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
                "/busy" => "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n",
                "/near" => "HTTP/1.1 302 Found\r\nLocation: /busy\r\nContent-Length: 0\r\n\r\n",
                "/far" => {
                    "HTTP/1.1 302 Found\r\nLocation: http://192.0.2.1/\r\nContent-Length: 0\r\n\r\n"
                }
                "/round" => "HTTP/1.1 302 Found\r\nLocation: /round\r\nContent-Length: 0\r\n\r\n",
                "/never" => {
                    std::future::pending::<()>().await;
                    ""
                }
                _ => "",
            };
            stream.write_all(answer.as_bytes()).await.ok();
        }
    });
    (port, receiver)
}

async fn closed_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap().port()
}

#[tokio::test]
async fn http_probes_depend_on_the_status() {
    let (port, _requests) = serve().await;
    let get = |path: &str| json!({"httpGet": {"path": path, "port": "web"}});
    assert_eq!(run_probe(port, get("/ok")).await, Ok(()));
    let busy = failed("HTTP probe failed with statuscode: 503");
    assert_eq!(run_probe(port, get("/busy")).await, busy);
    assert_eq!(run_probe(port, get("/near")).await, busy);
    assert_eq!(run_probe(port, get("/far")).await, Ok(()));
    let cut = failed(&format!("Get \"http://127.0.0.1:{port}/cut\": EOF"));
    assert_eq!(run_probe(port, get("cut")).await, cut);
    let round = format!("Get \"http://127.0.0.1:{port}/round\": stopped after 10 redirects");
    assert_eq!(run_probe(port, get("/round")).await, failed(&round));
    let late = format!(
        "Get \"http://127.0.0.1:{port}/never\": context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
    );
    assert_eq!(run_probe(port, get("/never")).await, failed(&late));
}

#[tokio::test]
async fn http_requests_have_the_headers_of_the_spec() {
    let (port, mut requests) = serve().await;
    let headers = json!([{"name": "Host", "value": "shop"}, {"name": "X-Y", "value": "z"}]);
    let probe = json!({"httpGet": {"path": "/ok", "port": port, "httpHeaders": headers}});
    assert_eq!(run_probe(1, probe).await, Ok(()));
    let request = requests.recv().await.unwrap().to_lowercase();
    for line in [
        "get /ok http/1.1",
        "host: shop",
        "x-y: z",
        "user-agent: kube-probe/1.36",
        "accept: */*",
        "connection: close",
    ] {
        assert!(
            request.contains(&format!("{line}\r\n")),
            "{line}: {request}"
        );
    }
    assert_eq!(request.matches("host:").count(), 1);
}

#[tokio::test]
async fn closed_ports_fail_with_upstreams_messages() {
    let port = closed_port().await;
    let refused = format!("dial tcp 127.0.0.1:{port}: connect: connection refused");
    let tcp = run_probe(port, json!({"tcpSocket": {"port": "web"}})).await;
    assert_eq!(tcp, failed(&refused));
    let http = run_probe(port, json!({"httpGet": {"port": "web"}})).await;
    let expected = format!("Get \"http://127.0.0.1:{port}/\": {refused}");
    assert_eq!(http, failed(&expected));
    let grpc = run_probe(port, json!({"grpc": {"port": port}})).await;
    let expected = format!(
        "timeout: failed to connect service \"127.0.0.1:{port}\" within 1s: context deadline exceeded"
    );
    assert_eq!(grpc, failed(&expected));
}

#[tokio::test]
async fn tcp_probes_need_an_open_port() {
    let (port, _requests) = serve().await;
    assert_eq!(
        run_probe(port, json!({"tcpSocket": {"port": "web"}})).await,
        Ok(())
    );
    let unknown = ProbeError::Unknown("strconv.Atoi: parsing \"db\": invalid syntax".to_owned());
    let probe = json!({"tcpSocket": {"port": "db"}});
    assert_eq!(run_probe(port, probe).await, Err(unknown));
}

#[tokio::test]
async fn https_accepts_any_certificate_and_reports_plain_servers() {
    let (port, _requests) = serve().await;
    let plain = json!({"httpGet": {"port": port, "path": "/ok", "scheme": "HTTPS"}});
    let expected = format!(
        "Get \"https://127.0.0.1:{port}/ok\": http: server gave HTTP response to HTTPS client"
    );
    assert_eq!(run_probe(port, plain).await, failed(&expected));

    let secure = serve_tls().await;
    let probe = json!({"httpGet": {"port": secure, "path": "/ok", "scheme": "HTTPS"}});
    assert_eq!(run_probe(secure, probe).await, Ok(()));
}

async fn serve_tls() -> u16 {
    let key = rcgen::generate_simple_self_signed(["elsewhere".to_owned()]).unwrap();
    let private = rustls::pki_types::PrivateKeyDer::try_from(key.signing_key.serialize_der());
    let provider = std::sync::Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![key.cert.der().clone()], private.unwrap())
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(std::sync::Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = acceptor.accept(stream).await.unwrap();
        let mut request = [0; 4096];
        assert!(stream.read(&mut request).await.unwrap() > 0);
        let answer = b"HTTP/1.1 204 Fine\r\n\r\n";
        stream.write_all(answer).await.unwrap();
        stream.flush().await.unwrap();
    });
    port
}

#[tokio::test]
async fn exec_probes_depend_on_the_exit_code() {
    let exec = |command: &[&str]| json!({"exec": {"command": command}});
    assert_eq!(run_probe(1, exec(&["true"])).await, Ok(()));
    assert_eq!(run_probe(1, exec(&["false"])).await, failed("no such file"));
    let late = failed("command \"slow down\" timed out");
    assert_eq!(run_probe(1, exec(&["slow", "down"])).await, late);
    // An unavailable runtime says nothing about the container.
    let unavailable = Err(ProbeError::Unknown("the runtime is unavailable".to_owned()));
    assert_eq!(run_probe(1, exec(&["away"])).await, unavailable);
}

/// A health service: `/ok` serves, `/bad` does not, others are not known.
async fn serve_grpc() -> u16 {
    use bytes::Bytes;
    use http_body_util::{BodyExt, Full, StreamBody};
    use hyper::body::{Frame, Incoming};
    use hyper_util::rt::{TokioExecutor, TokioIo};
    use prost::Message;

    async fn answer(
        request: http::Request<Incoming>,
    ) -> Result<
        http::Response<http_body_util::combinators::BoxBody<Bytes, hyper::Error>>,
        hyper::Error,
    > {
        let agent = request.headers()["user-agent"].to_str().unwrap();
        assert!(agent.starts_with("kube-probe/1.36"), "{agent}");
        assert_eq!(request.uri().path(), "/grpc.health.v1.Health/Check");
        let body = request.into_body().collect().await?.to_bytes();
        let asked = grpc::HealthCheckRequest::decode(&body[5..]).unwrap();
        let response = http::Response::builder().header("content-type", "application/grpc");
        let status = match asked.service.as_str() {
            "" => 1,
            "bad" => 2,
            _ => {
                let body = Full::new(Bytes::new())
                    .map_err(|never| match never {})
                    .boxed();
                let response = response.header("grpc-status", "5");
                return Ok(response.header("grpc-message", "who").body(body).unwrap());
            }
        };
        let message = grpc::HealthCheckResponse { status }.encode_to_vec();
        let mut bytes = vec![0, 0, 0, 0, u8::try_from(message.len()).unwrap()];
        bytes.extend(message);
        let mut trailers = http::HeaderMap::new();
        trailers.insert("grpc-status", "0".parse().unwrap());
        let frames = [Ok(Frame::data(bytes.into())), Ok(Frame::trailers(trailers))];
        let body = StreamBody::new(futures_util::stream::iter(frames)).boxed();
        Ok(response.body(body).unwrap())
    }

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let service = hyper::service::service_fn(answer);
            let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            tokio::spawn(server.serve_connection(TokioIo::new(stream), service));
        }
    });
    port
}

#[tokio::test]
async fn grpc_probes_depend_on_the_reported_status() {
    let port = serve_grpc().await;
    let check = |service: &str| json!({"grpc": {"port": port, "service": service}});
    assert_eq!(run_probe(port, check("")).await, Ok(()));
    let bad = failed("service unhealthy (responded with \"NOT_SERVING\")");
    assert_eq!(run_probe(port, check("bad")).await, bad);
    let other = failed("error: health rpc probe failed: rpc error: code = NotFound desc = who");
    assert_eq!(run_probe(port, check("other")).await, other);
}

#[tokio::test]
async fn http_hooks_succeed_with_any_response() {
    let (port, mut requests) = serve().await;
    let pod = PodId {
        namespace: "ns".to_owned(),
        name: "pod".to_owned(),
        uid: "u1".to_owned(),
    };
    let container = container(port);
    let target = target(&pod, &container);
    let run = async |handler: Value| hook::run(&target, &handler).await;
    assert_eq!(run(json!({"exec": {"command": ["true"]}})).await, Ok(()));
    let busy = json!({"httpGet": {"path": "/busy", "port": "web"}});
    assert_eq!(run(busy).await, Ok(()));
    let request = requests.recv().await.unwrap();
    assert!(request.contains("kube-lifecycle/1.36"), "{request}");
    assert_eq!(
        run(json!({"exec": {"command": ["false"]}}))
            .await
            .unwrap_err()
            .to_string(),
        "Exec lifecycle hook ([false]) for Container \"app\" in Pod \"pod_ns(u1)\" failed - error: \
         command 'false' exited with 3: no such file, message: \"no such file\""
    );
    let closed = closed_port().await;
    let error = run(json!({"httpGet": {"path": "bye", "port": closed}})).await;
    assert_eq!(
        error.unwrap_err().to_string(),
        format!(
            "HTTP lifecycle hook (bye) for Container \"app\" in Pod \"pod_ns(u1)\" failed - error: \
             Get \"http://127.0.0.1:{closed}/bye\": dial tcp 127.0.0.1:{closed}: connect: connection refused"
        )
    );
}

#[tokio::test(start_paused = true)]
async fn a_hook_may_sleep() {
    let (pod, container) = (PodId::default(), container(1));
    let started = tokio::time::Instant::now();
    let slept = hook::run(&target(&pod, &container), &json!({"sleep": {"seconds": 7}})).await;
    assert_eq!((slept, started.elapsed()), (Ok(()), Duration::from_secs(7)));
}
