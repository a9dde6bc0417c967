//! The annotations of the own Node by which it takes part in the pod network.

use kennel_client::api;
use kennel_client::write::{Call, Content, Failure, Writer};
use kennel_core::pod_network::{DIRECT_ANNOTATION, EXTERNAL, LINK_ANNOTATION, MODE_ANNOTATION};
use serde_json::{Map, Value, json};

/// What the annotations are to be. `None` removes them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Published {
    pub(super) mode: Option<String>,
    pub(super) link: Option<String>,
    pub(super) direct: Option<bool>,
}

impl Published {
    fn values(&self) -> [(&'static str, Value); 3] {
        let direct = self.direct.map(|direct| direct.to_string());
        [
            (MODE_ANNOTATION, json!(self.mode)),
            (LINK_ANNOTATION, json!(self.link)),
            (DIRECT_ANNOTATION, json!(direct)),
        ]
    }

    /// The annotations that differ from those of the stored Node.
    fn differing(&self, node: &Value) -> Map<String, Value> {
        let stored = &node["metadata"]["annotations"];
        let mut differing = Map::new();
        for (key, value) in self.values() {
            // Set by a user, for a CNI daemon that needs a pod range.
            let is_users = self.mode.is_none() && stored[key] == EXTERNAL;
            if stored[key] != value && !is_users {
                differing.insert(key.to_owned(), value);
            }
        }
        differing
    }

    /// Writes what differs.
    pub(super) async fn write(&self, writer: &Writer, node: &Value) -> Result<(), Failure> {
        let differing = self.differing(node);
        let name = node["metadata"]["name"].as_str().unwrap_or_default();
        if differing.is_empty() {
            return Ok(());
        }
        let patch = json!({"metadata": {"annotations": differing}});
        let call = Call::patch(api::node_path(name), Content::Merge, &patch);
        writer.send(&call).await.map(drop)
    }
}

/// What a Node says of its link.
pub(super) fn direct_of(node: &Value) -> Option<bool> {
    let text = node["metadata"]["annotations"][DIRECT_ANNOTATION].as_str()?;
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_written_and_a_users_request_stays() {
        let published = Published {
            mode: Some("auto".to_owned()),
            link: Some("10.0.0.1/24".to_owned()),
            direct: None,
        };
        let node = |annotations: Value| json!({"metadata": {"annotations": annotations}});
        let all = published.differing(&json!({}));
        assert_eq!(
            Value::from(all),
            json!({MODE_ANNOTATION: "auto", LINK_ANNOTATION: "10.0.0.1/24"})
        );
        let stored = node(
            json!({MODE_ANNOTATION: "auto", LINK_ANNOTATION: "10.0.0.1/24", DIRECT_ANNOTATION: "true"}),
        );
        assert_eq!(
            Value::from(published.differing(&stored)),
            json!({DIRECT_ANNOTATION: null})
        );
        let none = Published::default();
        assert_eq!(
            none.differing(&node(json!({MODE_ANNOTATION: EXTERNAL}))),
            Map::new()
        );
        assert_eq!(none.differing(&stored).len(), 3);
    }
}
