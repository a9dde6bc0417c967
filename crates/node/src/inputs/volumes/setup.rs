//! Computes what to write for a volume, from the spec, the pod, `ConfigMap`s, `Secret`s and tokens. Writes nothing.

use std::path::PathBuf;

use kennel_core::quantity::Quantity;
use serde_json::Value;

use super::{File, Files, Kind, Medium, VolumeError, VolumeSetup, path};
use crate::agent::Paths;
use crate::inputs::env::field::{self, RuntimeFields};
use crate::inputs::env::resource;
use crate::inputs::limits;
use crate::inputs::objects::{self, Contents, Key, ObjectError, Objects};
use crate::inputs::tokens::{TokenSpec, Tokens};
use crate::json::{containers, flag, list, text};
use crate::pods::Pod;

const DEFAULT_MODE: u32 = 0o644;
/// The mode of a token that belongs to the pod's user or group.
const TOKEN_MODE: u32 = 0o600;

/// What volumes are computed from.
pub(in crate::inputs) struct VolumeSources<'a> {
    pub(in crate::inputs) pod: &'a Pod,
    pub(in crate::inputs) paths: &'a Paths,
    pub(in crate::inputs) fields: RuntimeFields<'a>,
    pub(in crate::inputs) objects: &'a Objects,
    pub(in crate::inputs) tokens: &'a Tokens,
    pub(in crate::inputs) allocatable: &'a Value,
    /// A runtime with images creates missing hostPath directories itself.
    pub(in crate::inputs) has_images: bool,
}

