//! Blobs of an append or a merge that lie outside of the graph: their bytes are copied, within the bound of the load
//! (`docs/format/tables-and-schema.md` 8.2). Reads those objects and writes nothing.

use std::collections::HashMap;
use std::sync::Arc;

use futures::{StreamExt as _, TryStreamExt as _};
use graph::Error;
use graph::store::Root;
use lance::io::{ObjectStore, ObjectStoreParams};
use object_store::ObjectStoreExt as _;
use object_store::path::Path;
use records::{Blob, Record, Types, Value};

use super::KEYED_BYTES;
use super::rows::over;
use crate::error::{Result, WriteError};

/// Objects asked for at once.
const CONCURRENT_READS: usize = 8;

/// One object outside of the graph, as the first record names it.
struct Source {
    store: Arc<ObjectStore>,
    path: Path,
    size: u64,
    /// For messages: line, table, property, URI.
    named: String,
}

/// Replace every reference by the bytes it names. The sizes are asked first: together they may hold as many bytes as a
/// load may, else nothing is read.
pub(super) async fn copy(root: &Root, types: &Types, records: &mut [Vec<Record>]) -> Result<()> {
    let mut uses: HashMap<String, u64> = HashMap::new();
    let mut named: Vec<(String, String)> = Vec::new();
    each(types, records, |uri, place| {
        let count = uses.entry(uri.to_string()).or_default();
        if *count == 0 {
            named.push((uri.to_string(), place()));
        }
        *count += 1;
        None
    });
    if named.is_empty() {
        return Ok(());
    }
    let asked = named.into_iter().map(|(uri, named)| async move {
        Ok::<_, WriteError>((open(root, &uri, named).await?, uri))
    });
    let sources: Vec<(Source, String)> = futures::stream::iter(asked)
        .buffered(CONCURRENT_READS)
        .try_collect()
        .await?;
    let total = sources.iter().fold(0_u64, |sum, (source, uri)| {
        let times = uses.get(uri).copied().unwrap_or(1);
        sum.saturating_add(source.size.saturating_mul(times))
    });
    if total > KEYED_BYTES {
        return Err(over(
            "the size in bytes of blobs outside of the graph in one load".into(),
            KEYED_BYTES,
            total,
        ));
    }
    let reads = sources
        .into_iter()
        .map(|(source, uri)| async move { Ok::<_, WriteError>((uri, read(source).await?)) });
    let bytes: HashMap<String, Vec<u8>> = futures::stream::iter(reads)
        .buffered(CONCURRENT_READS)
        .try_collect()
        .await?;
    each(types, records, |uri, _| bytes.get(uri).cloned());
    Ok(())
}

/// Every reference, in input order within a table; an answer takes its place.
fn each(
    types: &Types,
    records: &mut [Vec<Record>],
    mut visit: impl FnMut(&str, &dyn Fn() -> String) -> Option<Vec<u8>>,
) {
    for record in records.iter_mut().flatten() {
        let table = &types.tables()[record.table];
        let line = record.line;
        for (property, value) in table.properties.iter().zip(&mut record.values) {
            let Value::Blob(Blob::External(uri)) = value else {
                continue;
            };
            let place = || {
                format!(
                    "line {line}: {}.{} names '{uri}'",
                    table.table_key, property.name
                )
            };
            if let Some(bytes) = visit(uri, &place) {
                *value = Value::Blob(Blob::Bytes(bytes));
            }
        }
    }
}

/// Why a text names no object for certain. What a URL parser would drop or repair is refused: it would be another object.
fn unusable(uri: &str) -> Option<&'static str> {
    let Some((scheme, rest)) = uri.split_once("://") else {
        return Some("which is no URI");
    };
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    match scheme {
        "file" if !host.is_empty() => return Some("a file of another host"),
        "file" => {}
        "s3" | "gs" | "az" | "abfss" if host.is_empty() => return Some("which names no bucket"),
        "s3" | "gs" | "az" | "abfss" => {}
        _ => return Some("whose scheme is not supported"),
    }
    if uri.contains(['?', '#']) || uri.contains(char::is_control) {
        return Some("which holds a query, a fragment or a control character");
    }
    if uri.trim() != uri {
        return Some("which begins or ends with a blank");
    }
    if path.is_empty() || path.ends_with('/') {
        return Some("which names no object");
    }
    None
}

async fn open(root: &Root, uri: &str, named: String) -> Result<Source> {
    if let Some(why) = unusable(uri) {
        return Err(WriteError::invalid(format!(
            "{named}, {why}; write a whole URI such as file:///data/x.png or s3://bucket/x.png, with anything special in \
             its path percent-encoded, or the bytes as \"base64:...\""
        )));
    }
    let params = ObjectStoreParams::default();
    let registry = root.session().store_registry();
    let (store, path) = ObjectStore::from_uri_and_params(registry, uri, &params)
        .await
        .map_err(|e| Error::lance(format!("{named}, whose store cannot be opened"), e))?;
    // A pipe would be waited for, and a device says that it holds nothing.
    if uri.starts_with("file:") {
        let found = std::fs::metadata(lance_io::local::to_local_path(&path));
        let found =
            found.map_err(|e| Error::refused(format!("{named}, which cannot be read: {e}")))?;
        if !found.is_file() {
            return Err(WriteError::invalid(format!(
                "{named}, which is no regular file; nothing was written"
            )));
        }
    }
    let found = store.inner.head(&path).await;
    let size = found
        .map_err(|e| Error::object(format!("{named}, which cannot be read"), e))?
        .size;
    Ok(Source {
        store,
        path,
        size,
        named,
    })
}

async fn read(source: Source) -> Result<Vec<u8>> {
    let Source {
        store,
        path,
        size,
        named,
    } = source;
    let read = async { store.inner.get(&path).await?.bytes().await };
    let bytes = read
        .await
        .map_err(|e| Error::object(format!("{named}, which cannot be read"), e))?;
    if bytes.len() as u64 != size {
        return Err(WriteError::invalid(format!(
            "{named}, which changed from {size} to {} bytes while it was read; run the command again",
            bytes.len()
        )));
    }
    Ok(bytes.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_names_one_object_is_read() {
        for good in [
            "file:///a b/c%3Fd.bin",
            "s3://bucket/a/b.bin",
            "az://container/x",
            "abfss://c@account.dfs.core.windows.net/x",
        ] {
            assert_eq!(unusable(good), None, "{good}");
        }
        for bad in [
            "a/b",
            "file:a",
            "file:///",
            "file://",
            "file:///a/",
            "file://host/a",
            "file:///a\n",
            "file:///a ",
            "s3://bucket",
            "s3://bucket/",
            "s3:///a",
            "s3://bucket/a?x=1",
            "s3://bucket/a#b",
            "http://host/a",
            "file+uring:///a",
        ] {
            assert!(unusable(bad).is_some(), "{bad}");
        }
    }
}
