//! The command line of `kennel token`.

use std::time::Duration;

use clap::{Args, Subcommand};
use kennel_agent::flag_values::server_url;

use crate::admin_args::AdminArgs;

/// The token records each machine that has used it, in a Secret of at most 1 MiB.
const USES_MAX: i64 = 1000;

#[derive(Clone, Debug, Args)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    pub(crate) verb: TokenVerb,

    #[command(flatten)]
    pub(crate) admin: AdminArgs,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum TokenVerb {
    /// Create a token, and print the command that joins a machine with it
    ///
    /// The command has the token in a variable: all users can read the command line of a process. A token makes new nodes
    /// only, once unless --uses allows more. A node that exists keeps its name: the machine needs its certificate, or a
    /// token with --node NAME --replace.
    Create {
        /// Lifetime: 90m, 24h, 7d; 0: never expires
        #[arg(long, default_value = "24h", value_name = "TIME", value_parser = lifetime)]
        ttl: Duration,

        /// Number of machines that may join with it, each as a new node
        #[arg(long, default_value_t = 1, value_name = "MACHINES", conflicts_with = "node",
              value_parser = clap::value_parser!(u32).range(1..=USES_MAX))]
        uses: u32,

        /// The only name that a machine may join under
        #[arg(long, value_name = "NAME")]
        node: Option<String>,

        /// The node may exist already: the machine takes its place, and the certificate of the other one ends
        #[arg(long, requires = "node")]
        replace: bool,

        /// URL of the server for other machines [default: the URL in the kubeconfig; a loopback address is replaced
        /// by this machine's address if the server listens there]
        #[arg(long, value_name = "URL", value_parser = server_url)]
        server: Option<String>,

        /// Description shown by `kennel token list`
        #[arg(long, default_value = "", value_name = "TEXT")]
        description: String,
    },

    /// List all tokens, without their secrets
    List,

    /// Delete a token; machines can no longer join with it
    Delete {
        /// The token, or its ID (the part before the dot)
        token: String,
    },
}

#[derive(Debug, thiserror::Error)]
#[error("not a duration such as 90m, 24h or 7d")]
pub(crate) struct LifetimeError;

/// Parses a duration such as `90m`, `24h`, `7d` or `0`.
pub(crate) fn lifetime(text: &str) -> Result<Duration, LifetimeError> {
    // A thousand years, so that dates stay within four digits.
    const MAX: u64 = 366 * 1000 * 86_400;
    let split = text.find(|one: char| !one.is_ascii_digit());
    let (number, unit) = text.split_at(split.unwrap_or(text.len()));
    let number: u64 = number.parse().map_err(|_| LifetimeError)?;
    let seconds = match unit {
        "" if number == 0 => 0,
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return Err(LifetimeError),
    };
    let seconds = number.checked_mul(seconds).filter(|all| *all <= MAX);
    Ok(Duration::from_secs(seconds.ok_or(LifetimeError)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetimes_are_parsed() {
        let check = |text: &str, expected: Option<u64>| {
            let expected = expected.map(Duration::from_secs);
            assert_eq!(lifetime(text).ok(), expected, "{text}");
        };
        check("0", Some(0));
        check("90m", Some(5400));
        check("24h", Some(86_400));
        check("7d", Some(604_800));
        check("5", None);
        check("h", None);
        check("1w", None);
        check("99999999999999999999d", None);
        check("18446744073709551615d", None);
    }
}
