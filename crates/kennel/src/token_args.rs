//! The command line of `kennel token`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use kennel_agent::flag_values::server_url;

#[derive(Clone, Debug, Args)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    pub(crate) verb: TokenVerb,

    /// Kubeconfig of an administrator [default: admin.kubeconfig in the data directory]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Data directory of the server
    #[arg(
        long,
        global = true,
        env = "KENNEL_DATA_DIR",
        default_value = "kennel-data",
        value_name = "DIR"
    )]
    pub(crate) data_dir: PathBuf,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum TokenVerb {
    /// Create a token, and print the command that joins a machine with it
    Create {
        /// Lifetime: 90m, 24h, 7d; 0: never expires
        #[arg(long, default_value = "24h", value_name = "TIME", value_parser = lifetime)]
        ttl: Duration,

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
struct LifetimeError;

/// Parses a duration such as `90m`, `24h`, `7d` or `0`.
fn lifetime(text: &str) -> Result<Duration, LifetimeError> {
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
