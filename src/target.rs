//! From what was typed to an opened root, and the refusal of graphs inside a cluster.

use anyhow::{Context as _, bail};
use graph::store::{Root, RootOptions, location};

/// The one location given, by argument or by `--store`.
pub fn given<'a>(uri: Option<&'a str>, store: Option<&'a str>) -> &'a str {
    match (uri, store) {
        (Some(uri), None) | (None, Some(uri)) => uri,
        (Some(_), Some(_)) => usage("the graph is given twice: as an argument and by --store"),
        (None, None) => usage("no graph is given: name its root, or use --store <URI>"),
    }
}

/// A wrong command line, as the argument parser reports one.
pub fn usage(message: &str) -> ! {
    use clap::CommandFactory as _;
    crate::args::Cli::command()
        .error(clap::error::ErrorKind::MissingRequiredArgument, message)
        .exit()
}

/// Resolve and open a root. Nothing of the graph is read.
pub async fn open(uri: &str) -> anyhow::Result<Root> {
    let resolved = location::resolve(uri)?;
    Ok(Root::open(&resolved, RootOptions::default()).await?)
}

/// [`open`] for a root that is to be created.
pub async fn open_new(uri: &str) -> anyhow::Result<Root> {
    let resolved = location::resolve_new(uri)?;
    Ok(Root::open(&resolved, RootOptions::default()).await?)
}

/// Refuse a graph that a cluster manages, before anything of the graph is read.
pub async fn refuse_cluster(root: &Root) -> anyhow::Result<()> {
    let Some((cluster, id)) = location::cluster_shape(root.uri()) else {
        return Ok(());
    };
    let store = Root::open(cluster, RootOptions::default()).await?;
    let managed = store
        .exists("__cluster/state.json")
        .await
        .with_context(|| format!("cannot tell whether {cluster} is a cluster"))?;
    if managed {
        bail!(
            "graph '{id}' lies inside cluster '{cluster}': its storage is not upgraded in place. Export it \
             with the release that wrote it and load it into a new graph of the cluster"
        );
    }
    Ok(())
}
