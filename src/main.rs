//! The binary: parses the command line and leaves with its exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    pgcrawl::cli::main()
}
