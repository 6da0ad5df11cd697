//! The `mq` binary: runs the library and turns its answer into an exit code.

use std::process::ExitCode;

use mq::exit::Exit;

/// A message takes some 20 allocations on its way through lapin, made by one thread and
/// freed by another: glibc's allocator needs a fifth of the CPU time of a bulk publish
/// more (`scripts/bench publish`).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let run = || mq::run(std::env::args_os());
    // The default hook has told what broke; the promise is the exit code.
    let exit = std::panic::catch_unwind(run).unwrap_or(Exit::Internal);
    ExitCode::from(exit.code())
}
