//! Tells cargo that the migrations are part of the program: `sqlx::migrate!` cannot notice a new file by itself.

#![allow(clippy::print_stdout)]

fn main() {
    println!("cargo:rerun-if-changed=migrations");
}
