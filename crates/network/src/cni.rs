//! The CNI configuration of the pod network. It is written only where there is none, and one of somebody else is never
//! touched.

use std::io;
use std::path::{Path, PathBuf};

use kennel_core::cidr::Cidr;
use serde_json::{Value, json};

use crate::Error;

/// Our file, and the name of the network in it.
pub const FILE: &str = "10-kennel.conflist";
const NAME: &str = "kennel";
/// Plugins that the configuration needs.
const PLUGINS: [&str; 2] = ["ptp", "host-local"];
/// For host ports.
pub const PORTMAP: &str = "portmap";

/// Where the container runtime looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    pub configurations: PathBuf,
    pub plugins: Vec<PathBuf>,
}

impl Default for Places {
    /// Where most runtimes look.
    fn default() -> Self {
        Self {
            configurations: "/etc/cni/net.d".into(),
            plugins: vec!["/opt/cni/bin".into(), "/usr/lib/cni".into()],
        }
    }
}

/// What differs between nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pods {
    pub range: Cidr,
    pub mtu: u32,
    /// Where the plugin records which pod has which address.
    pub leases: PathBuf,
}

impl Places {
    fn file(&self) -> PathBuf {
        self.configurations.join(FILE)
    }

    /// What we have written, if it is there.
    pub fn own_configuration(&self) -> Option<Value> {
        let path = self.file();
        let text = is_ours(&path).then(|| std::fs::read_to_string(&path).ok())??;
        serde_json::from_str(&text).ok()
    }

    /// The first configuration that is not ours.
    pub fn foreign(&self) -> io::Result<Option<PathBuf>> {
        let entries = match std::fs::read_dir(&self.configurations) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            entries => entries?,
        };
        let paths = entries.flatten().map(|entry| entry.path());
        let mut foreign: Vec<PathBuf> = paths
            .filter(|path| {
                let kind = path.extension().and_then(|kind| kind.to_str());
                kind.is_some_and(|kind| ["conf", "conflist", "json"].contains(&kind))
            })
            .filter(|path| !is_ours(path))
            .collect();
        foreign.sort();
        Ok(foreign.into_iter().next())
    }

    /// The plugins that are missing, of those that the configuration needs.
    pub fn missing_plugins(&self) -> Vec<&'static str> {
        let missing = PLUGINS.into_iter().filter(|name| !self.has_plugin(name));
        missing.collect()
    }

    pub fn has_plugin(&self, name: &str) -> bool {
        self.plugins.iter().any(|dir| dir.join(name).exists())
    }

    /// Whether our configuration is there, be it whole or not.
    pub fn has_own(&self) -> bool {
        is_ours(&self.file())
    }

    /// Whether somebody else's configuration has the name of our file.
    pub fn has_foreign_file(&self) -> bool {
        self.file().exists() && !self.has_own()
    }

    /// Writes the configuration if it differs. Returns whether it did. Never writes over that of somebody else.
    pub fn write(&self, pods: &Pods) -> Result<bool, Error> {
        let text = format!("{:#}\n", self.configuration(pods));
        let path = self.file();
        if std::fs::read_to_string(&path).is_ok_and(|now| now == text) {
            return Ok(false);
        }
        let failed = |error| Error::File {
            what: "write the CNI configuration",
            path: path.clone(),
            error,
        };
        if self.has_foreign_file() {
            let error = io::Error::other("it is somebody else's");
            return Err(failed(error));
        }
        std::fs::create_dir_all(&self.configurations).map_err(failed)?;
        // In place: containerd passes over files that are moved there.
        std::fs::write(&path, text).map_err(failed)?;
        Ok(true)
    }

    /// With `ptp`, a pod's packets meet the rules of the host's network, whoever they are for; on a bridge they do so only if
    /// `br_netfilter` is loaded.
    fn configuration(&self, pods: &Pods) -> Value {
        let ipam = json!({
            "type": "host-local",
            "ranges": [[{"subnet": pods.range.to_string()}]],
            "routes": [{"dst": "0.0.0.0/0"}],
            "dataDir": pods.leases,
        });
        let mut plugins = vec![json!({"type": "ptp", "mtu": pods.mtu, "ipam": ipam})];
        if self.has_plugin(PORTMAP) {
            plugins.push(json!({"type": PORTMAP, "capabilities": {"portMappings": true}}));
        }
        json!({"cniVersion": "0.4.0", "name": NAME, "plugins": plugins})
    }

    /// Removes our configuration, if it is there.
    pub fn remove(&self) -> Result<bool, Error> {
        let path = self.file();
        if !is_ours(&path) {
            return Ok(false);
        }
        match std::fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Error::File {
                what: "delete",
                path,
                error,
            }),
        }
    }
}

