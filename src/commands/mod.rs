//! One file a command.

pub mod branch;
pub mod changes;
pub mod cleanup;
pub mod commit_list;
pub mod commit_show;
pub mod export;
pub mod indexes;
pub mod init;
pub mod load;
pub mod optimize;
pub mod recover;
pub mod repair;
pub mod repair_legacy;
pub mod schema_show;
pub mod snapshot;
pub mod upgrade;
pub mod verify;
pub mod version;

/// `None` for main.
fn logical(name: &str) -> Option<&str> {
    (name != graph::model::names::MAIN).then_some(name)
}

/// Microseconds since the epoch as UTC seconds; the raw number when it is outside the calendar.
fn time(micros: i64) -> String {
    chrono::DateTime::from_timestamp_micros(micros).map_or_else(
        || format!("{micros} µs"),
        |t| t.format("%Y-%m-%dT%H:%M:%SZ").to_string(),
    )
}
