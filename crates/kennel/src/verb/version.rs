//! `kennel version`: the versions of this program and of the server.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use kennel_client::connection;
use kennel_server::discovery;
use kube::Config;
use serde_json::{Value, json};

use crate::cluster;
use crate::inspect::print;

/// How long a server that does not answer is waited for.
const TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Clone, Debug, Args)]
pub(crate) struct VersionArgs {
    /// Print the version of this program only, without asking a server
    #[arg(long)]
    client: bool,

    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    output: Option<Format>,

    /// Kubeconfig of the server [default: $KUBECONFIG or ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig [default: the current one]
    #[arg(long, value_name = "CONTEXT")]
    context: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Json,
    Yaml,
}

/// Prints what is known, also if the server cannot be reached, which then is the error.
pub(crate) async fn run(args: VersionArgs) -> anyhow::Result<()> {
    let mut versions = json!({"clientVersion": discovery::version()});
    let server = match config(&args).await? {
        Some(config) => server_version(config).await.map(Some),
        None => Ok(None),
    };
    if let Ok(Some(server)) = &server {
        versions["serverVersion"] = server.clone();
    }
    print(&render(&versions, args.output)?)?;
    server.map(drop)
}

/// None if no server is to be asked, or none is configured.
async fn config(args: &VersionArgs) -> anyhow::Result<Option<Config>> {
    if args.client {
        return Ok(None);
    }
    let (kubeconfig, context) = (args.kubeconfig.as_deref(), args.context.as_deref());
    let config = cluster::config_with_context(kubeconfig, context).await;
    match config {
        Err(_) if kubeconfig.is_none() && context.is_none() && !has_kubeconfig() => Ok(None),
        config => config.map(Some),
    }
}

fn has_kubeconfig() -> bool {
    let default = std::env::home_dir().map(|home| home.join(".kube/config"));
    std::env::var_os("KUBECONFIG").is_some() || default.is_some_and(|path| path.exists())
}

async fn server_version(config: Config) -> anyhow::Result<Value> {
    let client = cluster::client_of(config)?;
    let request = http::Request::get("/version").body(Vec::new())?;
    let answer = tokio::time::timeout(TIMEOUT, client.request(request)).await;
    let answer = answer.with_context(|| {
        let seconds = TIMEOUT.as_secs();
        format!("the server did not answer within {seconds} seconds")
    })?;
    answer.map_err(|error| anyhow::anyhow!(connection::describe(&error)))
}

fn render(versions: &Value, format: Option<Format>) -> anyhow::Result<String> {
    match format {
        Some(Format::Json) => Ok(serde_json::to_string_pretty(versions)? + "\n"),
        Some(Format::Yaml) => Ok(serde_saphyr::to_string(versions)?),
        None => {
            let line = |title: &str, key: &str| {
                let version = versions[key]["gitVersion"].as_str()?;
                Some(format!("{title} Version: {version}\n"))
            };
            let client = line("Client", "clientVersion");
            let server = line("Server", "serverVersion");
            Ok(client.into_iter().chain(server).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_printed_as_kubectl_does() {
        let versions = json!({"clientVersion": {"gitVersion": "v1", "major": "1"},
            "serverVersion": {"gitVersion": "v2", "major": "2"}});
        let text = render(&versions, None).unwrap();
        assert_eq!(text, "Client Version: v1\nServer Version: v2\n");
        let json: Value =
            serde_json::from_str(&render(&versions, Some(Format::Json)).unwrap()).unwrap();
        assert_eq!(json, versions);
        let yaml = render(&versions, Some(Format::Yaml)).unwrap();
        assert_eq!(
            yaml,
            "clientVersion:\n  gitVersion: v1\n  major: \"1\"\nserverVersion:\n  gitVersion: v2\n  major: \"2\"\n"
        );
    }
}
