//! The command line of `kennel backup` and `kennel restore`, and the flags of scheduled backups.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use kennel_server::backup::{self, Schedule, SecretFile};

use crate::token_args::{LifetimeError, lifetime};

#[derive(Clone, Debug, Args)]
pub(crate) struct BackupArgs {
    /// File to create, or directory to create one in, named after the time
    #[arg(value_name = "FILE")]
    pub(crate) to: PathBuf,

    #[command(flatten)]
    pub(crate) data: DataArgs,

    #[command(flatten)]
    pub(crate) secret: SecretArgs,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct RestoreArgs {
    /// The backup
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    #[command(flatten)]
    pub(crate) data: DataArgs,

    #[command(flatten)]
    pub(crate) secret: SecretArgs,

    /// Move the data that the directory has into `replaced-TIME` within it
    #[arg(long)]
    pub(crate) replace: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct DataArgs {
    /// Data directory of the server
    #[arg(
        long,
        env = "KENNEL_DATA_DIR",
        default_value = "kennel-data",
        value_name = "DIR"
    )]
    pub(crate) data_dir: PathBuf,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct SecretArgs {
    /// Seal or open the backup with the passphrase on the first line of this file
    #[arg(long, value_name = "FILE", conflicts_with = "key_file")]
    passphrase_file: Option<PathBuf>,

    /// Seal the backup with the first key in this file, or open it with any; lines as in --encryption-key-file
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
}

impl SecretArgs {
    pub(crate) fn file(&self) -> Option<SecretFile> {
        secret_file(self.passphrase_file.clone(), self.key_file.clone())
    }
}

fn secret_file(passphrase: Option<PathBuf>, keys: Option<PathBuf>) -> Option<SecretFile> {
    passphrase
        .map(SecretFile::Passphrase)
        .or_else(|| keys.map(SecretFile::Keys))
}

#[derive(Clone, Debug, Args)]
#[expect(clippy::struct_field_names, reason = "they are the names of the flags")]
pub(crate) struct ScheduleArgs {
    /// Back up into this directory at an interval, as `kennel backup` does [default: no backups]
    #[arg(long, value_name = "DIR")]
    backup_dir: Option<PathBuf>,

    /// Interval of the backups: 90m, 24h, 7d
    #[arg(long, default_value = "24h", value_name = "TIME", value_parser = interval, requires = "backup_dir")]
    backup_every: Duration,

    /// Number of backups to keep in the directory
    #[arg(long, default_value_t = backup::KEEP_DEFAULT, value_name = "FILES", requires = "backup_dir",
          value_parser = clap::value_parser!(u16).range(1..))]
    backup_keep: u16,

    /// Seal the backups with the passphrase on the first line of this file
    #[arg(
        long,
        value_name = "FILE",
        requires = "backup_dir",
        conflicts_with = "backup_key_file"
    )]
    backup_passphrase_file: Option<PathBuf>,

    /// Seal the backups with the first key in this file; lines as in --encryption-key-file
    #[arg(long, value_name = "FILE", requires = "backup_dir")]
    backup_key_file: Option<PathBuf>,
}

impl ScheduleArgs {
    pub(crate) fn schedule(self) -> Option<Schedule> {
        Some(Schedule {
            dir: self.backup_dir?,
            every: self.backup_every,
            keep: self.backup_keep,
            secret: secret_file(self.backup_passphrase_file, self.backup_key_file),
        })
    }
}

/// An interval must not be 0.
fn interval(text: &str) -> Result<Duration, LifetimeError> {
    lifetime(text).and_then(|time| {
        if time.is_zero() {
            Err(LifetimeError)
        } else {
            Ok(time)
        }
    })
}
