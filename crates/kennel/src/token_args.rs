//! What can be said on the command line about the tokens that machines join with.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

/// What to do with tokens.
#[derive(Clone, Debug, Args)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    pub(crate) what: TokenVerb,

    /// The administrator's kubeconfig [default: admin.kubeconfig in the data directory]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// The server's data directory
    #[arg(
        long,
        global = true,
        env = "KENNEL_DATA_DIR",
        default_value = "kennel-data",
        value_name = "DIR"
    )]
    pub(crate) data_dir: PathBuf,
}

/// The verbs of tokens.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum TokenVerb {
    /// Make a token, and print the line to run on a machine that is to join
    Create {
        /// How long it lives: 90m, 24h, 7d; 0 for ever
        #[arg(long, default_value = "24h", value_name = "TIME", value_parser = lifetime)]
        ttl: Duration,

        /// The server's URL as the machines reach it [default: the kubeconfig's; this machine's address instead of
        /// the loopback one, if the server answers there]
        #[arg(long, value_name = "URL")]
        server: Option<String>,

        /// What it is for, for `kennel token list`
        #[arg(long, default_value = "", value_name = "WORDS")]
        description: String,
    },

    /// Show all tokens, without their secrets
    List,

    /// Delete a token: who has not joined with it yet cannot any more
    Delete {
        /// The part before the dot, or all of it
        token: String,
    },
}

/// A time such as `90m`, `24h`, `7d` or `0`.
fn lifetime(text: &str) -> Result<Duration, String> {
    const WRONG: &str = "this is no time such as 90m, 24h or 7d";
    // Nobody means more than a thousand years.
    const MAX: u64 = 366 * 1000 * 86_400;
    let split = text.find(|one: char| !one.is_ascii_digit());
    let (number, unit) = text.split_at(split.unwrap_or(text.len()));
    let number: u64 = number.parse().map_err(|_| WRONG)?;
    let seconds = match unit {
        "" if number == 0 => 0,
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return Err(WRONG.to_owned()),
    };
    let seconds = number.checked_mul(seconds).filter(|all| *all <= MAX);
    Ok(Duration::from_secs(seconds.ok_or(WRONG)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetimes_are_read() {
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
