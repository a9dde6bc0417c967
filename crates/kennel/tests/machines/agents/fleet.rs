//! A server and a few machines that have joined it with a token, as the guide says.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use kennel_testkit::machine::{Containerd, Image, Network};
use kennel_testkit::{Agent, AgentPlan, Deadline, Kennel, Kubectl, Version, eventually, fetch};
use serde_json::Value;

const KENNEL: &str = env!("CARGO_BIN_EXE_kennel");
/// For everything that a test waits for.
pub(crate) const TIMEOUT: u64 = 90;

/// Disks of machines that build are full, and that is not what most tests are about.
const CALM: &str = "--eviction-hard=memory.available<1Mi";

/// What runs the pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    Containerd,
    Process,
}

/// A machine and its agent.
pub(crate) struct Machine {
    pub(crate) agent: Agent,
    engine: Home,
}

enum Home {
    Containerd(Containerd),
    Bare(Network),
}

/// See the [module](self).
pub(crate) struct Fleet {
    pub(crate) machines: Vec<Machine>,
    pub(crate) kubectl: Kubectl,
    pub(crate) server: Kennel,
}

impl Machine {
    pub(crate) fn network(&self) -> &Network {
        match &self.engine {
            Home::Containerd(containerd) => containerd.network(),
            Home::Bare(network) => network,
        }
    }

    pub(crate) fn containerd(&self) -> &Containerd {
        match &self.engine {
            Home::Containerd(containerd) => containerd,
            Home::Bare(_) => panic!("this machine has no container engine"),
        }
    }

    pub(crate) fn address(&self) -> Ipv4Addr {
        self.network().address()
    }

    pub(crate) fn node(&self) -> &str {
        self.agent.node()
    }

    /// Starts the agent again after a kill or a stop.
    pub(crate) fn start_again(&mut self) {
        let network = match &self.engine {
            Home::Containerd(containerd) => containerd.network(),
            Home::Bare(network) => network,
        };
        self.agent.start_again(Some(network));
    }

    /// What answers to a GET on a port of this machine.
    pub(crate) fn get(&self, port: u16, path: &str) -> std::io::Result<String> {
        fetch(SocketAddr::from((self.address(), port)), path)
    }
}

impl Fleet {
    /// So many machines whose nodes are ready. Images are given to each that can have them.
    pub(crate) fn new(engine: Engine, count: usize, images: &[Image]) -> Self {
        Self::with(engine, count, images, &[])
    }

    /// The same, with agents that are told more.
    pub(crate) fn with(engine: Engine, count: usize, images: &[Image], told: &[&str]) -> Self {
        Self::by(Path::new(KENNEL), engine, count, images, told)
    }

    /// The same, with agents that this program starts.
    pub(crate) fn by(
        program: &Path,
        engine: Engine,
        count: usize,
        images: &[Image],
        told: &[&str],
    ) -> Self {
        let homes: Vec<Home> = (0..count).map(|_| home(engine, images)).collect();
        let gateways: Vec<String> = homes
            .iter()
            .map(|home| home.network().gateway().to_string())
            .collect();
        let mut arguments = vec!["up", "--nodes", "0"];
        for gateway in &gateways {
            arguments.extend(["--tls-san", gateway]);
        }
        let server = Kennel::start_at(KENNEL, &arguments, "0.0.0.0:0");
        let port = server.address().port();
        let token = server.join_flags();
        let start = |(number, engine): (usize, Home)| {
            let gateway = engine.network().gateway();
            let mut arguments = vec!["--server".to_owned(), format!("https://{gateway}:{port}")];
            arguments.extend(token.clone());
            arguments.extend(engine.flags());
            arguments.extend(told.iter().map(ToString::to_string));
            if !told.iter().any(|flag| flag.starts_with("--eviction-hard")) {
                arguments.push(CALM.to_owned());
            }
            let plan = AgentPlan {
                binary: program.into(),
                node: format!("machine-{}", number + 1),
                arguments,
            };
            let agent = Agent::start(plan, Some(engine.network()));
            Machine { agent, engine }
        };
        let machines = homes.into_iter().enumerate().map(start).collect();
        let kubectl = Kubectl::new(Version::V1_32, &server.kubeconfig());
        let fleet = Self {
            machines,
            kubectl,
            server,
        };
        fleet.wait_for_nodes();
        fleet
    }

