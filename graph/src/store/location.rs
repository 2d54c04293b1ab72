//! From what an operator types to the one URI of a root.

use crate::error::{Error, Result};

/// The scheme of a URI; `file` for a plain path.
pub fn scheme(uri: &str) -> &str {
    match uri.split_once("://") {
        Some((scheme, _)) if !scheme.is_empty() && !scheme.contains('/') => scheme,
        _ => "file",
    }
}

/// Turn a `file://` URI into a path and trim trailing slashes. Percent-encoding of a `file://` URI is
/// decoded. Other URIs only lose their trailing slashes.
pub fn normalize(uri: &str) -> Result<String> {
    let text = if scheme(uri) == "file" && uri.contains("://") {
        let url = url::Url::parse(uri)
            .map_err(|e| Error::refused(format!("'{uri}' is not a valid URL: {e}")))?;
        if url.query().is_some() || url.fragment().is_some() {
            return Err(Error::refused(format!(
                "'{uri}' holds '?' or '#', which end the path of a URL; write the plain path instead"
            )));
        }
        let path = url
            .to_file_path()
            .map_err(|()| Error::refused(format!("'{uri}' names no local path")))?;
        path.into_os_string()
            .into_string()
            .map_err(|_| Error::refused(format!("'{uri}' is not valid UTF-8")))?
    } else {
        uri.to_string()
    };
    let trimmed = text.trim_end_matches('/');
    if trimmed.is_empty() {
        return if text.is_empty() {
            Err(Error::refused("the graph location is empty"))
        } else {
            Ok("/".to_string())
        };
    }
    Ok(trimmed.to_string())
}

/// [`normalize`], then for plain local paths the canonical path (symlinks, `.`, `..` and relative
/// parts resolved). A missing, unreadable or non-UTF-8 path and a path that is no folder are errors:
/// a local root is always opened by its absolute path (`docs/format/lance-notes.md` 5).
pub fn resolve(uri: &str) -> Result<String> {
    let normal = normalize(uri)?;
    if scheme(&normal) != "file" {
        return Ok(normal);
    }
    let canonical = std::fs::canonicalize(&normal).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => Error::not_found(format!(
            "{normal}: no such folder; name the root of a graph"
        )),
        _ => Error::storage(normal.clone(), e),
    })?;
    if !canonical.is_dir() {
        return Err(Error::refused(format!(
            "{} is a file, not the root folder of a graph",
            canonical.display()
        )));
    }
    canonical
        .into_os_string()
        .into_string()
        .map_err(|_| Error::refused(format!("{normal}: the path is not valid UTF-8")))
}

/// [`resolve`] for a root that is to be created: a local folder that is not there yet is made.
/// Lance reads a `?` in a path as the start of a query, so that branches would lie elsewhere: it is refused.
pub fn resolve_new(uri: &str) -> Result<String> {
    let normal = normalize(uri)?;
    if normal.contains('?') {
        return Err(Error::refused(format!(
            "{normal}: a graph cannot lie at a path with '?'; choose another one"
        )));
    }
    if scheme(&normal) == "file" {
        std::fs::create_dir_all(&normal)
            .map_err(|e| Error::storage(format!("cannot create the folder {normal}"), e))?;
    }
    resolve(uri)
}

/// When the final URI has the shape of a graph inside a cluster, the cluster root and the graph id:
/// it ends `.omni` and its last `/graphs/` splits it into a non-empty root and a non-empty id without
/// `/` (`docs/format/upgrade-protocol.md` 2 step 4).
pub fn cluster_shape(uri: &str) -> Option<(&str, &str)> {
    let uri = uri.trim_end_matches('/');
    let stem = uri.strip_suffix(".omni")?;
    let at = stem.rfind("/graphs/")?;
    let root = &stem[..at];
    let id = &stem[at + "/graphs/".len()..];
    // `s3://graphs/g.omni` is a graph of the bucket `graphs`, not one inside the cluster `s3:/`.
    let inside_scheme = scheme(uri) != "file" && !root.contains("://");
    let shaped = !root.is_empty() && !id.is_empty() && !id.contains('/');
    (shaped && !inside_scheme).then_some((root, id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normalizes() {
        for (given, want) in [
            ("/a/b//", "/a/b"),
            ("file:///a/b/", "/a/b"),
            ("file:///a%20b", "/a b"),
            ("s3://bucket/p/", "s3://bucket/p"),
            ("./x", "./x"),
            ("/", "/"),
        ] {
            assert_eq!(normalize(given).ok().as_deref(), Some(want), "{given}");
        }
        assert!(normalize("").is_err());
    }

    #[test]
    fn cluster_shapes() {
        assert_eq!(
            cluster_shape("/srv/c/graphs/g1.omni"),
            Some(("/srv/c", "g1"))
        );
        assert_eq!(
            cluster_shape("/c/graphs/x/graphs/g.omni/"),
            Some(("/c/graphs/x", "g"))
        );
        assert_eq!(
            cluster_shape("s3://bucket/graphs/g.omni"),
            Some(("s3://bucket", "g"))
        );
        for plain in [
            "s3://graphs/g.omni",
            "/graphs/g.omni",
            "/c/graphs/.omni",
            "/c/graphs/a/b.omni",
            "/c/g.omni",
            "/c/graphs/g",
        ] {
            assert_eq!(cluster_shape(plain), None, "{plain}");
        }
    }
}
