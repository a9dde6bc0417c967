//! The configuration of a container, and its termination message.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use kennel_core::pod::tracker::StartFailure;
use serde_json::Value;

use super::cluster_services::Services;
use super::env::{Sources, Variables};
use super::files::{dns, hostname, hosts, termination_message};
use super::volumes::{MountError, Mounts, create_dir, sort_mounts};
use super::write_lock::WriteLock;
use super::{Shared, limits, sandbox, security};
use crate::agent::{ApiAddress, Paths, machine};
use crate::json::{flag, text, texts};
use crate::pods::{Pod, start_failure};
use crate::runtime::{ContainerConfig, Image, Mount};

/// The run of a container to configure.
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
    /// Also writes the container's files.
    pub(super) async fn container_config(
        &self,
        pod: &Pod,
        run: &Run<'_>,
        lock: &WriteLock,
    ) -> Result<ContainerConfig, StartFailure> {
        let Run {
            name,
            attempt,
            image,
            addresses,
        } = *run;
        let missing =
            || start_failure::container_config(format!("the pod has no container \"{name}\""));
        let spec = pod.raw_container(name).ok_or_else(missing)?;
        let services = self.services.of(pod).await;
        let services = services.map_err(start_failure::container_config)?;
        let api = services.api.as_ref();
        let variables = self.variables(pod, spec, (addresses, api)).await?;
        let expand = |key: &str| {
            let words = texts(spec, key).into_iter();
            words.map(|word| variables.expand(&word)).collect()
        };
        let (has_images, profiles) = (self.about.images, self.profiles());
        let security = security::of_container(pod, spec, image, has_images, &profiles);
        let logs = self.settings.paths.pod_logs(&pod.id).join(name);
        sandbox::create_log_dir(&logs).map_err(start_failure::container_config)?;
        let mounts = lock.run(|| self.mounts(pod, spec, (run, &services), &variables));
        let mounts = mounts.await.map_err(start_failure::container_config)?;
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
            limits: limits::of(pod, spec, machine::total_memory()),
            security: security.map_err(start_failure::container_config)?,
            termination_message_path: text(spec, "terminationMessagePath").to_owned(),
            stop_signal: text(&spec["lifecycle"], "stopSignal").to_owned(),
            // Only the worker knows what runs.
            target: String::new(),
        })
    }

    async fn variables(
        &self,
        pod: &Pod,
        container: &Value,
        (addresses, api): (&[IpAddr], Option<&ApiAddress>),
    ) -> Result<Variables, StartFailure> {
        self.objects.register(pod);
        let allocatable = self.allocatable();
        let host = self.settings.addresses.current();
        let sources = Sources {
            pod,
            fields: self.runtime_fields(pod, addresses, &host),
            objects: &self.objects,
            allocatable: &allocatable,
            api,
        };
        let mut variables = sources
            .variables(container)
            .await
            .map_err(start_failure::container_config)?;
        for message in std::mem::take(&mut variables.skipped) {
            self.warn(pod, "InvalidEnvironmentVariableNames", message);
        }
        Ok(variables)
    }

    fn mounts(
        &self,
        pod: &Pod,
        container: &Value,
        (run, services): (&Run<'_>, &Services),
        variables: &Variables,
    ) -> Result<Vec<Mount>, MountError> {
        let own = Mounts {
            pod,
            paths: &self.settings.paths,
            variables,
        };
        let mut mounts = own.of(container)?;
        let files = self.files(pod, container, run, services);
        for (container_path, host_path) in files.map_err(MountError::Files)? {
            // The container's own mounts have precedence.
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
        sort_mounts(&mut mounts);
        Ok(mounts)
    }

    /// Writes the container's own files. Returns their paths in the container and on the machine.
    fn files(
        &self,
        pod: &Pod,
        container: &Value,
        run: &Run<'_>,
        services: &Services,
    ) -> io::Result<Vec<(PathBuf, PathBuf)>> {
        let paths = &self.settings.paths;
        let dir = paths.pod(&pod.id.uid);
        create_dir(&dir)?;
        let mut files = Vec::new();
        if let Some(content) = self.hosts(pod, run.addresses) {
            let path = dir.join("etc-hosts");
            rewrite(&path, &content)?;
            files.push((HOSTS.into(), path));
        }
        // Runtimes with images write it themselves.
        if !self.about.images
            && let Some(content) = self.dns(pod, services)
        {
            let path = dir.join("resolv.conf");
            rewrite(&path, &dns::write(&content))?;
            files.push((RESOLV_CONF.into(), path));
        }
        let message = text(container, "terminationMessagePath");
        if !message.is_empty() {
            let path = paths.termination_message(&pod.id.uid, run.name, run.attempt);
            create_message_file(&path, run.attempt)?;
            files.push((Path::new("/").join(message), path));
        }
        Ok(files)
    }

    /// `/etc/hosts`; none if the pod uses the machine's own, or has no address yet.
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

    pub(super) fn termination_message(
        &self,
        pod: &Pod,
        name: &str,
        attempt: u32,
        failed: bool,
    ) -> String {
        let Some(container) = pod.raw_container(name) else {
            return String::new();
        };
        let paths = &self.settings.paths;
        let file = paths.termination_message(&pod.id.uid, name, attempt);
        let containers = pod.spec.containers.len() + pod.spec.init_containers.len();
        let message = termination_message::from_file(&file, containers);
        let policy = text(container, "terminationMessagePolicy");
        if message.is_empty() && failed && policy == "FallbackToLogsOnError" {
            let log = paths.pod_logs(&pod.id).join(Paths::log(name, attempt));
            return termination_message::from_log(&log);
        }
        message
    }
}

/// Changes a file in place: containers have it mounted.
fn rewrite(path: &Path, content: &str) -> io::Result<()> {
    if fs::read(path).is_ok_and(|now| now == content.as_bytes()) {
        return Ok(());
    }
    fs::write(path, content)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o644))
}

/// Creates the file of a run's termination message, writable by any user, and removes those of old runs.
fn create_message_file(path: &Path, attempt: u32) -> io::Result<()> {
    let dir = path.parent().unwrap_or(path);
    create_dir(dir)?;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let other: Option<u32> = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        if other.is_some_and(|other| other.saturating_add(1) < attempt) {
            fs::remove_file(entry.path())?;
        }
    }
    fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o666))
}
