//! Traffic of a pod that goes on while the test does other things: one connection that stays, and new ones all the time.

use std::net::Ipv4Addr;

use kennel_testkit::{Deadline, Kubectl, Version, eventually};

use super::fixture::{Cluster, PORT, TIMEOUT, url};

/// Where the pod at the other end listens.
const ECHO_PORT: u16 = 9000;
/// What traffic through a service takes.
pub(super) const PORTS: [u16; 2] = [PORT, ECHO_PORT];

/// Asks all the time, in the background of a pod: agents that are killed end sessions of `kubectl exec`. Each request that ended, and
/// each that failed, is in files. It pauses, so that what is tested gets the processors.
const REQUESTS: &str = r"
mkdir -p DIR && cd DIR && touch failed asked
exec </dev/null >/dev/null 2>&1
(while [ ! -e stop ]; do timeout 5 wget -q -O /dev/null URL || date >>failed; echo >>asked; sleep 0.02; done) &
";
/// Sends numbered lines through one connection, and keeps what comes back in a file.
const CONNECTION: &str = r"
mkdir -p DIR && cd DIR && touch echoed
exec </dev/null >/dev/null 2>&1
(i=0; while [ ! -e stop ]; do i=$((i+1)); echo $i; sleep 0.1; done; sleep 1) | nc ADDRESS PORT >echoed &
";
/// The other end: sends back what it gets.
const ECHO: &str = "exec </dev/null >/dev/null 2>&1; nc -l -p PORT -e cat &";

/// New connections from a pod, one after the other.
pub(super) struct Requests {
    kubectl: Kubectl,
    from: String,
    /// The directory of the files.
    dir: String,
}

impl Requests {
    /// Starts them. `name` tells them from others of the pod.
    pub(super) fn start(cluster: &Cluster, from: &str, name: &str, address: Ipv4Addr) -> Self {
        let requests = Self {
            kubectl: Kubectl::new(Version::V1_32, &cluster.server.kubeconfig()),
            from: from.to_owned(),
            dir: format!("/{name}"),
        };
        requests.begin(&REQUESTS.replace("URL", &url(address)));
        requests.until_goes_on();
        requests
    }

    fn begin(&self, script: &str) {
        let script = script.replace("DIR", &self.dir);
        let command = ["exec", &self.from, "--", "sh", "-c", &script];
        self.kubectl.run(&command).ok();
    }

    /// Waits until requests that began later have ended.
    pub(super) fn until_goes_on(&self) {
        let asked = || self.count("asked");
        let before = eventually(Deadline::seconds(TIMEOUT), asked);
        eventually(Deadline::seconds(TIMEOUT), || {
            let now = asked()?;
            // The first one may have begun before.
            (now > before + 1)
                .then_some(())
                .ok_or_else(|| format!("{before} then {now}: {:?}", self.run("cat failed")))
        });
    }

    /// Ends them. None may have failed.
    pub(super) fn end(self) {
        self.until_goes_on();
        self.stop();
    }

    fn stop(&self) {
        self.until_run("touch stop");
        let failed = self.until_run("cat failed");
        assert_eq!(failed, "", "no request failed");
    }

    /// The lines of a file.
    fn count(&self, file: &str) -> Result<usize, String> {
        let counted = self.run(&format!("wc -l <{file}"))?;
        counted.trim().parse().map_err(|_| counted)
    }

    fn until_run(&self, script: &str) -> String {
        eventually(Deadline::seconds(TIMEOUT), || self.run(script))
    }

    fn run(&self, script: &str) -> Result<String, String> {
        let script = format!("cd {} && ({script})", self.dir);
        let command = ["exec", &self.from, "--", "sh", "-c", &script];
        let answer = self.kubectl.run(&command);
        if answer.code == 0 {
            Ok(answer.stdout)
        } else {
            Err(answer.stderr)
        }
    }
}

/// See the [module](self).
pub(super) struct Traffic {
    requests: Requests,
}

impl Traffic {
    /// Starts it between two pods, of which the second is reached by this address.
    pub(super) fn start(cluster: &Cluster, from: &str, to: &str, address: Ipv4Addr) -> Self {
        let requests = Requests::start(cluster, from, to, address);
        let kubectl = &requests.kubectl;
        let echo = ECHO.replace("PORT", &ECHO_PORT.to_string());
        kubectl.run(&["exec", to, "--", "sh", "-c", &echo]).ok();
        let listens = format!("netstat -ltn | grep ':{ECHO_PORT} '");
        eventually(Deadline::seconds(TIMEOUT), || {
            let found = kubectl.run(&["exec", to, "--", "sh", "-c", &listens]);
            (found.code == 0).then_some(()).ok_or(found.stderr)
        });
        let connection = CONNECTION.replace("ADDRESS", &address.to_string());
        requests.begin(&connection.replace("PORT", &ECHO_PORT.to_string()));
        let traffic = Self { requests };
        traffic.until_goes_on();
        traffic
    }

    /// Waits until more has come back through the connection that stays, and another request was answered.
    pub(super) fn until_goes_on(&self) {
        let echoed = || self.requests.count("echoed");
        let before = eventually(Deadline::seconds(TIMEOUT), echoed);
        eventually(Deadline::seconds(TIMEOUT), || {
            let now = echoed()?;
            (now > before)
                .then_some(())
                .ok_or(format!("{before} then {now}"))
        });
        self.requests.until_goes_on();
    }

    /// Ends it. No request may have failed, and of the connection nothing may be lost.
    pub(super) fn end(self) {
        self.until_goes_on();
        self.requests.stop();
        let echoed = self.requests.until_run("cat echoed");
        let lines: Vec<&str> = echoed.lines().collect();
        let expected: Vec<String> = (1..=lines.len()).map(|number| number.to_string()).collect();
        assert_eq!(lines, expected, "the connection lost nothing");
    }
}
