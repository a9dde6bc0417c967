//! Traffic of a pod that goes on while the test does other things: one connection that stays, and new ones all the time.

use std::net::Ipv4Addr;

use kennel_testkit::{Deadline, Kubectl, Version, eventually};

use super::fixture::{Cluster, PORT, TIMEOUT, url};

/// Where the pod at the other end listens.
const ECHO_PORT: u16 = 9000;
/// What traffic through a service takes.
pub(super) const PORTS: [u16; 2] = [PORT, ECHO_PORT];

/// The pod's end, in its background: agents that are killed end sessions of `kubectl exec`. What comes back of numbered lines, and
/// each request that failed, is in files.
const CLIENT: &str = r"
mkdir /TO && cd /TO && touch echoed failed asked
exec </dev/null >/dev/null 2>&1
(i=0; while [ ! -e stop ]; do i=$((i+1)); echo $i; sleep 0.1; done; sleep 1) | nc ADDRESS PORT >echoed &
(while [ ! -e stop ]; do timeout 5 wget -q -O /dev/null URL || date >>failed; echo >>asked; done) &
";
/// The other end: sends back what it gets.
const ECHO: &str = "exec </dev/null >/dev/null 2>&1; nc -l -p PORT -e cat &";

/// See the [module](self).
pub(super) struct Traffic {
    kubectl: Kubectl,
    from: String,
    /// The directory of the files.
    dir: String,
}

impl Traffic {
    /// Starts it between two pods, of which the second is reached by this address.
    pub(super) fn start(cluster: &Cluster, from: &str, to: &str, address: Ipv4Addr) -> Self {
        let kubectl = Kubectl::new(Version::V1_32, &cluster.server.kubeconfig());
        let echo = ECHO.replace("PORT", &ECHO_PORT.to_string());
        kubectl.run(&["exec", to, "--", "sh", "-c", &echo]).ok();
        let listens = format!("netstat -ltn | grep ':{ECHO_PORT} '");
        eventually(Deadline::seconds(TIMEOUT), || {
            let found = kubectl.run(&["exec", to, "--", "sh", "-c", &listens]);
            (found.code == 0).then_some(()).ok_or(found.stderr)
        });
        let client = CLIENT
            .replace("TO", to)
            .replace("ADDRESS", &address.to_string())
            .replace("PORT", &ECHO_PORT.to_string())
            .replace("URL", &url(address));
        kubectl.run(&["exec", from, "--", "sh", "-c", &client]).ok();
        let (from, dir) = (from.to_owned(), format!("/{to}"));
        let traffic = Self { kubectl, from, dir };
        traffic.until_goes_on();
        traffic
    }

    /// Waits until more has come back through the connection that stays, and another request was answered.
    pub(super) fn until_goes_on(&self) {
        let before = self.counts().unwrap_or_default();
        eventually(Deadline::seconds(TIMEOUT), || {
            let now = self.counts()?;
            let goes_on = now.0 > before.0 && now.1 > before.1;
            goes_on
                .then_some(())
                .ok_or_else(|| format!("{before:?} then {now:?}: {:?}", self.run("cat failed")))
        });
    }

    /// Ends it. No request may have failed, and of the connection nothing may be lost.
    pub(super) fn end(self) {
        self.until_goes_on();
        eventually(Deadline::seconds(TIMEOUT), || self.run("touch stop"));
        let failed = self.until_run("cat failed");
        assert_eq!(failed, "", "no request failed");
        let echoed = self.until_run("cat echoed");
        let lines: Vec<&str> = echoed.lines().collect();
        let expected: Vec<String> = (1..=lines.len()).map(|number| number.to_string()).collect();
        assert_eq!(lines, expected, "the connection lost nothing");
    }

    /// Lines that came back, and requests that have ended.
    fn counts(&self) -> Result<(usize, usize), String> {
        let counts = self.run("cat echoed | wc -l; cat asked | wc -l")?;
        let mut counts = counts.lines().map(|line| line.trim().parse().unwrap_or(0));
        Ok((
            counts.next().unwrap_or_default(),
            counts.next().unwrap_or_default(),
        ))
    }

    fn until_run(&self, script: &str) -> String {
        eventually(Deadline::seconds(TIMEOUT), || self.run(script))
    }

    fn run(&self, script: &str) -> Result<String, String> {
        let script = format!("cd {} && ({script})", self.dir);
        let answer = self
            .kubectl
            .run(&["exec", &self.from, "--", "sh", "-c", &script]);
        if answer.code == 0 {
            Ok(answer.stdout)
        } else {
            Err(answer.stderr)
        }
    }
}
