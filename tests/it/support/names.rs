//! A nameserver on loopback that knows a few addresses, so that tests have names without asking
//! anybody outside.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(dead_code, reason = "each test module uses a part of it")]

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

/// Answers questions for addresses over UDP (RFC 1035); other names do not exist.
pub(crate) struct Nameserver {
    address: SocketAddr,
    questions: Arc<AtomicUsize>,
    server: JoinHandle<()>,
}

/// What it knows of a name.
enum Known {
    /// Its addresses, one set for each question in turn; the last stays.
    Addresses(Vec<Vec<IpAddr>>, AtomicUsize),
    /// It could not say (RFC 1035 §4.1.1: 2).
    ServerFailure,
}

impl Nameserver {
    /// Starts with these names and their addresses: several with commas between them (none for an
    /// empty text), other ones for the next question behind `then`, or `servfail`. Answers that
    /// change are not to be kept.
    ///
    /// # Panics
    /// If it cannot listen, or an address is none.
    pub(crate) async fn start(names: &[(&str, &str)]) -> Nameserver {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let names: HashMap<String, Known> = names
            .iter()
            .map(|(name, known)| ((*name).to_owned(), read(known)))
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

fn read(known: &str) -> Known {
    if known == "servfail" {
        return Known::ServerFailure;
    }
    let addresses = |text: &str| {
        let texts = text.split(',').map(str::trim);
        let texts = texts.filter(|text| !text.is_empty());
        texts.map(|ip| ip.parse().unwrap()).collect()
    };
    let sets = known.split("then").map(addresses).collect();
    Known::Addresses(sets, AtomicUsize::new(0))
}

fn answer(
    packet: &[u8],
    names: &HashMap<String, Known>,
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
    let is_aaaa = question.ends_with(&[0, 28, 0, 1]);
    questions.fetch_add(usize::from(is_a), Ordering::SeqCst);
    let (code, ttl, found) = match names.get(&labels.join(".")) {
        None => (3, 60, &[][..]),
        Some(Known::ServerFailure) => (2, 60, &[][..]),
        Some(Known::Addresses(sets, asked)) => {
            let turn = asked.fetch_add(usize::from(is_a), Ordering::SeqCst);
            let set = &sets[turn.min(sets.len() - 1)];
            (0, if sets.len() > 1 { 0 } else { 60 }, &set[..])
        }
    };
    let fits = |ip: &&IpAddr| (ip.is_ipv4() && is_a) || (ip.is_ipv6() && is_aaaa);
    let found: Vec<&IpAddr> = found.iter().filter(fits).collect();
    let mut reply = packet[..2].to_vec();
    // A response, recursion available.
    reply.extend([0x81, 0x80 | code]);
    reply.extend([0, 1, 0, u8::try_from(found.len()).unwrap(), 0, 0, 0, 0]);
    reply.extend(question);
    for ip in found {
        let octets = match ip {
            IpAddr::V4(ip) => ip.octets().to_vec(),
            IpAddr::V6(ip) => ip.octets().to_vec(),
        };
        let length = u8::try_from(octets.len()).unwrap();
        let kind = if ip.is_ipv4() { 1 } else { 28 };
        // The question's name, its type, IN, the TTL in seconds, its length.
        reply.extend([0xc0, 12, 0, kind, 0, 1, 0, 0, 0, ttl, 0, length]);
        reply.extend(octets);
    }
    Some(reply)
}
