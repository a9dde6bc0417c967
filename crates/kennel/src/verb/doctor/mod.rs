//! `kennel doctor`: checks the database of a server, or with `network` the pod network of this machine.

mod network;

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use kennel_agent::node::absolute;
use kennel_server::doctor::{self, DamagedValue, Examination};
use kennel_server::seal::Keyring;

use super::backup::refuse_etcd;
use crate::backup_args::DataArgs;
use crate::inspect::print;
use crate::logging;

/// Something is damaged.
const DAMAGED: u8 = 1;
/// The database could not be checked.
const FAILED: u8 = 2;

/// What to check instead of the database.
#[derive(Clone, Debug, Subcommand)]
enum Subject {
    /// Check the pod network of this machine, and say what to do: forwarding, MTU, routes, the firewall, the reverse-path
    /// filter and name resolution
    ///
    /// Exits with 1 if there is a problem, and with 2 if the network could not be checked.
    Network(network::NetworkArgs),
}

#[derive(Clone, Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct DoctorArgs {
    #[command(subcommand)]
    subject: Option<Subject>,

    #[command(flatten)]
    data: DataArgs,

    /// Keys of the secrets that are encrypted at rest; without it, only their checksums are verified
    #[arg(long, value_name = "FILE")]
    encryption_key_file: Option<PathBuf>,

    /// Print the stored bytes of an object, such as /registry/configmaps/default/settings: of the damaged one if
    /// there is one
    #[arg(long, value_name = "KEY")]
    raw: Option<String>,

    /// Delete the damaged bytes of an object that a start has set aside, after it was repaired
    #[arg(long, value_name = "KEY", conflicts_with = "raw")]
    discard: Option<String>,
}

pub(crate) async fn run(args: &DoctorArgs) -> ExitCode {
    if let Some(Subject::Network(args)) = &args.subject {
        return network::run(args).await;
    }
    let data_dir = absolute(&args.data.data_dir);
    if let Err(error) = refuse_etcd(&data_dir) {
        logging::print_error(&error);
        return FAILED.into();
    }
    let done = match (&args.raw, &args.discard) {
        (Some(key), _) => print_raw(&data_dir, key),
        (None, Some(key)) => discard(&data_dir, key),
        (None, None) => examine(&data_dir, args.encryption_key_file.as_deref()),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => DAMAGED.into(),
        Err(error) => {
            logging::print_error(&error);
            FAILED.into()
        }
    }
}

fn print_raw(data_dir: &Path, key: &str) -> anyhow::Result<bool> {
    let Some(raw) = doctor::raw(data_dir, key)? else {
        anyhow::bail!("there is no object with the key {key}");
    };
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(&raw.value)?;
    stdout.flush()?;
    Ok(true)
}

fn discard(data_dir: &Path, key: &str) -> anyhow::Result<bool> {
    let count = doctor::discard(data_dir, key)?;
    anyhow::ensure!(
        count > 0,
        "no damaged object with the key {key} was set aside"
    );
    let mut text = format!("Deleted the damaged bytes of {key}.\n");
    if let Some(user) = doctor::left_with_certificates(data_dir, key)? {
        writeln!(
            text,
            "Certificates of {user} are still valid. Revoke them, unless that machine may still speak for the node:\n  \
             kennel certs revoke {user}"
        )?;
    }
    print(&text)?;
    Ok(true)
}

/// Returns whether all is well.
fn examine(data_dir: &Path, key_file: Option<&Path>) -> anyhow::Result<bool> {
    let keys = match key_file {
        Some(file) => Keyring::read(file)?,
        None => Keyring::empty(),
    };
    let found = doctor::examine(data_dir, &keys)?;
    print(&report(&found, data_dir)?)?;
    Ok(found.is_healthy())
}

fn report(found: &Examination, data_dir: &Path) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    let database = format!(
        "database of {} (schema version {}, revision {})",
        data_dir.display(),
        found.schema_version,
        found.revision
    );
    if found.structure.is_empty() {
        writeln!(text, "ok       {database}")?;
    } else {
        writeln!(text, "DAMAGED  {database}: restore a backup")?;
        for report in &found.structure {
            writeln!(text, "           {report}")?;
        }
    }
    if let Some(damage) = &found.log {
        writeln!(
            text,
            "DAMAGED  {damage}. While a server runs, it has them in memory: make a backup now. Without one, restore a backup"
        )?;
    }
    write_values(&mut text, found)?;
    if !found.set_aside.is_empty() {
        writeln!(
            text,
            "DAMAGED  objects that a start has set aside, and that the server leaves out: {}. Print one with --raw KEY, \
             create it again with the same uid, then --discard KEY",
            found.set_aside.len()
        )?;
        write_damaged(&mut text, &found.set_aside)?;
    }
    if found.half_restored {
        writeln!(
            text,
            "DAMAGED  a restore was interrupted: repeat `kennel restore`"
        )?;
    }
    Ok(text)
}

fn write_values(text: &mut String, found: &Examination) -> std::fmt::Result {
    let values = &found.values;
    let mut notes = String::new();
    if values.without_checksum > 0 {
        write!(
            notes,
            ", {} without a checksum yet",
            values.without_checksum
        )?;
    }
    if values.without_key > 0 {
        write!(
            notes,
            ", {} encrypted and not decrypted",
            values.without_key
        )?;
    }
    if values.damaged.is_empty() {
        return writeln!(text, "ok       {} objects{notes}", values.values);
    }
    writeln!(
        text,
        "DAMAGED  {} of {} objects{notes}; a server that runs has them in memory, its next start sets them aside",
        values.damaged.len(),
        values.values
    )?;
    write_damaged(text, &values.damaged)
}

fn write_damaged(text: &mut String, values: &[DamagedValue]) -> std::fmt::Result {
    for value in values {
        writeln!(text, "           {}: {}", value.key, value.reason)?;
    }
    Ok(())
}
