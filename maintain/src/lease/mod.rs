//! The maintenance lease: two maintenance runs on one root do not overlap.
//!
//! It spares runs the work they would lose to each other. It is no part of what makes a run safe: that is the exact
//! version of each publish and, for `cleanup`, the validation of its plan. So a holder that hangs and is taken over
//! does no harm when it wakes up.
//!
//! Writes only below `__maintenance_lease/`. Each tenure is an object of its own, `{epoch}.json`, created only if
//! absent; the highest epoch counts. Taking the lease over, from a holder that let go or fell silent, is the create
//! of the next epoch, which one taker wins. A holder renews its own object, which nobody else ever writes: one that
//! was taken over only touches a lower epoch. The highest object is never deleted, so an epoch never comes again.

mod record;

use std::time::{Duration, Instant};

use bytes::Bytes;
use chrono::Utc;
use graph::manifest::scan::open_branch;
use graph::store::{Created, Root};
use graph::{Error, Result};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use ulid::Ulid;

use crate::stop::Stop;
pub use record::{Holder, LEASE_DIR, Standing};
use record::{epoch, key, standing};

/// Bound of a lease object.
const MAX_BYTES: u64 = 64 << 10;
/// Times another taker may win the next epoch before the command gives up.
const TRIES: u32 = 8;

/// How often a holder renews, and when it counts as gone.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// Pause between renewals.
    pub renew: Duration,
    /// A holder that was silent for longer is stale.
    pub stale_after: Duration,
    /// A stale holder is watched for so long before it is taken over, in case only the clocks differ.
    pub watch: Duration,
}

impl Default for Timing {
    /// Renewed every 15 seconds, stale after two minutes, watched for 20 seconds.
    fn default() -> Self {
        Self {
            renew: Duration::from_secs(15),
            stale_after: Duration::from_secs(120),
            watch: Duration::from_secs(20),
        }
    }
}

/// The lease, held until it is released or dropped.
#[derive(Debug)]
pub struct Lease {
    root: Root,
    epoch: u64,
    holder: Holder,
    stop: Stop,
    renewal: Option<Renewal>,
}

/// The task that renews. It is asked to end and awaited, never aborted: a write of it that is still on its way could
/// land after the release.
#[derive(Debug)]
struct Renewal {
    end: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Renewal {
    async fn finish(self) {
        // Only a task that ended by itself does not listen.
        let _ = self.end.send(());
        let _ = self.task.await;
    }
}

/// Take the lease of `root` for `verb`. A root that is no graph of stamp 14 is refused before anything is written to
/// it. A live holder is [`Error::Refused`] and named; one that is stale is taken over.
pub async fn hold(root: &Root, verb: &str) -> Result<Lease> {
    open_branch(root, None).await?;
    hold_with(root, verb, Timing::default()).await
}

/// [`hold`] with other times, of any root.
pub async fn hold_with(root: &Root, verb: &str, timing: Timing) -> Result<Lease> {
    for _ in 0..TRIES {
        let newest = newest(root).await?;
        if let Some((_, holder)) = &newest {
            match standing(holder, Utc::now(), timing.stale_after) {
                Standing::Free => {}
                Standing::Held => return Err(refused(holder, timing)),
                Standing::Stale => {
                    tokio::time::sleep(timing.watch).await;
                    if self::newest(root).await? != newest {
                        continue;
                    }
                }
            }
        }
        let next = newest.map_or(Some(1), |(epoch, _)| epoch.checked_add(1));
        let next = next
            .ok_or_else(|| Error::internal(format!("{LEASE_DIR} holds the last epoch there is")))?;
        let holder = own(verb);
        let bytes = Bytes::from(holder.to_bytes());
        match root.create(&key(next), bytes.clone(), MAX_BYTES).await? {
            Created::New => return Ok(begin(root, next, holder, timing).await),
            // An own create whose answer was lost.
            Created::Existing(found) if found == bytes => {
                return Ok(begin(root, next, holder, timing).await);
            }
            Created::Existing(_) => {}
        }
    }
    Err(Error::Conflict(format!(
        "other maintenance commands took the lease of {} {TRIES} times; nothing was changed, run the command again",
        root.uri()
    )))
}

fn own(verb: &str) -> Holder {
    let now = Utc::now();
    Holder {
        verb: verb.to_string(),
        host: host(),
        pid: std::process::id(),
        run: Ulid::from_datetime(now.into()).to_string(),
        started_at: now,
        renewed_at: now,
        released_at: None,
    }
}

fn host() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .ok()
        .map(|name| name.trim().to_string())
        .filter(|name| !name.is_empty())
        .or_else(|| std::env::var("HOSTNAME").ok())
        .unwrap_or_else(|| "unknown".to_string())
}