/// Whether the file has our name and our network in it, or is what a write of ours left that was interrupted: empty, or no JSON.
/// One that cannot be read is not ours.
fn is_ours(path: &Path) -> bool {
    if path.file_name().and_then(|name| name.to_str()) != Some(FILE) {
        return false;
    }
    let Ok(text) = std::fs::read_to_string(path) else {
        return false;
    };
    let parsed = serde_json::from_str::<Value>(&text);
    parsed.map_or(true, |parsed| parsed["name"] == NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(dir: &Path) -> Places {
        Places {
            configurations: dir.join("net.d"),
            plugins: vec![dir.join("bin")],
        }
    }

    fn pods(mtu: u32) -> Pods {
        Pods {
            range: "10.128.3.0/24".parse().unwrap(),
            mtu,
            leases: "/leases".into(),
        }
    }

    #[test]
    fn n1_2_the_configuration_is_written_once_and_removed() {
        let dir = tempfile::tempdir().unwrap();
        let places = places(dir.path());
        assert!(places.write(&pods(1450)).unwrap());
        assert!(!places.write(&pods(1450)).unwrap());
        assert!(places.write(&pods(1500)).unwrap());
        assert_eq!(places.foreign().unwrap(), None);
        let text = std::fs::read_to_string(places.file()).unwrap();
        let written: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(written["plugins"][0]["mtu"], 1500);
        assert_eq!(
            written["plugins"].as_array().unwrap().len(),
            1,
            "there is no portmap"
        );
        assert!(places.remove().unwrap());
        assert!(!places.remove().unwrap());
    }

    #[test]
    fn n1_2_a_foreign_configuration_is_recognised_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let places = places(dir.path());
        std::fs::create_dir_all(&places.configurations).unwrap();
        std::fs::write(places.configurations.join("README"), "").unwrap();
        assert_eq!(places.foreign().unwrap(), None);
        let flannel = places.configurations.join("10-flannel.conflist");
        std::fs::write(&flannel, "{}").unwrap();
        assert_eq!(places.foreign().unwrap(), Some(flannel));
    }

    #[test]
    fn n1_2_a_foreign_file_with_our_name_is_left_alone_and_our_torn_write_is_not_foreign() {
        let dir = tempfile::tempdir().unwrap();
        let places = places(dir.path());
        std::fs::create_dir_all(&places.configurations).unwrap();
        let file = places.file();
        for foreign in [r#"{"name": "mine"}"#, "{}", "[]"] {
            std::fs::write(&file, foreign).unwrap();
            assert_eq!(places.foreign().unwrap().as_ref(), Some(&file), "{foreign}");
            assert!(places.has_foreign_file() && !places.has_own(), "{foreign}");
            places.write(&pods(1450)).unwrap_err();
            assert!(!places.remove().unwrap());
            assert_eq!(std::fs::read_to_string(&file).unwrap(), foreign);
        }
        for torn in ["", "{\n  \"cniVersion\": \"0.4.0\",\n  \"na"] {
            std::fs::write(&file, torn).unwrap();
            assert_eq!(places.foreign().unwrap(), None, "{torn}");
            assert!(places.has_own() && !places.has_foreign_file(), "{torn}");
            assert_eq!(places.own_configuration(), None);
            assert!(places.write(&pods(1450)).unwrap());
            assert!(places.own_configuration().is_some());
        }
    }

    #[test]
    fn plugins_are_found_in_any_directory() {
        let dir = tempfile::tempdir().unwrap();
        let places = places(dir.path());
        assert_eq!(places.missing_plugins(), ["ptp", "host-local"]);
        std::fs::create_dir_all(dir.path().join("bin")).unwrap();
        for name in ["ptp", "host-local"] {
            std::fs::write(dir.path().join("bin").join(name), "").unwrap();
        }
        assert_eq!(places.missing_plugins(), [""; 0]);
    }
}
