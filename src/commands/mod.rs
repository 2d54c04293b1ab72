//! One file a command.

pub mod commit_list;
pub mod snapshot;
pub mod upgrade;
pub mod verify;
pub mod version;

/// `None` for main.
fn branch(name: &str) -> Option<&str> {
    (name != graph::model::names::MAIN).then_some(name)
}