fn refused(holder: &Holder, timing: Timing) -> Error {
    let takeover = holder.renewed_at + timing.stale_after;
    Error::refused(format!(
        "another maintenance command holds the lease of this graph: {}. Nothing was changed. Wait for it to end; it \
         renews the lease every {} seconds, and once it has been silent for {} seconds it counts as dead and the next \
         command takes over (not before {})",
        holder.describe(),
        timing.renew.as_secs(),
        timing.stale_after.as_secs(),
        takeover.format("%Y-%m-%dT%H:%M:%SZ"),
    ))
}

/// The highest epoch and its holder.
async fn newest(root: &Root) -> Result<Option<(u64, Holder)>> {
    for _ in 0..TRIES {
        let names = root.list_names(LEASE_DIR).await?;
        let Some(last) = names.iter().filter_map(|n| epoch(n)).max() else {
            return Ok(None);
        };
        let key = key(last);
        // Gone since the listing: a higher epoch exists, whose holder swept this one.
        if let Some(bytes) = root.get(&key, MAX_BYTES).await? {
            return Ok(Some((last, Holder::parse(&key, &bytes)?)));
        }
    }
    Err(Error::Conflict(format!(
        "the objects of {LEASE_DIR} were replaced {TRIES} times while they were read; nothing was changed, run the \
         command again"
    )))
}

async fn begin(root: &Root, epoch: u64, holder: Holder, timing: Timing) -> Lease {
    sweep(root, epoch).await;
    let stop = Stop::new();
    let (end, ended) = oneshot::channel();
    let task = tokio::spawn(renew(
        root.clone(),
        epoch,
        holder.clone(),
        stop.clone(),
        timing,
        ended,
    ));
    Lease {
        root: root.clone(),
        epoch,
        holder,
        stop,
        renewal: Some(Renewal { end, task }),
    }
}

/// Remove tenures that ended. Best effort: what stays is below the newest epoch and counts for nothing.
async fn sweep(root: &Root, newest: u64) {
    let Ok(names) = root.list_names(LEASE_DIR).await else {
        return;
    };
    for old in names
        .iter()
        .filter_map(|n| epoch(n))
        .filter(|e| *e < newest)
    {
        let _ = root.delete(&key(old)).await;
    }
}

/// Say every [`Timing::renew`] that the holder lives, and ask it to stop once another may have taken over.
async fn renew(
    root: Root,
    epoch: u64,
    mut holder: Holder,
    stop: Stop,
    timing: Timing,
    mut ended: oneshot::Receiver<()>,
) {
    let mut heard = Instant::now();
    while tokio::time::timeout(timing.renew, &mut ended)
        .await
        .is_err()
    {
        let taken = newest(&root).await.ok().flatten();
        if let Some((other, by)) = taken.filter(|(other, _)| *other > epoch) {
            stop.request(format!(
                "the maintenance lease was taken over (epoch {other}) by {}, since this process was silent for too long",
                by.describe()
            ));
            return;
        }
        let now = Instant::now();
        holder.renewed_at = Utc::now();
        if root
            .overwrite(&key(epoch), Bytes::from(holder.to_bytes()))
            .await
            .is_ok()
        {
            heard = now;
        } else if heard.elapsed() + timing.renew > timing.stale_after {
            stop.request(
                "the maintenance lease could not be renewed, and another command may take it over",
            );
            return;
        }
    }
}

impl Lease {
    /// Requested when the lease is lost; hand it to the run, and ask it on a signal too.
    pub fn stop(&self) -> &Stop {
        &self.stop
    }

    /// Let go, so that the next command need not wait.
    pub async fn release(mut self) -> Result<()> {
        match self.renewal.take() {
            Some(renewal) => let_go(&self.root, self.epoch, &self.holder, renewal).await,
            None => Ok(()),
        }
    }
}

async fn let_go(root: &Root, epoch: u64, holder: &Holder, renewal: Renewal) -> Result<()> {
    renewal.finish().await;
    let released = Holder {
        renewed_at: Utc::now(),
        released_at: Some(Utc::now()),
        ..holder.clone()
    };
    root.overwrite(&key(epoch), Bytes::from(released.to_bytes()))
        .await
}

impl Drop for Lease {
    fn drop(&mut self) {
        // Without a runtime the lease goes stale by itself.
        if let Some(renewal) = self.renewal.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let (root, epoch, holder) = (self.root.clone(), self.epoch, self.holder.clone());
            runtime.spawn(async move { let_go(&root, epoch, &holder, renewal).await });
        }
    }
}
