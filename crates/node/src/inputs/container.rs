//! A container, all worked out; and what it said when it ended.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use kennel_core::pod::tracker::StartFailure;
use serde_json::Value;

use super::env::{Sources, Variables};
use super::files::{dns, hostname, hosts, message};
use super::tree::{flag, text, texts};
use super::turn::Turn;
use super::volumes::{Mounts, in_order};
use super::{Shared, limits, machine, objects, sandbox, security, trouble};
use crate::agent::Paths;
use crate::pods::Pod;
use crate::runtime::{ContainerConfig, Image, Mount};

/// A run of a container that is to be.
pub(super) struct Run<'a> {
    pub(super) name: &'a str,
    pub(super) attempt: u32,
    pub(super) image: &'a Image,
    /// The pod's addresses.
    pub(super) addresses: &'a [IpAddr],
}

const HOSTS: &str = "/etc/hosts";
const RESOLV_CONF: &str = "/etc/resolv.conf";

impl Shared {
    /// The container to make. Its files are written.
    pub(super) async fn container(
        &self,
        pod: &Pod,
        run: &Run<'_>,
        turn: &Turn,
    ) -> Result<ContainerConfig, StartFailure> {
        let Run {
            name,
            attempt,
            image,
            addresses,
        } = *run;
        let missing = || trouble::config(format!("the pod has no container \"{name}\""));
        let spec = pod.raw_container(name).ok_or_else(missing)?;
        let variables = self.variables(pod, spec, addresses).await?;
        let expand = |key: &str| {
            let words = texts(spec, key).into_iter();
            words.map(|word| variables.expand(&word)).collect()
        };
        let (has_images, profiles) = (self.about.images, self.profiles());
        let rights = security::of_container(pod, spec, image, has_images, &profiles);
        let logs = self.settings.paths.pod_logs(&pod.id).join(name);
        sandbox::make_log_dir(&logs).map_err(trouble::config)?;
        let mounts = turn.take_shortly(|| self.mounts(pod, spec, run, &variables));
        let mounts = mounts.await.map_err(trouble::config)?;
        Ok(ContainerConfig {
            name: name.to_owned(),
            attempt,
            image: text(spec, "image").to_owned(),
            image_reference: image.reference.clone(),
            command: expand("command"),
            args: expand("args"),
            working_dir: text(spec, "workingDir").to_owned(),
            mounts,
            env: variables.all.into_iter().collect(),
            devices: Vec::new(),
            log_path: Paths::log(name, attempt),
            stdin: flag(spec, "stdin"),
            stdin_once: flag(spec, "stdinOnce"),
            tty: flag(spec, "tty"),
            limits: limits::of(pod, spec, machine::memory()),
            security: rights.map_err(trouble::config)?,
            termination_message_path: text(spec, "terminationMessagePath").to_owned(),
            stop_signal: text(&spec["lifecycle"], "stopSignal").to_owned(),
        })
    }

    async fn variables(
        &self,
        pod: &Pod,
        container: &Value,
        addresses: &[IpAddr],
    ) -> Result<Variables, StartFailure> {
        self.objects.hold(&pod.id.uid, || objects::of(pod));
        let allocatable = self.allocatable();
        let sources = Sources {
            pod,
            place: self.place(pod, addresses),
            objects: &self.objects,
            allocatable: &allocatable,
            api: self.settings.api.as_ref(),
        };
        let mut variables = sources
            .variables(container)
            .await
            .map_err(trouble::config)?;
        for message in std::mem::take(&mut variables.skipped) {
            self.warn(pod, "InvalidEnvironmentVariableNames", message);
        }
        Ok(variables)
    }

    fn mounts(
        &self,
        pod: &Pod,
        container: &Value,
        run: &Run<'_>,
        variables: &Variables,
    ) -> Result<Vec<Mount>, String> {
        let own = Mounts {
            pod,
            paths: &self.settings.paths,
            variables,
        };
        let mut mounts = own.of(container)?;
        let files = self.files(pod, container, run);
        let failed = |error: io::Error| format!("cannot write files of the pod: {error}");
        for (container_path, host_path) in files.map_err(failed)? {
            // What the container mounts there itself goes first.
            if mounts
                .iter()
                .all(|mount| mount.container_path != container_path)
            {
                mounts.push(Mount {
                    container_path,
                    host_path,
                    ..Mount::default()
                });
            }
        }
        in_order(&mut mounts);
        Ok(mounts)
    }

    /// The small files of a container: where it sees them, and where they are.
    fn files(
        &self,
        pod: &Pod,
        container: &Value,
        run: &Run<'_>,
    ) -> io::Result<Vec<(PathBuf, PathBuf)>> {
        let paths = &self.settings.paths;
        let dir = paths.pod(&pod.id.uid);
        super::volumes::make(&dir)?;
        let mut files = Vec::new();
        if let Some(content) = self.hosts(pod, run.addresses) {
            let path = dir.join("etc-hosts");
            rewrite(&path, &content)?;
            files.push((HOSTS.into(), path));
        }
        // Runtimes with images write this one themselves.
        if !self.about.images
            && let Some(content) = self.dns(pod)
        {
            let path = dir.join("resolv.conf");
            rewrite(&path, &dns::write(&content))?;
            files.push((RESOLV_CONF.into(), path));
        }
        let message = text(container, "terminationMessagePath");
        if !message.is_empty() {
            let path = paths.termination_message(&pod.id.uid, run.name, run.attempt);
            leave_room_for_last_words(&path, run.attempt)?;
            files.push((Path::new("/").join(message), path));
        }
        Ok(files)
    }

    /// `/etc/hosts`; none where the pod sees the machine's own, or has no address yet.
    fn hosts(&self, pod: &Pod, addresses: &[IpAddr]) -> Option<String> {
        let spec = pod.raw_spec();
        if pod.host_network() {
            if !self.about.images && !hosts::has_aliases(spec) {
                return None;
            }
            let machine = fs::read_to_string(HOSTS).unwrap_or_default();
            return Some(hosts::of_machine(spec, &machine));
        }
        let host = hostname::of(pod, &self.settings.cluster_domain);
        (!addresses.is_empty()).then(|| hosts::of_pod(spec, &host, addresses))
    }

    /// What a run said when it ended.
    pub(super) fn last_words(&self, pod: &Pod, name: &str, attempt: u32, failed: bool) -> String {
        let Some(container) = pod.raw_container(name) else {
            return String::new();
        };
        let paths = &self.settings.paths;
        let written = paths.termination_message(&pod.id.uid, name, attempt);
        let containers = pod.spec.containers.len() + pod.spec.init_containers.len();
        let words = message::written(&written, containers);
        let policy = text(container, "terminationMessagePolicy");
        if words.is_empty() && failed && policy == "FallbackToLogsOnError" {
            let log = paths.pod_logs(&pod.id).join(Paths::log(name, attempt));
            return message::logged(&log);
        }
        words
    }
}

/// Changes a file where it is: containers have it mounted.
fn rewrite(path: &Path, content: &str) -> io::Result<()> {
    if fs::read(path).is_ok_and(|now| now == content.as_bytes()) {
        return Ok(());
    }
    fs::write(path, content)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o644))
}

/// Makes the file that a run may write, whoever it runs as, and takes away those of runs long gone.
fn leave_room_for_last_words(path: &Path, attempt: u32) -> io::Result<()> {
    let dir = path.parent().unwrap_or(path);
    super::volumes::make(dir)?;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let of: Option<u32> = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        if of.is_some_and(|of| of.saturating_add(1) < attempt) {
            fs::remove_file(entry.path())?;
        }
    }
    fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o666))
}
