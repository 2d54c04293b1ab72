//! The `omnigraph` command line: arguments, target rules, progress, rendering, exit codes. Everything
//! else is in the libraries.

mod args;
mod commands;
mod consent;
mod lease;
mod output;
mod progress;
mod target;

use std::process::ExitCode;

use clap::Parser as _;

use args::{BranchCommand, Cli, Command, CommitCommand, SchemaCommand};

/// Lance's futures are deep; a debug build needs more than the default stack.
const WORKER_STACK_BYTES: usize = 16 << 20;

fn main() -> ExitCode {
    quiet_worker_panics();
    let cli = Cli::parse();
    // The main future is as deep as a worker's, and the main thread's stack is not ours to size.
    let worker = std::thread::Builder::new()
        .name("omnigraph".into())
        .stack_size(WORKER_STACK_BYTES)
        .spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .enable_all()
                .thread_stack_size(WORKER_STACK_BYTES)
                .build();
            match runtime {
                Ok(runtime) => runtime.block_on(run(cli)),
                Err(e) => Err(anyhow::Error::new(e).context("cannot start")),
            }
        });
    let result = match worker {
        Ok(handle) => handle
            .join()
            .unwrap_or_else(|_| Err(anyhow::anyhow!("internal error: the command panicked"))),
        Err(e) => Err(anyhow::Error::new(e).context("cannot start")),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            output::error_line(&error);
            ExitCode::from(1)
        }
    }
}

async fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let store = cli.store.as_deref();
    match cli.command {
        Command::Upgrade(args) => commands::upgrade::run(&args, store, cli.quiet).await,
        Command::Recover(args) => commands::recover::run(&args, store, cli.quiet).await,
        Command::Snapshot(args) => commands::snapshot::run(&args, store).await,
        Command::Verify(args) => commands::verify::run(&args, store, cli.quiet).await,
        Command::Optimize(args) => commands::optimize::run(&args, store, cli.quiet).await,
        Command::BuildIndexes(args) => commands::indexes::build(&args, store, cli.quiet).await,
        Command::RebuildFullTextIndexes(args) => {
            commands::indexes::rebuild(&args, store, cli.quiet).await
        }
        Command::Repair(args) => commands::repair::run(&args, store, cli.quiet).await,
        Command::Cleanup(args) => commands::cleanup::run(&args, store, cli.quiet).await,
        Command::Commit(CommitCommand::List(args)) => {
            commands::commit_list::run(&args, store).await
        }
        Command::Commit(CommitCommand::Show(args)) => {
            commands::commit_show::run(&args, store).await
        }
        Command::Init(args) => commands::init::run(&args, store).await,
        Command::Load(args) => commands::load::run(&args, store, cli.quiet).await,
        Command::Export(args) => commands::export::run(&args, store, cli.quiet).await,
        Command::Branch(BranchCommand::List(args)) => commands::branch::list(&args, store).await,
        Command::Branch(BranchCommand::Create(args)) => {
            commands::branch::create(&args, store).await
        }
        Command::Branch(BranchCommand::Delete(args)) => {
            commands::branch::delete(&args, store).await
        }
        Command::Schema(SchemaCommand::Show(args)) => {
            commands::schema_show::run(&args, store).await
        }
        Command::Version => commands::version::run(),
    }
}

/// Damaged bytes can make a Lance worker panic. The library turns that into an error that names the
/// object; the panic's own text would only stand beside it.
fn quiet_worker_panics() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let worker = std::thread::current()
            .name()
            .is_none_or(|name| name.starts_with("tokio-") || name.starts_with("lance"));
        if !worker {
            default(info);
        }
    }));
}
