//! A panic inside Lance on damaged bytes becomes an error that names the object.

use std::future::Future;

use crate::error::{Error, Result};

/// Run `work` in its own task; a panic of it is [`Error::Internal`] naming `object`. Lance slices by
/// lengths it finds in files that carry no checksum, so damage can panic (`docs/format/lance-notes.md` 1).
pub async fn guarded<T, F>(object: &str, work: F) -> Result<T>
where
    T: Send + 'static,
    F: Future<Output = Result<T>> + Send + 'static,
{
    match tokio::spawn(work).await {
        Ok(result) => result,
        Err(e) if e.is_panic() => {
            let payload = e.into_panic();
            let text = payload
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| payload.downcast_ref::<&str>().copied())
                .unwrap_or("no message");
            let line = text.lines().next().unwrap_or_default();
            Err(Error::internal(format!(
                "{object}: the bytes are damaged, the Lance reader panicked on them ({line})"
            )))
        }
        Err(_) => Err(Error::storage(object, "the task was cancelled")),
    }
}
