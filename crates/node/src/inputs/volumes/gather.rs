//! What a volume is to hold, asked from those who know: the spec, the pod, config maps, secrets, the API's tokens.
//! Writes nothing.

use std::path::PathBuf;
use std::sync::Arc;

use kennel_core::quantity::Quantity;
use serde_json::Value;

use super::{File, Kind, Medium, Payload, Work, place};
use crate::agent::Paths;
use crate::inputs::env::field::{self, Place};
use crate::inputs::env::resource;
use crate::inputs::limits;
use crate::inputs::objects::{self, Contents, Key, Objects};
use crate::inputs::tokens::{Tokens, Wanted};
use crate::inputs::tree::{containers, flag, list, text};
use crate::pods::Pod;

/// The mode of files that nobody has given one.
const MODE: u32 = 0o644;
/// The mode of a token that belongs to who uses it.
const TOKEN_MODE: u32 = 0o600;

/// See the [module](self).
pub(in crate::inputs) struct Gatherer<'a> {
    pub(in crate::inputs) pod: &'a Pod,
    pub(in crate::inputs) paths: &'a Paths,
    pub(in crate::inputs) place: Place<'a>,
    pub(in crate::inputs) objects: &'a Objects,
    pub(in crate::inputs) tokens: &'a Tokens,
    pub(in crate::inputs) allocatable: &'a Value,
    /// The runtime has images of its own, and makes directories of the machine that are missing.
    pub(in crate::inputs) has_images: bool,
}

impl Gatherer<'_> {
    /// What is to be done for a volume, or why it cannot be.
    pub(in crate::inputs) async fn work(&self, volume: &Value) -> Result<Work, String> {
        let (kind, source) = Kind::of(volume)?;
        let place = place(self.paths, &self.pod.id.uid, volume)?;
        match kind {
            Kind::HostPath => Ok(Work::Host {
                path: place,
                kind: text(source, "type").to_owned(),
                make: !self.has_images,
            }),
            Kind::EmptyDir => Ok(Work::Empty {
                dir: place,
                medium: self.medium(source)?,
                group: self.group(),
            }),
            kind => Ok(Work::Files {
                dir: place,
                payload: self.payload(kind, source).await?,
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

    fn medium(&self, source: &Value) -> Result<Medium, String> {
        match text(source, "medium") {
            "" => Ok(Medium::Disk),
            "Memory" => Ok(Medium::Memory(self.memory_size(source))),
            other => Err(format!(
                "emptyDir with medium {other} is not served by this node; use Memory or none"
            )),
        }
    }

    /// The least of what the volume, its pod and the node allow.
    fn memory_size(&self, source: &Value) -> u64 {
        let read = |value: &Value| u64::try_from(Quantity::read(value).value()).unwrap_or(0);
        let bounds = [
            Some(read(&source["sizeLimit"])),
            limits::memory_of_all(self.pod.raw_spec()),
            Some(read(&self.allocatable["memory"])),
        ];
        let bounds = bounds.into_iter().flatten();
        bounds.filter(|bound| *bound > 0).min().unwrap_or(0)
    }

    async fn payload(&self, kind: Kind, source: &Value) -> Result<Payload, String> {
        let mode = mode(&source["defaultMode"], MODE);
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
            Kind::DownwardApi => self.downward(source, mode),
            _ => self.projected(source, mode).await,
        }
    }

    async fn projected(&self, source: &Value, mode: u32) -> Result<Payload, String> {
        let mut payload = Payload::new();
        for source in list(source, "sources") {
            let Some((key, source)) = source.as_object().and_then(|source| source.iter().next())
            else {
                continue;
            };
            let name = text(source, "name");
            payload.extend(match key.as_str() {
                "configMap" => {
                    self.object(objects::Kind::ConfigMap, name, source, mode).await?
                }
                "secret" => self.object(objects::Kind::Secret, name, source, mode).await?,
                "downwardAPI" => self.downward(source, mode)?,
                "serviceAccountToken" => self.token(source, mode).await?,
                other => {
                    return Err(format!(
                        "{other} in projected volumes is not served by this node; configMap, secret, \
                         downwardAPI and serviceAccountToken are"
                    ));
                }
            });
        }
        Ok(payload)
    }

    async fn object(
        &self,
        kind: objects::Kind,
        name: &str,
        source: &Value,
        mode: u32,
    ) -> Result<Payload, String> {
        let key = Key {
            kind,
            namespace: self.pod.id.namespace.clone(),
            name: name.to_owned(),
        };
        let optional = flag(source, "optional");
        let contents = match self.objects.get(&key).await? {
            None if !optional => return Err(format!("{} \"{name}\" not found", kind.name())),
            None => Arc::new(Contents::default()),
            Some(contents) => contents,
        };
        pick(&contents, source, mode).or_else(|missing| match (optional, kind) {
            (true, _) => Ok(present(&contents, source, mode)),
            (false, objects::Kind::ConfigMap) => Err(format!(
                "configmap references non-existent config key: {missing}"
            )),
            (false, objects::Kind::Secret) => {
                Err(format!("references non-existent secret key: {missing}"))
            }
        })
    }

    fn downward(&self, source: &Value, mode: u32) -> Result<Payload, String> {
        let file = |item: &Value| {
            let content = match &item["fieldRef"] {
                Value::Null => {
                    let reference = &item["resourceFieldRef"];
                    let name = text(reference, "containerName");
                    let container = self.pod.raw_container(name);
                    let container = container
                        .ok_or_else(|| format!("couldn't find container {name} in the pod"))?;
                    resource::value(container, reference, self.allocatable)?
                }
                field => field::value(self.pod, text(field, "fieldPath"), &self.place)?,
            };
            let file = file(content.into_bytes(), self::mode(&item["mode"], mode));
            Ok((PathBuf::from(text(item, "path")), file))
        };
        list(source, "items").iter().map(file).collect()
    }

    async fn token(&self, source: &Value, mode: u32) -> Result<Payload, String> {
        let seconds = source["expirationSeconds"].as_u64().unwrap_or(3600);
        let wanted = Wanted {
            audience: text(source, "audience"),
            seconds,
        };
        let token = self.tokens.get(self.pod, &wanted).await?;
        let owner = self.user();
        // Who has a user or a group of its own needs nobody else to read it.
        let own = owner.is_some() || self.group().is_some();
        let file = File {
            content: token.into_bytes(),
            mode: if own { TOKEN_MODE } else { mode },
            owner,
        };
        Ok(Payload::from([(text(source, "path").into(), file)]))
    }

    /// The one user that all containers run as, if there is one.
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

/// The keys that `items` names, or all; else the first that is missing.
fn pick(contents: &Contents, source: &Value, default: u32) -> Result<Payload, String> {
    let items = list(source, "items");
    if items.is_empty() {
        let all = contents.files();
        let all = all.map(|(key, content)| (key.into(), file(content.clone(), default)));
        return Ok(all.collect());
    }
    let one = |item: &Value| {
        let key = text(item, "key");
        let content = contents.file(key).ok_or_else(|| key.to_owned())?;
        let file = file(content.clone(), mode(&item["mode"], default));
        Ok((text(item, "path").into(), file))
    };
    items.iter().map(one).collect()
}

/// Those of the keys that `items` names which are there.
fn present(contents: &Contents, source: &Value, default: u32) -> Payload {
    let one = |item: &Value| {
        let content = contents.file(text(item, "key"))?.clone();
        let file = file(content, mode(&item["mode"], default));
        Some((text(item, "path").into(), file))
    };
    list(source, "items").iter().filter_map(one).collect()
}
