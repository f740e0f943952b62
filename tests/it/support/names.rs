//! A nameserver on loopback that knows a few IPv4 addresses, so that tests have names without
//! asking anybody outside.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(dead_code, reason = "each test module uses a part of it")]

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

/// Answers A questions over UDP (RFC 1035); other names do not exist.
pub(crate) struct Nameserver {
    address: SocketAddr,
    questions: Arc<AtomicUsize>,
    server: JoinHandle<()>,
}

impl Nameserver {
    /// Starts with these names and their addresses.
    ///
    /// # Panics
    /// If it cannot listen, or an address is none.
    pub(crate) async fn start(names: &[(&str, &str)]) -> Nameserver {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let names: HashMap<String, Ipv4Addr> = names
            .iter()
            .map(|(name, ip)| ((*name).to_owned(), ip.parse().unwrap()))
            .collect();
        let questions = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&questions);
        let server = tokio::spawn(async move {
            let mut packet = [0; 1500];
            while let Ok((length, peer)) = socket.recv_from(&mut packet).await {
                if let Some(answer) = answer(&packet[..length], &names, &counter) {
                    let _ = socket.send_to(&answer, peer).await;
                }
            }
        });
        Nameserver {
            address,
            questions,
            server,
        }
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Questions for an IPv4 address so far.
    pub(crate) fn questions(&self) -> usize {
        self.questions.load(Ordering::SeqCst)
    }
}

impl Drop for Nameserver {
    fn drop(&mut self) {
        self.server.abort();
    }
}

fn answer(
    packet: &[u8],
    names: &HashMap<String, Ipv4Addr>,
    questions: &AtomicUsize,
) -> Option<Vec<u8>> {
    let mut labels = Vec::new();
    let mut at = 12;
    while *packet.get(at)? != 0 {
        let end = at + 1 + usize::from(packet[at]);
        labels.push(String::from_utf8_lossy(packet.get(at + 1..end)?).to_ascii_lowercase());
        at = end;
    }
    let question = packet.get(12..at + 5)?;
    let is_a = question.ends_with(&[0, 1, 0, 1]);
    questions.fetch_add(usize::from(is_a), Ordering::SeqCst);
    let found = names.get(&labels.join("."));
    let ip = found.filter(|_| is_a);
    let mut reply = packet[..2].to_vec();
    // A response, recursion available; NXDOMAIN for an unknown name.
    reply.extend([0x81, if found.is_some() { 0x80 } else { 0x83 }]);
    reply.extend([0, 1, 0, u8::from(ip.is_some()), 0, 0, 0, 0]);
    reply.extend(question);
    if let Some(ip) = ip {
        // The question's name, A, IN, a TTL of a minute, four bytes.
        reply.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
        reply.extend(ip.octets());
    }
    Some(reply)
}