impl VolumeSources<'_> {
    pub(in crate::inputs) async fn setup(
        &self,
        volume: &Value,
    ) -> Result<VolumeSetup, VolumeError> {
        let (kind, source) = Kind::of(volume)?;
        let path = path(self.paths, &self.pod.id.uid, volume)?;
        match kind {
            Kind::HostPath => Ok(VolumeSetup::HostPath {
                path,
                kind: text(source, "type").to_owned(),
                create: !self.has_images,
            }),
            Kind::EmptyDir => Ok(VolumeSetup::EmptyDir {
                dir: path,
                medium: self.medium(source)?,
                group: self.group(),
            }),
            kind => Ok(VolumeSetup::Files {
                dir: path,
                files: self.files(kind, source).await?,
                secret: matches!(kind, Kind::Secret | Kind::Projected),
                group: self.group(),
            }),
        }
    }

    /// `fsGroup`.
    fn group(&self) -> Option<u32> {
        let group = &self.pod.raw_spec()["securityContext"]["fsGroup"];
        group.as_u64().and_then(|group| group.try_into().ok())
    }

    fn medium(&self, source: &Value) -> Result<Medium, VolumeError> {
        match text(source, "medium") {
            "" => Ok(Medium::Disk),
            "Memory" => Ok(Medium::Memory(self.memory_size(source))),
            other => Err(VolumeError::Medium(other.to_owned())),
        }
    }

    /// The smallest limit of the volume, its pod and the node; 0 for none.
    fn memory_size(&self, source: &Value) -> u64 {
        let read = |value: &Value| u64::try_from(Quantity::read(value).value()).unwrap_or(0);
        let bounds = [
            Some(read(&source["sizeLimit"])),
            limits::pod_memory_limit(self.pod.raw_spec()),
            Some(read(&self.allocatable["memory"])),
        ];
        let bounds = bounds.into_iter().flatten();
        bounds.filter(|bound| *bound > 0).min().unwrap_or(0)
    }

    async fn files(&self, kind: Kind, source: &Value) -> Result<Files, VolumeError> {
        let mode = mode(&source["defaultMode"], DEFAULT_MODE);
        match kind {
            Kind::ConfigMap => {
                let name = text(source, "name");
                self.object(objects::Kind::ConfigMap, name, source, mode)
                    .await
            }
            Kind::Secret => {
                let name = text(source, "secretName");
                self.object(objects::Kind::Secret, name, source, mode).await
            }
            Kind::DownwardApi => self.downward_api(source, mode),
            _ => self.projected(source, mode).await,
        }
    }

    async fn projected(&self, source: &Value, mode: u32) -> Result<Files, VolumeError> {
        let mut files = Files::new();
        for source in list(source, "sources") {
            let Some((key, source)) = source.as_object().and_then(|source| source.iter().next())
            else {
                continue;
            };
            let name = text(source, "name");
            files.extend(match key.as_str() {
                "configMap" => {
                    self.object(objects::Kind::ConfigMap, name, source, mode)
                        .await?
                }
                "secret" => {
                    self.object(objects::Kind::Secret, name, source, mode)
                        .await?
                }
                "downwardAPI" => self.downward_api(source, mode)?,
                "serviceAccountToken" => self.token(source, mode).await?,
                other => return Err(VolumeError::ProjectedSource(other.to_owned())),
            });
        }
        Ok(files)
    }

    async fn object(
        &self,
        kind: objects::Kind,
        name: &str,
        source: &Value,
        mode: u32,
    ) -> Result<Files, VolumeError> {
        let key = Key::new(self.pod, kind, name);
        let contents = match self.objects.get(&key).await? {
            None if !flag(source, "optional") => {
                let name = key.name;
                return Err(ObjectError::Missing { kind, name }.into());
            }
            contents => contents.unwrap_or_default(),
        };
        let missing = match kind {
            objects::Kind::ConfigMap => VolumeError::ConfigMapKey,
            objects::Kind::Secret => VolumeError::SecretKey,
        };
        selected(&contents, source, mode, missing)
    }

    fn downward_api(&self, source: &Value, mode: u32) -> Result<Files, VolumeError> {
        let file = |item: &Value| {
            let content = match &item["fieldRef"] {
                Value::Null => {
                    let reference = &item["resourceFieldRef"];
                    let name = text(reference, "containerName");
                    let container = self.pod.raw_container(name);
                    let container =
                        container.ok_or_else(|| VolumeError::Container(name.to_owned()))?;
                    resource::value(container, reference, self.allocatable)?
                }
                field => field::value(self.pod, text(field, "fieldPath"), &self.fields)?,
            };
            let file = file(content.into_bytes(), self::mode(&item["mode"], mode));
            Ok((PathBuf::from(text(item, "path")), file))
        };
        list(source, "items").iter().map(file).collect()
    }

    async fn token(&self, source: &Value, mode: u32) -> Result<Files, VolumeError> {
        let seconds = source["expirationSeconds"].as_u64().unwrap_or(3600);
        let spec = TokenSpec {
            audience: text(source, "audience"),
            seconds,
        };
        let token = self.tokens.get(self.pod, &spec).await?;
        let owner = self.user();
        // A pod with its own user or group needs no access by others.
        let restricted = owner.is_some() || self.group().is_some();
        let file = File {
            content: token.into_bytes(),
            mode: if restricted { TOKEN_MODE } else { mode },
            owner,
        };
        Ok(Files::from([(text(source, "path").into(), file)]))
    }

    /// The user of all containers, if they have the same.
    fn user(&self) -> Option<u32> {
        let spec = self.pod.raw_spec();
        let of = |container: &Value| {
            let own = container["securityContext"]["runAsUser"].as_u64();
            own.or_else(|| spec["securityContext"]["runAsUser"].as_u64())
        };
        let mut all = containers(spec).map(of);
        let first = all.next()??;
        let same = all.all(|user| user == Some(first));
        u32::try_from(first).ok().filter(|_| same)
    }
}

fn mode(value: &Value, default: u32) -> u32 {
    let mode = value.as_u64().and_then(|mode| mode.try_into().ok());
    mode.unwrap_or(default) & 0o777
}

fn file(content: Vec<u8>, mode: u32) -> File {
    File {
        content,
        mode,
        owner: None,
    }
}

/// The files of the selected keys, or of all. Missing keys that are not optional are errors.
fn selected(
    contents: &Contents,
    source: &Value,
    default: u32,
    missing: impl Fn(String) -> VolumeError,
) -> Result<Files, VolumeError> {
    let items = list(source, "items");
    if items.is_empty() {
        let all = contents.files();
        let all = all.map(|(key, content)| (key.into(), file(content.clone(), default)));
        return Ok(all.collect());
    }
    let mut files = Files::new();
    for item in items {
        let key = text(item, "key");
        if let Some(content) = contents.file(key) {
            let file = file(content.clone(), mode(&item["mode"], default));
            files.insert(text(item, "path").into(), file);
        } else if !flag(source, "optional") {
            return Err(missing(key.to_owned()));
        }
    }
    Ok(files)
}
