//! The binary: parses the command line and leaves with its exit code.
fn main() {}
