//! The schema of the SQLite file, as the steps that lead to it from an empty file.
//!
//! The primary key of a row is the revision that created its key. It is unique and growing, so new rows are
//! appended to one tree, and the keys need no index: memory has them.
//!
//! A step that has been released never changes; a new schema is a new step at the end, and gets a test that opens
//! the data directory of the version before it (`crates/server/tests/data/`).

use rusqlite::Connection;

use super::schema::APPLICATION_ID;

/// Version 1, of Kennel 0.1.0.
const OBJECTS: &str = "
    CREATE TABLE kv (
        created INTEGER PRIMARY KEY,
        modified INTEGER NOT NULL,
        key TEXT NOT NULL,
        value BLOB NOT NULL
    );
    CREATE TABLE revision (reserved INTEGER NOT NULL);
    INSERT INTO revision VALUES (0);";

/// Version 2. Rows of version 1 have no checksum until they are next written. Damaged rows are kept as they are, so
/// their columns have no types.
const CHECKSUMS: &str = "
    ALTER TABLE kv ADD COLUMN checksum INTEGER;
    CREATE TABLE damaged (
        created INTEGER PRIMARY KEY,
        modified, key, value, checksum,
        reason TEXT NOT NULL
    );";

/// Version 3. The counter has no checksum until it is next written.
const CHECKSUM_OF_REVISION: &str = "
    ALTER TABLE revision ADD COLUMN checksum INTEGER;";

/// The step at index n leads from version n to version n + 1.
const STEPS: [&str; 3] = [OBJECTS, CHECKSUMS, CHECKSUM_OF_REVISION];

/// The version that this program writes.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "there are few steps"
)]
pub const SCHEMA_VERSION: i32 = STEPS.len() as i32;

/// The first version whose rows have checksums and which has a table of damaged rows.
pub(super) const WITH_CHECKSUMS: i32 = 2;

/// Leads from version `found`, 0 for an empty file, to the current one. One transaction: a crash leaves the old
/// schema or the new one.
pub(super) fn run(connection: &Connection, found: i32) -> rusqlite::Result<()> {
    if found == SCHEMA_VERSION {
        return Ok(());
    }
    let done = usize::try_from(found).unwrap_or(0);
    let steps = STEPS.get(done..).unwrap_or_default().concat();
    let migrated = connection.execute_batch(&format!(
        "BEGIN IMMEDIATE;
         {steps}
         PRAGMA application_id = {APPLICATION_ID};
         PRAGMA user_version = {SCHEMA_VERSION};
         COMMIT;"
    ));
    if migrated.is_err() && !connection.is_autocommit() {
        connection.execute_batch("ROLLBACK")?;
    }
    migrated?;
    if found > 0 {
        tracing::info!("migrated the database from schema version {found} to {SCHEMA_VERSION}");
    }
    Ok(())
}
