//! Ids that are derived from a key.

use crate::error::RecordError;
use crate::types::TableType;
use crate::value::Value;

pub(crate) fn derive(
    _table: &TableType,
    _endpoints: Option<&(String, String)>,
    _values: &[Value],
) -> Result<Option<String>, RecordError> {
    Ok(None)
}
