//! Table datasets at their pins (`docs/format/tables-and-schema.md` 1 to 3). Read-only.

mod open;
mod pin;

pub use open::{
    OpenedTable, is_detached, open_linear_pin, open_pin, table_location, transaction_uuid,
};
pub use pin::manifest_metadata;
