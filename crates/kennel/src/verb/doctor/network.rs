//! `kennel doctor network`: checks the pod network of this machine.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use kennel_network::cni::Places;
use kennel_network::doctor::{self, Finding, Options};

use super::{DAMAGED, FAILED};
use crate::inspect::print;
use crate::logging;

#[derive(Clone, Debug, Args)]
pub(crate) struct NetworkArgs {
    /// The directory of the container runtime's CNI configurations
    #[arg(long, default_value = "/etc/cni/net.d", value_name = "DIR")]
    cni_conf_dir: PathBuf,

    /// Directories of CNI plugins
    #[arg(
        long,
        default_value = "/opt/cni/bin,/usr/lib/cni",
        value_delimiter = ',',
        value_name = "DIR"
    )]
    cni_bin_dir: Vec<PathBuf>,

    /// The cluster IP of the Service `kube-dns`
    #[arg(long, default_value = "10.96.0.10", value_name = "ADDRESS")]
    cluster_dns: Ipv4Addr,

    /// The DNS domain of Services
    #[arg(long, default_value = "cluster.local", value_name = "DOMAIN")]
    cluster_domain: String,
}

pub(super) async fn run(args: &NetworkArgs) -> ExitCode {
    let options = Options {
        places: Places {
            configurations: args.cni_conf_dir.clone(),
            plugins: args.cni_bin_dir.clone(),
        },
        dns: args.cluster_dns,
        name: format!("kubernetes.default.svc.{}", args.cluster_domain),
    };
    match examine(&options).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => DAMAGED.into(),
        Err(error) => {
            logging::print_error(&error);
            FAILED.into()
        }
    }
}

/// Returns whether all is well.
async fn examine(options: &Options) -> anyhow::Result<bool> {
    let findings = doctor::examine(options).await?;
    print(&report(&findings))?;
    Ok(findings.iter().all(|finding| finding.is_ok))
}

fn report(findings: &[Finding]) -> String {
    let lines = findings.iter().map(|finding| {
        let mark = if finding.is_ok { "ok     " } else { "PROBLEM" };
        format!("{mark}  {}\n", finding.text)
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_stand_out() {
        let finding = |is_ok: bool, text: &str| Finding {
            is_ok,
            text: text.to_owned(),
        };
        let found = [
            finding(true, "forwarding: on"),
            finding(false, "names: none"),
        ];
        assert_eq!(
            report(&found),
            "ok       forwarding: on\nPROBLEM  names: none\n"
        );
    }
}
