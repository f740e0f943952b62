//! Whether a crawl asked for exactly what it owed.

use std::collections::BTreeMap;

use super::site::{HOSTS, Owed, Site};
use crate::status::Status;

/// A path that was asked for too often or too seldom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) url: String,
    pub(super) owed: usize,
    pub(super) asked: usize,
}

/// Compares what the servers were asked with what they were owed. robots.txt is left out: how often it is asked for is
/// its cache's affair.
pub(super) fn faults(
    site: &Site,
    bases: &[String; HOSTS],
    requests: &[BTreeMap<String, usize>; HOSTS],
) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (number, (resources, requests)) in site.hosts.iter().zip(requests).enumerate() {
        let strangers = requests
            .keys()
            .filter(|path| !resources.contains_key(*path));
        for path in resources
            .keys()
            .chain(strangers)
            .filter(|path| *path != "/robots.txt")
        {
            let owed = resources
                .get(path)
                .map_or(0, |resource| resource.owed.requests());
            let asked = requests.get(path).copied().unwrap_or_default();
            if owed != asked {
                faults.push(Fault {
                    url: format!("{}{path}", bases[number]),
                    owed,
                    asked,
                });
            }
        }
    }
    faults
}

/// Compares what the database holds with what the site does; says where they differ.
pub(super) fn miscounted(site: &Site, status: &Status) -> Option<String> {
    let visited = [Owed::Page, Owed::Redirect, Owed::Broken, Owed::Busy]
        .map(|owed| site.count(owed))
        .iter()
        .sum();
    let expected = [
        ("done", status.done, visited),
        (
            "excluded",
            status.excluded,
            site.count(Owed::Forbidden) + site.count(Owed::Trap),
        ),
        ("failed", status.failed, 0),
        ("new", status.new, 0),
        ("claimed", status.claimed, 0),
    ];
    let wrong = expected
        .into_iter()
        .find(|(_, found, owed)| usize::try_from(*found) != Ok(*owed));
    wrong.map(|(word, found, owed)| format!("{found} tasks are {word}, and {owed} should be"))
}

/// Says what the site holds.
pub(super) fn inventory(site: &Site) -> String {
    format!(
        "{} pages, {} redirects, {} broken links, {} that first says 503; {} that robots.txt forbids and {} that no \
         crawler should reach",
        site.count(Owed::Page) + site.count(Owed::Busy),
        site.count(Owed::Redirect),
        site.count(Owed::Broken),
        site.count(Owed::Busy),
        site.count(Owed::Forbidden),
        // Without the two robots.txt, which are there to be read.
        site.count(Owed::Trap) + site.count(Owed::Hidden)
            - site
                .hosts
                .iter()
                .filter(|host| host.contains_key("/robots.txt"))
                .count(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_too_few_one_too_many_and_a_stranger_are_faults() {
        let bases = [1, 2, 3, 4].map(|port| format!("http://127.0.0.1:{port}"));
        let site = Site::new(&bases);
        let mut requests = [const { BTreeMap::new() }; HOSTS];
        for (requests, resources) in requests.iter_mut().zip(&site.hosts) {
            for (path, resource) in resources {
                requests.insert(path.clone(), resource.owed.requests());
            }
        }
        assert_eq!(faults(&site, &bases, &requests), []);
        requests[0].remove("/");
        requests[1].insert("/checkout/".into(), 1);
        requests[2].insert("/nonsense".into(), 1);
        let urls: Vec<String> = faults(&site, &bases, &requests)
            .into_iter()
            .map(|fault| fault.url)
            .collect();
        assert_eq!(
            urls,
            [
                "http://127.0.0.1:1/",
                "http://127.0.0.1:2/checkout/",
                "http://127.0.0.1:3/nonsense"
            ]
        );
    }
}
