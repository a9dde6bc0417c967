//! Container images of one layer, as a tar with an OCI layout and the `manifest.json` that `docker load` reads.

use std::io::{self, Write};

use data_encoding::HEXLOWER;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::file_tree::FileTree;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

#[derive(Clone, Debug)]
pub struct Image {
    /// Name and tag.
    pub name: String,
    pub files: FileTree,
    /// The field `config` of the OCI image configuration: command, user, environment.
    pub config: Value,
    /// Whether to gzip the layer.
    pub compressed: bool,
    /// Modification and creation time, in seconds since 1970.
    pub time: u64,
}

/// Content that is addressed by its digest.
#[derive(Clone, Debug)]
pub struct Blob {
    pub media_type: &'static str,
    /// `sha256:…`.
    pub digest: String,
    pub content: Vec<u8>,
}

/// The blobs of an image, as registries store them.
#[derive(Clone, Debug)]
pub struct Blobs {
    pub config: Blob,
    pub layer: Blob,
    /// Refers to the other two.
    pub manifest: Blob,
}

impl Blob {
    fn new(media_type: &'static str, content: Vec<u8>) -> Self {
        let digest = digest(&content);
        Self {
            media_type,
            digest,
            content,
        }
    }

    fn json(media_type: &'static str, value: &Value) -> Self {
        Self::new(media_type, value.to_string().into_bytes())
    }

    fn descriptor(&self) -> Value {
        json!({
            "mediaType": self.media_type,
            "digest": self.digest,
            "size": self.content.len(),
        })
    }

    fn path(&self) -> String {
        format!("blobs/{}", self.digest.replace(':', "/"))
    }
}

impl Image {
    /// Writes the image as a tar; returns the digest of its manifest.
    pub fn write(&self, to: &mut impl Write) -> io::Result<String> {
        let Blobs {
            config,
            layer,
            manifest,
        } = self.blobs()?;
        let mut files = FileTree::default();
        let mut add_json = |path: &str, value: &Value| files.file(path, value.to_string(), 0o644);
        add_json("oci-layout", &json!({"imageLayoutVersion": "1.0.0"}));
        add_json("index.json", &self.index(&manifest));
        let docker = json!([{
            "Config": config.path(), "RepoTags": [self.name], "Layers": [layer.path()],
        }]);
        add_json("manifest.json", &docker);
        let digest = manifest.digest.clone();
        for blob in [config, layer, manifest] {
            files.file(&blob.path(), blob.content, 0o644);
        }
        files.write_tar(to, self.time)?;
        Ok(digest)
    }

    pub fn blobs(&self) -> io::Result<Blobs> {
        let mut layer = Vec::new();
        self.files.write_tar(&mut layer, self.time)?;
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
        Ok(Blobs {
            config,
            layer,
            manifest,
        })
    }

    fn layer(&self, layer: Vec<u8>) -> io::Result<Blob> {
        if !self.compressed {
            return Ok(Blob::new("application/vnd.oci.image.layer.v1.tar", layer));
        }
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&layer)?;
        Ok(Blob::new(
            "application/vnd.oci.image.layer.v1.tar+gzip",
            encoder.finish()?,
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
        // containerd reads the full name only from its own annotation.
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

/// RFC 3339.
pub(crate) fn time(seconds: u64) -> String {
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    let time = jiff::Timestamp::from_second(seconds);
    time.unwrap_or(jiff::Timestamp::UNIX_EPOCH).to_string()
}

/// `sha256:…`.
pub fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", HEXLOWER.encode(&Sha256::digest(bytes)))
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
        let mut files = FileTree::default();
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
    fn images_are_reproducible() {
        let write = |content| {
            let mut bytes = Vec::new();
            let digest = image(content).write(&mut bytes).unwrap();
            (digest, bytes)
        };
        assert_eq!(write("hello"), write("hello"));
        assert_ne!(write("hello").0, write("hallo").0);
    }

    #[test]
    fn times_are_rfc_3339() {
        assert_eq!(time(0), "1970-01-01T00:00:00Z");
        assert_eq!(time(1_700_000_000), "2023-11-14T22:13:20Z");
    }
}
