//! A containerd of a test's own: its files, its socket, its network.

use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::TempDir;

use super::reaper::Reaper;
use super::{Image, Network, Registry, run};
use crate::{Deadline, eventually};

/// From start to an answer.
const START_SECONDS: u64 = 30;
/// What pods' sandboxes are made of.
const PAUSE: &str = "kennel.test/pause:1";
/// Debian's place for CNI plugins.
const CNI_PLUGINS: &str = "/usr/lib/cni";
/// Everybody else's place for CNI plugins, and for what says which of them to use.
const USUAL_CNI: (&str, &str) = ("/opt/cni/bin", "/etc/cni/net.d");

/// How a containerd is to be.
#[derive(Debug)]
pub struct Builder {
    pod_network: bool,
    usual_cni: bool,
    own_etc: bool,
    network: Option<Network>,
}

/// See the [module](self). Dropping it ends all that runs in it.
#[derive(Debug)]
pub struct Containerd {
    directory: PathBuf,
    process: Mutex<Option<Child>>,
    // The order is that of going: what runs, then its network.
    _reaper: Reaper,
    network: Network,
}

impl Drop for Containerd {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Builder {
    /// Pods get no network of their own: there is no CNI configuration.
    #[must_use]
    pub fn without_pod_network(mut self) -> Self {
        self.pod_network = false;
        self
    }

    /// Pods get the network that somebody sets up in the usual places, `/etc/cni/net.d` and `/opt/cni/bin`: only
    /// in a network with a disk of its own. The plugins that everybody has are there already.
    #[must_use]
    pub fn with_usual_cni(mut self) -> Self {
        (self.pod_network, self.usual_cni) = (false, true);
        self
    }

    /// Pods get the network that somebody sets up in `/etc/cni/net.d`, with the plugins of Debian's package: only on a
    /// machine with an `/etc` of its own.
    #[must_use]
    pub(super) fn with_own_etc(mut self) -> Self {
        (self.pod_network, self.own_etc) = (false, true);
        self
    }

    /// Runs it in this network, not in a new one.
    #[must_use]
    pub fn in_network(mut self, network: Network) -> Self {
        self.network = Some(network);
        self
    }

    /// Starts it, and waits until it answers.
    pub fn start(self) -> Containerd {
        let network = self.network.unwrap_or_default();
        let directory = TempDir::with_prefix("kennel-containerd-");
        let directory = directory.expect("a temporary directory can be made").keep();
        let containerd = Containerd {
            process: Mutex::new(None),
            _reaper: Reaper::of_containerd(&directory),
            directory,
            network,
        };
        let own = containerd.directory.join("cni").display().to_string();
        if self.usual_cni {
            containerd.give_usual_plugins();
            containerd.write_configuration(USUAL_CNI.0, USUAL_CNI.1);
        } else if self.own_etc {
            containerd.write_configuration(CNI_PLUGINS, USUAL_CNI.1);
        } else {
            containerd.write_configuration(CNI_PLUGINS, &own);
        }
        if self.pod_network {
            containerd.add_pod_network();
        }
        containerd.start_again();
        containerd.import(&Image::new(PAUSE));
        containerd
    }
}

impl Containerd {
    /// Starts one in a new network, where pods get addresses and host ports.
    pub fn start() -> Self {
        Self::builder().start()
    }

    /// For one that differs.
    pub fn builder() -> Builder {
        Builder {
            pod_network: true,
            usual_cni: false,
            own_etc: false,
            network: None,
        }
    }

    /// Its socket.
    pub fn socket(&self) -> PathBuf {
        self.directory.join("containerd.sock")
    }

    /// Its own files, and room for those of a test: they go with it.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The network it runs in: that of pods with `hostNetwork`, and of host ports.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The address of [`Self::network`].
    pub fn address(&self) -> Ipv4Addr {
        self.network.address()
    }

    /// Makes an image and gives it to containerd.
    pub fn import(&self, image: &Image) {
        let directory = TempDir::new().expect("a temporary directory can be made");
        let file = image.pack(&directory);
        run(self.ctr().args(["images", "import"]).arg(file));
        // Its CRI side hears of the image a moment later, and says so in a label.
        eventually(Deadline::seconds(START_SECONDS), || {
            let filter = format!("name=={}", image.name());
            let listed = run(self.ctr().args(["images", "list", &filter]));
            let managed = listed.contains("io.cri-containerd.image=managed");
            managed.then_some(()).ok_or(listed)
        });
    }

