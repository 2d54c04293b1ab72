//! The archive object `__history/schemas/<sha256>.schema` (`docs/format/history.md` 6).
//!
//! Layout: `OGSC0001`, three little-endian u64 lengths, then head JSON, source and IR, nothing after.
//! Named by its own SHA-256, so two contracts with equal texts share one object.

use super::Contract;
use crate::digest::sha256_hex;
use crate::error::{Error, Result};
use crate::model::ContractHead;
use crate::model::measure::MAX_OBJECT_BYTES;

/// The first eight bytes.
pub const MAGIC: &[u8; 8] = b"OGSC0001";
/// Magic and three lengths.
const HEADER_BYTES: usize = 32;

impl Contract {
    /// The bytes of the archive object. Above 64 MiB: [`Error::Refused`].
    pub fn encode(&self) -> Result<Vec<u8>> {
        let head = self.head.to_json();
        let parts = [head.as_str(), self.source.as_str(), self.ir.as_str()];
        let size = parts
            .iter()
            .fold(HEADER_BYTES, |sum, part| sum.saturating_add(part.len()));
        if size as u64 > MAX_OBJECT_BYTES {
            return Err(Error::refused(format!(
                "the schema contract would be archived in {size} bytes, above the limit of {MAX_OBJECT_BYTES}"
            )));
        }
        let mut bytes = Vec::with_capacity(size);
        bytes.extend_from_slice(MAGIC);
        for part in parts {
            bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
        }
        for part in parts {
            bytes.extend_from_slice(part.as_bytes());
        }
        Ok(bytes)
    }

    /// The name of the archive object without `.schema`: the SHA-256 of its bytes.
    pub fn content_hash(&self) -> Result<String> {
        Ok(sha256_hex(&self.encode()?))
    }

    /// Decode an archive object; every deviation from what [`Contract::encode`] writes is
    /// [`Error::Internal`]. `object` names it in the error.
    pub fn decode(bytes: &[u8], object: &str) -> Result<Self> {
        decode(bytes).map_err(|why| Error::internal(format!("{object}: {why}")))
    }
}

fn decode(bytes: &[u8]) -> Result<Contract, String> {
    if bytes.len() as u64 > MAX_OBJECT_BYTES {
        return Err(format!(
            "{} bytes, above the limit of {MAX_OBJECT_BYTES}",
            bytes.len()
        ));
    }
    let mut rest = bytes
        .strip_prefix(MAGIC.as_slice())
        .ok_or("does not start with OGSC0001")?;
    let mut lengths = [0_usize; 3];
    for length in &mut lengths {
        let (field, after) = rest
            .split_first_chunk::<8>()
            .ok_or("the header is cut short")?;
        *length = usize::try_from(u64::from_le_bytes(*field))
            .map_err(|_| "a length is out of range".to_string())?;
        rest = after;
    }
    let mut part = |what: &str, length: usize| -> Result<&str, String> {
        let (text, after) = rest
            .split_at_checked(length)
            .ok_or_else(|| format!("the {what} of {length} bytes is cut short"))?;
        rest = after;
        std::str::from_utf8(text).map_err(|e| format!("the {what} is not UTF-8: {e}"))
    };
    let [head_bytes, source_bytes, ir_bytes] = lengths;
    let head = part("head", head_bytes)?;
    let source = part("source", source_bytes)?.to_string();
    let ir = part("IR", ir_bytes)?.to_string();
    if !rest.is_empty() {
        return Err(format!("{} bytes follow the IR", rest.len()));
    }
    let parsed: ContractHead =
        serde_json::from_str(head).map_err(|e| format!("the head is no contract head: {e}"))?;
    // The head is the only part with more than one spelling; anything but the canonical one would
    // decode to a contract of another name.
    if parsed.to_json() != head {
        return Err("the head is not in its canonical form".into());
    }
    Ok(Contract {
        head: parsed,
        source,
        ir,
    })
}