    fn wait_for_nodes(&self) {
        for machine in &self.machines {
            eventually(Deadline::seconds(TIMEOUT), || {
                let node = self.get(&["node", machine.node()]);
                let node = node.map_err(|error| format!("{error}\n{}", machine.agent.log()))?;
                condition(&node, "Ready")
                    .ok_or_else(|| format!("{node:#}\n{}", machine.agent.log()))
            });
        }
    }

    /// What kubectl gets, as JSON.
    pub(crate) fn get(&self, what: &[&str]) -> Result<Value, String> {
        self.kubectl.get(what)
    }

    pub(crate) fn apply(&self, manifest: &str) {
        self.kubectl
            .run_with_input(&["apply", "-f", "-"], manifest)
            .ok();
    }

    /// Waits until the pod fulfils the condition, and returns it.
    pub(crate) fn pod(&self, name: &str, is: impl Fn(&Value) -> bool) -> Value {
        eventually(Deadline::seconds(TIMEOUT), || {
            let pod = self.get(&["pod", name])?;
            if is(&pod) {
                return Ok(pod);
            }
            let logs: Vec<String> = self.machines.iter().map(|m| m.agent.log()).collect();
            Err(format!("{pod:#}\n{}", logs.join("\n")))
        })
    }
}

/// Does a condition hold?
pub(crate) fn condition(object: &Value, kind: &str) -> Option<()> {
    let mut all = object["status"]["conditions"].as_array()?.iter();
    let found = all.find(|condition| condition["type"] == kind)?;
    (found["status"] == "True").then_some(())
}

pub(crate) fn is_ready(pod: &Value) -> bool {
    condition(pod, "Ready").is_some()
}

fn events(fleet: &Fleet, object: &str) -> String {
    let only = format!("involvedObject.name={object}");
    let columns =
        "custom-columns=TYPE:.type,REASON:.reason,ABOUT:.involvedObject.fieldPath,MESSAGE:.message";
    let get = [
        "get",
        "events",
        "--no-headers",
        "--field-selector",
        &only,
        "-o",
        columns,
    ];
    fleet.kubectl.run(&get).stdout
}

/// Waits for an event about an object that says so.
pub(crate) fn has_event(fleet: &Fleet, object: &str, words: &str) {
    eventually(Deadline::seconds(TIMEOUT), || {
        let events = events(fleet, object);
        let found = events.contains(words);
        found
            .then_some(())
            .ok_or(format!("no {words:?} in\n{events}"))
    });
}

fn home(engine: Engine, images: &[Image]) -> Home {
    match engine {
        Engine::Process => Home::Bare(Network::new()),
        Engine::Containerd => {
            let containerd = Containerd::start();
            for image in images {
                containerd.import(image);
            }
            Home::Containerd(containerd)
        }
    }
}

impl Home {
    fn network(&self) -> &Network {
        match self {
            Self::Containerd(containerd) => containerd.network(),
            Self::Bare(network) => network,
        }
    }

    fn flags(&self) -> Vec<String> {
        match self {
            Self::Bare(_) => vec!["--runtime=process".to_owned()],
            Self::Containerd(containerd) => vec![
                "--runtime=cri".to_owned(),
                format!("--cri-socket={}", containerd.socket().display()),
            ],
        }
    }
}

/// How many processes of the machine have this variable (`NAME=value`) in their environment.
pub(super) fn processes_with(variable: &str) -> usize {
    let all = fs::read_dir("/proc").unwrap().map(Result::unwrap);
    // Some end meanwhile.
    let environments = all.filter_map(|process| fs::read(process.path().join("environ")).ok());
    let has = |environment: &Vec<u8>| {
        let mut variables = environment.split(|byte| *byte == 0);
        variables.any(|one| one == variable.as_bytes())
    };
    environments.filter(has).count()
}
