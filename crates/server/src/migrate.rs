//! Moves the objects of a server that does not run between its data directory and an etcd, and notes where they are.
//!
//! Certificates and keys stay in the directory. The order of the last steps is such that no server starts on a part of the objects,
//! or on those that are not current any more, wherever the process is killed; a repetition goes on.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kennel_store::migrate::{self, Moved, Progress, Session, ToEtcd};
use kennel_store::{DATABASE_FILE, EtcdOptions, OpenError};

use crate::data_dir::{
    self, DataDirLock, ETCD_FILE, ETCD_NOTE, MIGRATED_FILE, MIGRATION_FILE, MIGRATION_STAGING,
};
use crate::etcd_store::{self, EtcdConfig};
use crate::expire;
use crate::object;
use crate::registry;
use crate::start_error::StartError;

/// What a database has beside its file.
const SUFFIXES: [&str; 3] = ["", "-wal", "-shm"];

#[derive(Debug, thiserror::Error)]
pub enum MigrationError {
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("a Kennel server runs with {}; stop it first", .0.display())]
    Live(PathBuf),
    #[error("cannot move the objects between {} and {etcd}", dir.display())]
    Failed {
        dir: PathBuf,
        etcd: String,
        source: Box<migrate::MigrateError>,
    },
    #[error("{} has no objects of a server", .0.display())]
    NoObjects(PathBuf),
    #[error("{} has the objects of a server already", .0.display())]
    Occupied(PathBuf),
    #[error(
        "{} is not the directory of a server on {etcd}: it lacks its certificate authority and keys, the directory pki", dir.display()
    )]
    NoAuthority { dir: PathBuf, etcd: String },
    #[error("cannot use {}", path.display())]
    File { path: PathBuf, source: io::Error },
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> MigrationError {
    |source| MigrationError::File {
        path: path.to_owned(),
        source,
    }
}

/// Both sides of a migration.
pub struct Migration {
    pub etcd: EtcdConfig,
    pub dir: PathBuf,
    pub progress: Progress,
}

