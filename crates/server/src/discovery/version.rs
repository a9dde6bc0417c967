//! `GET /version`: the Kubernetes version that the server implements, and its own build.

use kennel_types::version::GIT_VERSION;
use serde_json::{Value, json};

/// `GET /version`.
pub fn version() -> Value {
    json!({
        "major": "1",
        "minor": "36",
        "gitVersion": GIT_VERSION,
        "gitCommit": option_env!("KENNEL_GIT_COMMIT").unwrap_or("unknown"),
        "gitTreeState": option_env!("KENNEL_GIT_TREE_STATE").unwrap_or("unknown"),
        // Upstream's value for an unknown build time.
        "buildDate": option_env!("KENNEL_BUILD_DATE").unwrap_or("1970-01-01T00:00:00Z"),
        "goVersion": "rustc",
        "compiler": "rustc",
        "platform": platform(),
    })
}

/// The platform by Go's names, which clients know.
fn platform() -> String {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        other => other,
    };
    format!("{}/{architecture}", std::env::consts::OS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_semantic_and_names_both() {
        let version = version();
        let git = version["gitVersion"].as_str().expect("a string");
        let (kubernetes, kennel) = git.split_once('+').expect("build metadata");
        assert_eq!(kubernetes, "v1.36.4");
        assert!(kennel.starts_with("kennel"));
        assert!(
            kennel
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || ".-".contains(c))
        );
        assert_eq!(
            (&version["major"], &version["minor"]),
            (&json!("1"), &json!("36"))
        );
        let platform = version["platform"].as_str().expect("a string");
        assert!(
            platform.starts_with("linux/") && !platform.ends_with("x86_64"),
            "{platform}"
        );
    }
}
