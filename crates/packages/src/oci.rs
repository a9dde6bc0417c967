//! An image of one layer as a file that container engines load: an OCI layout, with the index that `docker load`
//! reads beside it. Nothing here knows what is in it.

use std::fmt::Write as _;
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::tar::Tree;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// An image to be.
#[derive(Clone, Debug)]
pub struct Image {
    /// What it is called, tag included.
    pub name: String,
    /// Its files.
    pub files: Tree,
    /// What runs, as whom, and so on: `config` of the OCI's image configuration.
    pub config: Value,
    /// Whether to make it small, which takes longer.
    pub compressed: bool,
    /// The time of everything, in seconds since 1970.
    pub time: u64,
}

/// Something that is named by its own digest.
#[derive(Clone, Debug)]
pub struct Blob {
    /// Its media type.
    pub kind: &'static str,
    /// `sha256:…`.
    pub digest: String,
    /// What it is.
    pub content: Vec<u8>,
}

/// What registries hold of an image.
#[derive(Clone, Debug)]
pub struct Parts {
    /// What runs, and how.
    pub config: Blob,
    /// The files.
    pub layer: Blob,
    /// Names the other two.
    pub manifest: Blob,
}

impl Blob {
    fn new(kind: &'static str, content: Vec<u8>) -> Self {
        let digest = digest(&content);
        Self {
            kind,
            digest,
            content,
        }
    }

    fn json(kind: &'static str, value: &Value) -> Self {
        Self::new(kind, value.to_string().into_bytes())
    }

    fn descriptor(&self) -> Value {
        json!({
            "mediaType": self.kind,
            "digest": self.digest,
            "size": self.content.len(),
        })
    }

    fn path(&self) -> String {
        format!("blobs/{}", self.digest.replace(':', "/"))
    }
}

impl Image {
    /// Writes the whole image as a tar, and returns the digest of its manifest.
    pub fn write(&self, to: &mut impl Write) -> io::Result<String> {
        let Parts {
            config,
            layer,
            manifest,
        } = self.parts()?;
        let mut files = Tree::default();
        let mut say = |path: &str, value: &Value| files.file(path, value.to_string(), 0o644);
        say("oci-layout", &json!({"imageLayoutVersion": "1.0.0"}));
        say("index.json", &self.index(&manifest));
        let docker = json!([{
            "Config": config.path(), "RepoTags": [self.name], "Layers": [layer.path()],
        }]);
        say("manifest.json", &docker);
        let digest = manifest.digest.clone();
        for blob in [config, layer, manifest] {
            files.file(&blob.path(), blob.content, 0o644);
        }
        files.write(to, self.time)?;
        Ok(digest)
    }

    /// What a registry would hold of it.
    pub fn parts(&self) -> io::Result<Parts> {
        let mut layer = Vec::new();
        self.files.write(&mut layer, self.time)?;
        let config = Blob::json(
            "application/vnd.oci.image.config.v1+json",
            &self.configuration(&digest(&layer)),
        );
        let layer = self.layer(layer)?;
        let manifest = Blob::json(
            MANIFEST,
            &json!({
                "schemaVersion": 2,
                "mediaType": MANIFEST,
                "config": config.descriptor(),
                "layers": [layer.descriptor()],
            }),
        );
        Ok(Parts {
            config,
            layer,
            manifest,
        })
    }

    fn layer(&self, layer: Vec<u8>) -> io::Result<Blob> {
        if !self.compressed {
            return Ok(Blob::new("application/vnd.oci.image.layer.v1.tar", layer));
        }
        let mut smaller = GzEncoder::new(Vec::new(), Compression::best());
        smaller.write_all(&layer)?;
        Ok(Blob::new(
            "application/vnd.oci.image.layer.v1.tar+gzip",
            smaller.finish()?,
        ))
    }

    fn configuration(&self, layer: &str) -> Value {
        json!({
            "created": time(self.time),
            "architecture": architecture(),
            "os": "linux",
            "config": self.config,
            "rootfs": {"type": "layers", "diff_ids": [layer]},
        })
    }

    fn index(&self, manifest: &Blob) -> Value {
        let mut descriptor = manifest.descriptor();
        descriptor["platform"] = json!({"architecture": architecture(), "os": "linux"});
        let tag = self.name.rsplit_once(':').map_or("latest", |(_, tag)| tag);
        // The second is containerd's own, which does not take the whole name from the first.
        descriptor["annotations"] = json!({
            "org.opencontainers.image.ref.name": tag,
            "io.containerd.image.name": self.name,
        });
        json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": [descriptor],
        })
    }
}

/// A time as the OCI writes it.
pub(crate) fn time(seconds: u64) -> String {
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    let time = jiff::Timestamp::from_second(seconds);
    time.unwrap_or(jiff::Timestamp::UNIX_EPOCH).to_string()
}

/// What bytes are called: `sha256:…`.
pub fn digest(bytes: &[u8]) -> String {
    let mut text = "sha256:".to_owned();
    for byte in Sha256::digest(bytes) {
        write!(text, "{byte:02x}").expect("text can be written to");
    }
    text
}

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(content: &str) -> Image {
        let mut files = Tree::default();
        files.file("hello", content, 0o644);
        Image {
            name: "kennel.test/hello:1".to_owned(),
            files,
            config: json!({"Cmd": ["/hello"]}),
            compressed: true,
            time: 0,
        }
    }

    #[test]
    fn the_same_files_are_the_same_image() {
        let write = |content| {
            let mut bytes = Vec::new();
            let digest = image(content).write(&mut bytes).unwrap();
            (digest, bytes)
        };
        assert_eq!(write("hello"), write("hello"));
        assert_ne!(write("hello").0, write("hallo").0);
    }

    #[test]
    fn times_are_written_as_the_oci_has_them() {
        assert_eq!(time(0), "1970-01-01T00:00:00Z");
        assert_eq!(time(1_700_000_000), "2023-11-14T22:13:20Z");
    }
}
