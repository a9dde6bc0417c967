//! `kennel migrate`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kennel_server::migrate::Migration;
use kennel_server::server::Endpoints;

use crate::inspect::print;
use crate::migrate_args::{MigrateArgs, Place};

pub(crate) async fn run(args: &MigrateArgs) -> anyhow::Result<()> {
    let migration = |endpoints: &Endpoints, dir: &PathBuf| Migration {
        etcd: args.etcd(endpoints.clone()),
        dir: dir.clone(),
        progress: Arc::new(tell),
    };
    let text = match (&args.from, &args.to) {
        (Place::Directory(dir), Place::Etcd(etcd)) => {
            let migration = migration(etcd, dir);
            let ttl = Duration::from_secs(args.event_ttl);
            let moved = migration.to_etcd(args.new_revisions, ttl).await?;
            let moved = moved.map(|moved| (moved.objects, moved.revisions));
            let dir = dir.display();
            format!(
                "{}Start the server with --data-dir {dir} --store {etcd}. The old database is {dir}/kennel.db.migrated.\n",
                summary(moved)
            )
        }
        (Place::Etcd(etcd), Place::Directory(dir)) => {
            let moved = migration(etcd, dir).to_directory().await?;
            let moved = moved.map(|moved| (moved.objects, moved.revisions));
            format!(
                "{}Start the server with --data-dir {} and without --store. The etcd is unchanged.\n",
                summary(moved),
                dir.display()
            )
        }
        _ => anyhow::bail!("one of --from and --to is a data directory, and the other an etcd"),
    };
    print(&text)
}

/// Stdout is for the outcome.
#[expect(clippy::print_stderr, reason = "progress of a command")]
fn tell(what: &str) {
    eprintln!("{what}");
}

fn summary(moved: Option<(usize, (u64, u64))>) -> String {
    match moved {
        Some((objects, (from, to))) => format!(
            "Moved and compared {objects} objects. Resource versions, up to {from}, continue at {to}.\n"
        ),
        None => "Ended the migration that was interrupted.\n".to_owned(),
    }
}