    /// Lets it pull from a registry without TLS.
    pub fn trust(&self, registry: &Registry) {
        let name = registry.name();
        let place = self.directory.join("registries").join(&name);
        fs::create_dir_all(&place).expect("it can be made");
        let text = format!("[host.\"http://{name}\"]\ncapabilities = [\"pull\", \"resolve\"]\n");
        fs::write(place.join("hosts.toml"), text).expect("it can be written");
    }

    /// Removes an image without telling the agent.
    pub fn remove_image(&self, name: &str) {
        run(self.ctr().args(["images", "remove", "--sync", name]));
    }

    /// `ctr`, for containers of the CRI.
    pub fn ctr(&self) -> Command {
        let mut command = Command::new("ctr");
        command.arg("--address").arg(self.socket());
        command.args(["--namespace", "k8s.io"]);
        command
    }

    /// What it has logged, in all its lives.
    pub fn log(&self) -> String {
        fs::read_to_string(self.directory.join("containerd.log")).unwrap_or_default()
    }

    /// Kills it. What it runs goes on.
    pub fn kill(&self) {
        if let Some(mut child) = self.process().take() {
            // It may have exited already.
            let _ended = child.kill();
            let _reaped = child.wait();
        }
    }

    /// Starts it after [`Self::kill`], and waits until it answers.
    pub fn start_again(&self) {
        let path = self.directory.join("containerd.log");
        let log = File::options().create(true).append(true).open(path);
        let log = log.expect("the log can be opened");
        let child = self
            .network
            .command("containerd")
            .arg("--config")
            .arg(self.directory.join("config.toml"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("nsenter can be run");
        // nsenter becomes containerd, so that this is its pid.
        let pid = child.id().to_string();
        fs::write(self.directory.join("containerd.pid"), pid).expect("it can be written");
        *self.process() = Some(child);
        eventually(Deadline::seconds(START_SECONDS), || {
            let answer = self.ctr().arg("version").stdin(Stdio::null()).output();
            let answers = answer.is_ok_and(|answer| answer.status.success());
            answers.then_some(()).ok_or_else(|| self.log())
        });
    }

    fn process(&self) -> MutexGuard<'_, Option<Child>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As the Debian package of CNI plugins does.
    fn give_usual_plugins(&self) {
        assert!(
            self.network.has_disk(),
            "the real machine's plugins are not ours to replace"
        );
        let script = r#"rm -rf "$2" "$3" && mkdir -p "$2" "$3" && cp "$1"/* "$2""#;
        run(self
            .network
            .command("sh")
            .args(["-ec", script, "sh", CNI_PLUGINS])
            .args([USUAL_CNI.0, USUAL_CNI.1]));
    }

    fn write_configuration(&self, plugins: &str, networks: &str) {
        let directory = self.directory.display();
        let address = self.address();
        // Scores below ours need a capability that tests in containers have not.
        let text = format!(
            r#"version = 2
root = "{directory}/root"
state = "{directory}/state"
[grpc]
address = "{directory}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
restrict_oom_score_adj = true
sandbox_image = "{PAUSE}"
netns_mounts_under_state_dir = true
stream_server_address = "{address}"
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{plugins}"
conf_dir = "{networks}"
[plugins."io.containerd.grpc.v1.cri".registry]
config_path = "{directory}/registries"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
Root = "{directory}/runc"
"#
        );
        fs::create_dir_all(self.directory.join("cni")).expect("it can be made");
        fs::write(self.directory.join("config.toml"), text).expect("it can be written");
    }

    /// Gives pods a network of their own, as an operator would while containerd runs: a bridge within
    /// [`Self::network`], and host ports.
    pub fn add_pod_network(&self) {
        let name = self.directory.file_name().expect("it has a name");
        let ipam = serde_json::json!({
            "type": "host-local",
            "dataDir": self.directory.join("ipam"),
            "ranges": [[{"subnet": "10.88.0.0/16"}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        });
        let list = serde_json::json!({
            "cniVersion": "0.4.0",
            "name": name.to_string_lossy(),
            "plugins": [
                {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": true, "hairpinMode": true, "ipam": ipam},
                {"type": "portmap", "capabilities": {"portMappings": true}},
            ],
        });
        let path = self.directory.join("cni").join("10-pods.conflist");
        // Written in place: containerd passes over files that are moved there.
        fs::write(path, list.to_string()).expect("it can be written");
    }
}
