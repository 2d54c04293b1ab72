//! Whether the store of a root creates an object only if it is absent.
//!
//! Every commit and every object under `__history` rests on that. A store that ignores the condition
//! overwrites and says nothing (`docs/format/lance-notes.md` 6), so a run on a remote store asks first,
//! with an object of its own.

use bytes::Bytes;
use object_store::PutPayload;

use super::{Root, location};
use crate::error::{Error, Result};

/// The folder of probe objects, beside everything the format names: no reader of any release lists the
/// root itself.
pub const PROBE_DIR: &str = "__conditional_create_probe";

/// Bound of a read of a probe.
const PROBE_BYTES: u64 = 1 << 10;

/// Names of object_store's setting, in lower case, as its S3 client takes them from the environment.
const SETTINGS: [&str; 2] = ["aws_conditional_put", "conditional_put"];

/// Schemes whose conditional create is an operation of this machine.
const LOCAL_SCHEMES: [&str; 3] = ["file", "file-object-store", "memory"];

impl Root {
    /// Whether the store is a service that may or may not honour a condition.
    pub fn is_remote(&self) -> bool {
        !LOCAL_SCHEMES.contains(&location::scheme(self.uri()))
    }

    /// Refuse an environment that switches conditional creation off. Sends nothing.
    pub fn require_conditional_setting(&self) -> Result<()> {
        if location::scheme(self.uri()) != "s3" {
            return Ok(());
        }
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        match switched_off(variables) {
            None => Ok(()),
            Some(name) => Err(Error::refused(format!(
                "the variable {name} is 'disabled': without conditional creation two writers could \
                 overwrite each other. Nothing of the graph was written; unset the variable, or use a \
                 store that creates an object only if it is absent (If-None-Match: *)"
            ))),
        }
    }

    /// Prove that the store refuses to create an object that exists: create one of our own, try to create it
    /// again, delete it. [`Error::Refused`] when the store replaced it or cannot create on a condition.
    pub async fn prove_conditional_create(&self) -> Result<()> {
        let id = ulid::Ulid::from_datetime(std::time::SystemTime::now());
        let key = format!("{PROBE_DIR}/{id}");
        let proof = self.try_conditional_create(&key).await;
        // An upgrade without schema-apply locks needs no right to delete, and nobody reads a probe that stays.
        let _ = self.delete(&key).await;
        proof
    }

    async fn try_conditional_create(&self, key: &str) -> Result<()> {
        let first = Bytes::from(format!("{key} created"));
        let second = Bytes::from(format!("{key} replaced"));
        let unsupported = |why: String| {
            Error::refused(format!(
                "the store of {} does not create objects only if they are absent: {why}. Two writers could \
                 overwrite each other there, so nothing of the graph was written; move the root to a store \
                 that honours If-None-Match: *",
                self.uri()
            ))
        };
        if let Err(e) = self.create_equal(key, first.clone(), PROBE_BYTES).await {
            return Err(match not_implemented(&e) {
                true => unsupported(e.to_string()),
                false => e.within("cannot tell whether the store honours conditions"),
            });
        }
        // Not `create`: after a failed request that would answer with the object, which proves nothing. A 409
        // counts as a refusal, since only a store that looks at the condition gives it.
        let path = self.path(key)?;
        match self
            .store()
            .put_if_absent(&path, PutPayload::from_bytes(second))
            .await
        {
            Err(object_store::Error::AlreadyExists { .. }) => {}
            Ok(()) => {
                return Err(unsupported(format!(
                    "it replaced the probe object {key} although that existed"
                )));
            }
            Err(e) => {
                let context = format!(
                    "cannot tell whether the store honours conditions: second create of {key}"
                );
                return Err(Error::object(context, e));
            }
        }
        match self.get(key, PROBE_BYTES).await? {
            Some(found) if found == first => Ok(()),
            _ => Err(unsupported(format!(
                "it refused to replace the probe object {key} and replaced it all the same"
            ))),
        }
    }
}

fn not_implemented(error: &Error) -> bool {
    let Error::Storage { cause, .. } = error else {
        return false;
    };
    matches!(
        cause.downcast_ref::<object_store::Error>(),
        Some(object_store::Error::NotImplemented { .. } | object_store::Error::NotSupported { .. })
    )
}

/// The variable that switches conditional creation off, if one does.
fn switched_off(variables: impl Iterator<Item = (String, String)>) -> Option<String> {
    variables
        .filter(|(name, _)| SETTINGS.contains(&name.to_ascii_lowercase().as_str()))
        .find(|(_, value)| value.trim() == "disabled")
        .map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::RootOptions;

    fn off(pairs: &[(&str, &str)]) -> Option<String> {
        let pair = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
        switched_off(pairs.iter().map(pair))
    }

    #[test]
    fn the_setting_is_found_in_every_spelling() {
        for name in [
            "AWS_CONDITIONAL_PUT",
            "aws_conditional_put",
            "CONDITIONAL_PUT",
        ] {
            assert_eq!(
                off(&[("AWS_REGION", "x"), (name, " disabled ")]).as_deref(),
                Some(name)
            );
            assert_eq!(off(&[(name, "etag")]), None);
        }
        assert_eq!(off(&[("AWS_SKIP_SIGNATURE", "disabled")]), None);
        assert_eq!(off(&[]), None);
    }

    #[tokio::test]
    async fn a_store_that_refuses_is_proved_and_left_as_it_was() {
        let root = Root::open("memory:///graph", RootOptions::default()).await;
        let root = root.unwrap_or_else(|e| unreachable!("{e}"));
        assert!(!root.is_remote());
        assert!(root.prove_conditional_create().await.is_ok());
        assert!(root.require_conditional_setting().is_ok());
        assert_eq!(root.list_sorted("").await.ok(), Some(Vec::new()));
    }
}
