//! The `mq` binary: runs the library and turns its answer into an exit code.

use std::process::ExitCode;

use mq::exit::Exit;

fn main() -> ExitCode {
    let run = || mq::run(std::env::args_os());
    // The default hook has told what broke; the promise is the exit code.
    let exit = std::panic::catch_unwind(run).unwrap_or(Exit::Internal);
    ExitCode::from(exit.code())
}
