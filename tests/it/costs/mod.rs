//! What fixed pieces of work cost, in units that do not depend on the machine: instructions here, bytes of WAL and buffer touches in
//! `frontier::costs`. They are compared with `expected.toml` and say whether a change made something dearer, or cheaper. They are
//! no speed: the dev profile is counted, without the optimiser, and nobody waits for anything.

mod callgrind;
mod expected;
mod workload;

pub(crate) use expected::{Figure, check};

/// The same toolchain counts the same to a thousandth (hashes are seeded at random); another one moves the dev profile by more, and so
/// does a processor without AVX2, which valgrind does not hide and `memchr` asks for.
const TOLERANCE_PERCENT: u64 = 5;

#[test]
fn reading_canonicalising_and_encoding_take_as_many_instructions_as_they_did() {
    if !cfg!(all(target_arch = "x86_64", debug_assertions)) {
        eprintln!("skipped: the figures are those of the dev profile on x86-64");
        return;
    }
    let Some(counted) = callgrind::count() else {
        eprintln!("skipped: there is no valgrind here");
        return;
    };
    let figures = workload::NAMES.map(|name| Figure {
        name,
        got: counted[name],
        tolerance_percent: TOLERANCE_PERCENT,
    });
    check("instructions", &figures);
}

/// No test: what runs under callgrind.
#[test]
#[ignore = "the work that is counted"]
fn the_work() {
    workload::all();
}
