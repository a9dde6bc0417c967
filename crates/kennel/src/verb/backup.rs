//! `kennel backup` and `kennel restore`.

use std::fmt::Write as _;
use std::path::Path;

use kennel_agent::node::absolute;
use kennel_server::backup::{self, Backup, Restored, SecretFile};
use kennel_server::data_dir;

use crate::backup_args::{BackupArgs, RestoreArgs};
use crate::inspect::print;

/// Objects in etcd are checked, backed up and restored with its own tools.
pub(super) fn refuse_etcd(data_dir: &Path) -> anyhow::Result<()> {
    let Some(store) = data_dir::etcd_of(data_dir) else {
        return Ok(());
    };
    anyhow::bail!(
        "the objects of {dir} are in {store}, whose own tools are for that: `etcdctl endpoint health` checks it, `etcdctl \
         snapshot save FILE` backs it up, and `etcdctl snapshot restore FILE` restores it. Keep a copy of {dir}/pki with a \
         snapshot; see docs/guides/etcd.md",
        dir = data_dir.display()
    )
}

pub(crate) fn back_up(args: &BackupArgs) -> anyhow::Result<()> {
    let file = args.secret.file();
    let secret = file.as_ref().map(SecretFile::read).transpose()?;
    let data_dir = absolute(&args.data.data_dir);
    refuse_etcd(&data_dir)?;
    let backup = backup::create(&data_dir, &absolute(&args.to), secret.as_ref())?;
    print(&summary(&backup, secret.is_some())?)
}

fn summary(backup: &Backup, is_sealed: bool) -> Result<String, std::fmt::Error> {
    let Backup {
        path,
        bytes,
        objects,
        revision,
        encrypted_with,
        damaged,
    } = backup;
    let sealed = if is_sealed { "sealed" } else { "not sealed" };
    let mut text = format!(
        "Wrote and verified {}: {objects} objects up to revision {revision}, {bytes} bytes, {sealed}.\n",
        path.display()
    );
    if !encrypted_with.is_empty() {
        writeln!(
            text,
            "Its secrets are encrypted with the key whose id is {encrypted_with}. Keep the file of \
             --encryption-key-file, too."
        )?;
    }
    for value in damaged {
        writeln!(
            text,
            "Damaged, and backed up as it is: {}: {}.",
            value.key, value.reason
        )?;
    }
    Ok(text)
}

pub(crate) fn restore(args: &RestoreArgs) -> anyhow::Result<()> {
    let file = args.secret.file();
    let secret = file.as_ref().map(SecretFile::read).transpose()?;
    let data_dir = absolute(&args.data.data_dir);
    refuse_etcd(&data_dir)?;
    let restored = backup::restore(
        &absolute(&args.file),
        &data_dir,
        secret.as_ref(),
        args.replace,
    )?;
    let Restored {
        created,
        revisions: (from, to),
        replaced,
        encrypted_with,
    } = restored;
    let mut text = format!(
        "Restored the backup of {created} into {}. Its resource versions, up to {from}, continue at {to}.\n",
        data_dir.display()
    );
    if let Some(replaced) = replaced {
        writeln!(
            text,
            "The data that was there is in {}.",
            replaced.display()
        )?;
    }
    if !encrypted_with.is_empty() {
        writeln!(
            text,
            "Its secrets are encrypted: start the server with --encryption-key-file and the key whose id is \
             {encrypted_with}."
        )?;
    }
    print(&text)
}
