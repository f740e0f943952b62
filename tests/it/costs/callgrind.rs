//! Runs this very binary under callgrind.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use super::workload::NAMES;

/// How many instructions each piece of the work took; `None` where there is no valgrind.
pub(super) fn count() -> Option<BTreeMap<&'static str, u64>> {
    let there = Command::new("valgrind")
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    if !there.is_ok_and(|status| status.success()) {
        return None;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut valgrind = Command::new("valgrind");
    valgrind
        .arg("--tool=callgrind")
        .arg(format!(
            "--callgrind-out-file={}",
            dir.path().join("out").display()
        ))
        // A file each time one of these is left, of what came since the last one. No closure bears the name of one.
        .arg("--dump-after=*costs::workload::counted_*");
    let output = valgrind
        .arg(std::env::current_exe().unwrap())
        // On the main thread: callgrind writes no file when another one leaves a function.
        .args([
            "--exact",
            "costs::the_work",
            "--ignored",
            "--test-threads=1",
        ])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let dumps = dumps(dir.path());
    let found = NAMES.map(|name| {
        let end = format!("counted_{name}");
        let mut of_it = dumps.iter().filter(|(trigger, _)| trigger.ends_with(&end));
        let (_, count) = of_it
            .next()
            .unwrap_or_else(|| panic!("no {end} in {dumps:?}"));
        (name, *count)
    });
    Some(found.into())
}

/// What each file was written after, and its sum.
fn dumps(dir: &Path) -> Vec<(String, u64)> {
    std::fs::read_dir(dir)
        .unwrap()
        .filter_map(|entry| {
            let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
            let value = |key: &str| {
                text.lines()
                    .find_map(|line| line.strip_prefix(key))
                    .map(str::trim)
            };
            let trigger = value("desc: Trigger: --dump-after=")?.to_owned();
            Some((trigger, value("totals:")?.parse().unwrap()))
        })
        .collect()
}