impl Migration {
    fn lock(&self) -> Result<DataDirLock, MigrationError> {
        if !self.dir.is_dir() {
            return Err(MigrationError::NoObjects(self.dir.clone()));
        }
        DataDirLock::acquire(&self.dir).map_err(|error| match error {
            OpenError::InUse { dir } => MigrationError::Live(dir),
            other => StartError::from(other).into(),
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    fn failed(&self, source: migrate::MigrateError) -> MigrationError {
        MigrationError::Failed {
            dir: self.dir.clone(),
            etcd: self.etcd.endpoints.to_string(),
            source: Box::new(source),
        }
    }

    async fn connect(&self, id: &str) -> Result<Session, MigrationError> {
        let options = EtcdOptions {
            prefix: etcd_store::OBJECTS.to_owned(),
            ignored: etcd_store::ignored(),
            ..etcd_store::connection(&self.etcd, etcd_store::holder(id, &self.dir))?
        };
        let session = Session::open(&options).await;
        session.map_err(|source| self.failed(source))
    }

    /// Moves the objects into etcd. Events get what is left of this lifetime.
    pub async fn to_etcd(
        &self,
        new_revisions: bool,
        event_ttl: Duration,
    ) -> Result<Option<Moved>, MigrationError> {
        let _lock = self.lock()?;
        self.refuse_half_moved()?;
        let (id, is_noted) = self.id();
        if let Some(store) = data_dir::etcd_of(&self.dir) {
            if !is_noted || store != self.etcd.endpoints.to_string() {
                let dir = self.dir.clone();
                return Err(StartError::ObjectsInEtcd { dir, store }.into());
            }
            let session = self.connect(&id).await?;
            let ended = self.end(&session).await;
            session.close().await;
            return ended.map(|()| None);
        }
        if !self.path(DATABASE_FILE).exists() {
            return Err(MigrationError::NoObjects(self.dir.clone()));
        }
        // Before etcd is claimed with it: a repetition need not wait until the claim of a killed one has expired.
        let note = self.path(MIGRATION_FILE);
        fs::write(&note, &id).map_err(at(&note))?;
        let session = self.connect(&id).await?;
        let moved = self.fill(&session, id, new_revisions, event_ttl).await;
        session.close().await;
        moved.map(Some)
    }

    async fn fill(
        &self,
        session: &Session,
        id: String,
        new_revisions: bool,
        event_ttl: Duration,
    ) -> Result<Moved, MigrationError> {
        let events = object::prefix(registry::core("events"), None);
        let migration = ToEtcd {
            database: self.path(DATABASE_FILE),
            id: id.clone(),
            from: self.dir.display().to_string(),
            new_revisions,
            lifetime: Arc::new(move |key, value| {
                let is_event = key.starts_with(&events);
                is_event.then(|| expire::time_left(value, event_ttl))
            }),
            progress: Arc::clone(&self.progress),
        };
        let moved = migrate::to_etcd(session, &migration).await;
        let moved = moved.map_err(|source| self.failed(source))?;
        etcd_store::write_file(&self.dir, &id, &self.etcd)?;
        self.end(session).await?;
        Ok(moved)
    }

    /// From here on, a server with the directory alone is refused, and one on etcd until the end.
    async fn end(&self, session: &Session) -> Result<(), MigrationError> {
        for suffix in SUFFIXES {
            let from = self.path(&format!("{DATABASE_FILE}{suffix}"));
            let to = self.path(&format!("{MIGRATED_FILE}{suffix}"));
            rename_if_there(&from, &to)?;
        }
        sync(&self.dir)?;
        session
            .finish()
            .await
            .map_err(|source| self.failed(source))?;
        remove_if_there(&self.path(MIGRATION_FILE))
    }

    /// The id of the server, or that of a migration that was begun, and whether one was.
    fn id(&self) -> (String, bool) {
        let noted = fs::read_to_string(self.path(MIGRATION_FILE)).unwrap_or_default();
        if noted.is_empty() {
            (etcd_store::id(&self.dir), false)
        } else {
            (noted, true)
        }
    }

    fn refuse_half_moved(&self) -> Result<(), MigrationError> {
        if data_dir::is_half_restored(&self.dir) {
            return Err(StartError::HalfRestored(self.dir.clone()).into());
        }
        if data_dir::is_half_migrated(&self.dir) {
            return Err(StartError::HalfMigrated(self.dir.clone()).into());
        }
        Ok(())
    }

    /// Moves the objects of etcd into the directory. Etcd keeps them; nothing uses them any more.
    pub async fn to_directory(&self) -> Result<Option<Moved>, MigrationError> {
        let _lock = self.lock()?;
        if data_dir::is_half_restored(&self.dir) {
            return Err(StartError::HalfRestored(self.dir.clone()).into());
        }
        let (staging, database) = (self.path(MIGRATION_STAGING), self.path(DATABASE_FILE));
        if database.exists() && staging.exists() {
            // The database was verified before it was moved there.
            return self.install(&staging).map(|()| None);
        }
        if database.exists() {
            return Err(MigrationError::Occupied(self.dir.clone()));
        }
        if !self.path(data_dir::PKI).exists() {
            return Err(MigrationError::NoAuthority {
                dir: self.dir.clone(),
                etcd: self.etcd.endpoints.to_string(),
            });
        }
        if staging.exists() {
            fs::remove_dir_all(&staging).map_err(at(&staging))?;
        }
        let session = self.connect(&etcd_store::id(&self.dir)).await?;
        let moved = self.empty(&session, &staging).await;
        session.close().await;
        moved.map(Some)
    }

    async fn empty(&self, session: &Session, staging: &Path) -> Result<Moved, MigrationError> {
        let created = DirBuilder::new().mode(0o700).create(staging);
        created.map_err(at(staging))?;
        let file = staging.join(DATABASE_FILE);
        let moved = migrate::to_sqlite(session, &file, &self.progress).await;
        let moved = match moved {
            Ok(moved) => moved,
            Err(source) => {
                // Nothing has changed: a server may start as before.
                fs::remove_dir_all(staging).map_err(at(staging))?;
                return Err(self.failed(source));
            }
        };
        sync(staging)?;
        let database = self.path(DATABASE_FILE);
        fs::rename(&file, &database).map_err(at(&database))?;
        self.install(staging)?;
        Ok(moved)
    }

    /// The directory has the objects: forgets etcd.
    fn install(&self, staging: &Path) -> Result<(), MigrationError> {
        sync(&self.dir)?;
        remove_if_there(&self.path(ETCD_FILE))?;
        remove_if_there(&self.path(ETCD_NOTE))?;
        remove_if_there(&self.path(MIGRATION_FILE))?;
        fs::remove_dir_all(staging).map_err(at(staging))?;
        sync(&self.dir)
    }
}

fn rename_if_there(from: &Path, to: &Path) -> Result<(), MigrationError> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        renamed => renamed.map_err(at(from)),
    }
}

fn remove_if_there(path: &Path) -> Result<(), MigrationError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(at(path)),
    }
}

/// New names survive a power cut only if their directory is synced.
fn sync(dir: &Path) -> Result<(), MigrationError> {
    let synced = fs::File::open(dir).and_then(|dir| dir.sync_all());
    synced.map_err(at(dir))
}
