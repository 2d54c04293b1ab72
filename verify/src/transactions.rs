//! A manifest repeats its transaction file, byte for byte but for the order of map entries: the one copy that
//! Lance itself keeps (`docs/format/lance-notes.md` 9).

use graph::store::Root;
use graph::{Error, Result};
use lance::Dataset;

/// Most bytes compared: Lance repeats no larger transaction.
const MAX_TRANSACTION_BYTES: u64 = 64 << 20;

/// Why the two copies of the transaction of `dataset`, which stands at `place` below the root, differ. A
/// version whose manifest repeats none, or whose file is gone, has nothing to compare.
pub(crate) async fn difference(
    root: &Root,
    dataset: &Dataset,
    place: &str,
) -> Result<Option<String>> {
    let manifest = dataset.manifest();
    let (Some(file), Some(at)) = (&manifest.transaction_file, manifest.transaction_section) else {
        return Ok(None);
    };
    let Some(stored) = root
        .get(
            &format!("{place}/_transactions/{file}"),
            MAX_TRANSACTION_BYTES,
        )
        .await?
    else {
        return Ok(None);
    };
    let Some(name) = dataset.manifest_location().path.filename() else {
        return Ok(None);
    };
    let key = format!("{place}/_versions/{name}");
    let at = at as u64;
    let prefix = root.get_range(&key, at..at.saturating_add(4)).await?;
    let length = <[u8; 4]>::try_from(prefix.as_ref())
        .map(u32::from_le_bytes)
        .map_err(|_| Error::internal(format!("{key} ends inside its transaction")))?;
    if u64::from(length) != stored.len() as u64 {
        return Ok(Some(format!(
            "its manifest repeats a transaction of {length} bytes, _transactions/{file} has {}",
            stored.len()
        )));
    }
    let from = at.saturating_add(4);
    let repeated = root
        .get_range(&key, from..from.saturating_add(u64::from(length)))
        .await?;
    Ok((counts(&repeated) != counts(&stored)).then(|| {
        format!("its manifest repeats another transaction than _transactions/{file} holds")
    }))
}

/// How often each byte stands in a text: all that two encodings of one message have in common.
fn counts(bytes: &[u8]) -> [u64; 256] {
    let mut out = [0; 256];
    for byte in bytes {
        out[usize::from(*byte)] += 1;
    }
    out
}
