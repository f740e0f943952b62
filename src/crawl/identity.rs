//! Who this process is, and whether another process of this machine is still there.
//!
//! A worker that dies on a laptop must not cost the next start its dead limit: its neighbours ask the system. For that a process is named
//! by its machine (boot and process namespace: containers of one kernel do not see each other's processes), its pid, and the moment it
//! began, since pids are used again.

use crate::frontier::{Identity, Neighbour, WorkerId};

/// This process.
pub(super) fn identity() -> Identity {
    let pid = i32::try_from(std::process::id()).unwrap_or(0);
    let host_name = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    Identity {
        name: format!("{host_name}:{pid}"),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        machine: machine(&host_name),
        process_started: process_started(pid).unwrap_or_default(),
        host_name,
        pid,
    }
}

/// Those of the neighbours whose process is gone. A process about which the system says nothing counts as there.
pub(super) fn gone(neighbours: &[Neighbour]) -> Vec<WorkerId> {
    neighbours
        .iter()
        .filter(|neighbour| match process_started(neighbour.pid) {
            Some(started) => {
                !neighbour.process_started.is_empty() && started != neighbour.process_started
            }
            None => !exists(neighbour.pid),
        })
        .map(|neighbour| neighbour.id)
        .collect()
}

/// Whether a process has this pid. One that we may not signal is there, too.
fn exists(pid: i32) -> bool {
    let Some(pid) = rustix::process::Pid::from_raw(pid) else {
        return false;
    };
    !matches!(
        rustix::process::test_kill_process(pid),
        Err(rustix::io::Errno::SRCH)
    )
}

#[cfg(target_os = "linux")]
fn machine(host_name: &str) -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = std::fs::read_link("/proc/self/ns/pid")
        .map(|link| link.to_string_lossy().into_owned())
        .unwrap_or_default();
    format!("{host_name} {} {namespace}", boot.trim())
}

#[cfg(not(target_os = "linux"))]
fn machine(host_name: &str) -> String {
    let boot = std::process::Command::new("sysctl")
        .args(["-n", "kern.bootsessionuuid"])
        .output()
        .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
        .unwrap_or_default();
    format!("{host_name} {boot}")
}

/// When a process began: ticks since boot on Linux (proc_pid_stat(5), field 22), what `ps` says elsewhere.
#[cfg(target_os = "linux")]
fn process_started(pid: i32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the name in brackets, which may hold anything: count from behind it.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    // A zombie claims nothing any more.
    if fields.next()? == "Z" {
        return Some("gone".to_owned());
    }
    fields.nth(18).map(str::to_owned)
}

#[cfg(not(target_os = "linux"))]
fn process_started(pid: i32) -> Option<String> {
    let output = std::process::Command::new("ps")
        .args(["-o", "lstart=", "-p", &pid.to_string()])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn neighbour(id: i32, pid: i32, process_started: &str) -> Neighbour {
        Neighbour {
            id: WorkerId(id),
            pid,
            process_started: process_started.to_owned(),
        }
    }

    #[test]
    fn this_process_is_there_and_its_double_of_another_start_is_not() {
        let me = identity();
        assert!(!me.process_started.is_empty());
        let neighbours = [
            neighbour(1, me.pid, &me.process_started),
            neighbour(2, me.pid, "1"),
        ];
        assert_eq!(gone(&neighbours), [WorkerId(2)]);
    }

    #[test]
    fn a_process_that_ended_is_gone_even_before_it_was_waited_for() {
        let mut child = std::process::Command::new("true")
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let started = process_started(pid).unwrap();
        // Its output is at an end when it has left.
        std::io::Read::read_to_end(&mut child.stdout.take().unwrap(), &mut Vec::new()).unwrap();
        child.wait().unwrap();
        assert_eq!(gone(&[neighbour(1, pid, &started)]), [WorkerId(1)]);
    }
}
