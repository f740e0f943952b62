//! What the demo's web consists of: three hosts to be crawled and a neighbour that must not be.
//!
//! Every resource is made together with what a crawler owes it ([`Owed`]), so the demo needs no second crawler to know
//! what must have been found. The same ports give the same bytes.

use std::collections::BTreeMap;
use std::time::Duration;

use super::prose::{Html, Link, paragraph, title};

/// The library: shelves of books, broken links, redirects, a part that robots.txt forbids.
pub(super) const LIBRARY: usize = 0;
/// The shop: slow pages, a busy one, nofollow, a file that is no text.
pub(super) const SHOP: usize = 1;
/// The archive: many pages by year and month, several charsets, endless folders, no robots.txt.
pub(super) const ARCHIVE: usize = 2;
/// The neighbour: linked from everywhere, named by no seed.
pub(super) const NEIGHBOUR: usize = 3;

/// How many hosts there are.
pub(super) const HOSTS: usize = 4;

/// What a crawler owes a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Owed {
    /// One request, answered with 200.
    Page,
    /// One request, answered with a redirect.
    Redirect,
    /// One request, answered with 404.
    Broken,
    /// Two requests: 503 with Retry-After, then 200.
    Busy,
    /// None: robots.txt forbids it.
    Forbidden,
    /// None: it is the first step of a trap, and a row says so.
    Trap,
    /// None: only nofollow links, traps or a foreign host lead there.
    Hidden,
}

/// One resource of a host.
#[derive(Debug, Clone)]
pub(super) struct Resource {
    pub(super) owed: Owed,
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Vec<u8>,
    /// How long the answer takes.
    pub(super) wait: Duration,
}

/// All hosts.
#[derive(Debug, Clone, Default)]
pub(super) struct Site {
    /// By host, then by path and query.
    pub(super) hosts: [BTreeMap<String, Resource>; HOSTS],
    /// Other spellings of a path and query, by host; a crawler must know that they are one.
    pub(super) spellings: [BTreeMap<String, String>; HOSTS],
}

impl Owed {
    /// Returns how many requests that means.
    pub(super) fn requests(self) -> usize {
        match self {
            Owed::Page | Owed::Redirect | Owed::Broken => 1,
            Owed::Busy => 2,
            Owed::Forbidden | Owed::Trap | Owed::Hidden => 0,
        }
    }
}

impl Site {
    /// Makes the site; `bases` are the hosts' addresses without a path, like `http://127.0.0.1:8601`.
    pub(super) fn new(bases: &[String; HOSTS]) -> Site {
        let mut site = Site::default();
        site.library(bases);
        site.shop(bases);
        site.archive(bases);
        site.page(
            NEIGHBOUR,
            "/",
            Owed::Hidden,
            Html::new("The neighbour's door", "en"),
        );
        site
    }

    /// Counts the resources to which this is owed.
    pub(super) fn count(&self, owed: Owed) -> usize {
        self.hosts
            .iter()
            .flat_map(BTreeMap::values)
            .filter(|resource| resource.owed == owed)
            .count()
    }

    fn library(&mut self, bases: &[String; HOSTS]) {
        const SHELVES: usize = 6;
        const BOOKS: usize = 15;
        self.robots(
            LIBRARY,
            "User-agent: *\nDisallow: /private/\nAllow: /private/open.html\n",
        );
        let mut home = Html::new("The library", "en")
            .link(Link::to("private/"))
            .link(Link::to("private/open.html"));
        home = home
            .link(Link::to(&format!("{}/", bases[SHOP])))
            .link(Link::to(&format!("{}/", bases[NEIGHBOUR])));
        for shelf in 1..=SHELVES {
            home = home.link(Link::to(&format!("shelf/{shelf}/")));
            let mut index = Html::new(&format!("Shelf {shelf}"), "en").link(Link::to("/"));
            for book in 1..=BOOKS {
                let number = (shelf - 1) * BOOKS + book;
                index = index.link(Link::to(&format!("book-{book:02}.html")));
                let mut page = Html::new(&title(number), "en").text(&paragraph(number, 12));
                // The ways back are spelled in as many ways as people spell them.
                page = page
                    .link(Link::to("./"))
                    .link(Link::to("../../"))
                    .link(Link::to("/#top"))
                    .link(Link::to("#notes"));
                page = page.link(Link::to(&format!(
                    "./../{shelf}/book-{:02}.html#next",
                    book % BOOKS + 1
                )));
                if number.is_multiple_of(9) {
                    page = page.link(Link::to(&format!("missing-{book:02}.html")));
                    self.put(
                        LIBRARY,
                        &format!("/shelf/{shelf}/missing-{book:02}.html"),
                        Owed::Broken,
                        404,
                        vec![],
                    );
                }
                if number.is_multiple_of(10) {
                    page = page.link(Link::to(&format!("/go/{number}")));
                    let target = format!(
                        "/shelf/{}/book-{book:02}.html#chapter-2",
                        shelf % SHELVES + 1
                    );
                    self.redirect(LIBRARY, &format!("/go/{number}"), 301, &target);
                }
                if number.is_multiple_of(15) {
                    page = page
                        .link(Link::to("/search?q=rivers&lang=en"))
                        .link(Link::to("/search?lang=en&q=rivers#results"));
                    page = page
                        .link(Link::to("/caf%c3%a9.html"))
                        .link(Link::to("/café.html"));
                    page = page.link(Link::to(&format!("{}/1996/", bases[ARCHIVE])));
                }
                self.page(
                    LIBRARY,
                    &format!("/shelf/{shelf}/book-{book:02}.html"),
                    Owed::Page,
                    page,
                );
            }
            self.page(LIBRARY, &format!("/shelf/{shelf}/"), Owed::Page, index);
        }
        self.page(LIBRARY, "/", Owed::Page, home);
        self.page(
            LIBRARY,
            "/search?lang=en&q=rivers",
            Owed::Page,
            Html::new("Search: rivers", "en"),
        );
        self.spell(
            LIBRARY,
            "/search?q=rivers&lang=en",
            "/search?lang=en&q=rivers",
        );
        self.page(
            LIBRARY,
            "/caf%C3%A9.html",
            Owed::Page,
            Html::new("Le café de la bibliothèque", "fr"),
        );
        self.spell(LIBRARY, "/caf%c3%a9.html", "/caf%C3%A9.html");
        self.page(
            LIBRARY,
            "/private/open.html",
            Owed::Page,
            Html::new("Open to all", "en").link(Link::to("letters.html")),
        );
        for name in ["", "letters.html"] {
            self.page(
                LIBRARY,
                &format!("/private/{name}"),
                Owed::Forbidden,
                Html::new("Not for crawlers", "en"),
            );
        }
    }

    fn shop(&mut self, bases: &[String; HOSTS]) {
        const SECTIONS: usize = 5;
        const ITEMS: usize = 14;
        self.robots(SHOP, "# Welcome.\nUser-agent: *\nDisallow: /cart\n");
        let mut home = Html::new("Der Laden", "de")
            .link(Link::to("/cart?add=1"))
            .link(Link::to("/checkout/").nofollow());
        for href in [
            "/stock.html",
            "/members/",
            "/catalogue.pdf",
            "/loop/a",
            "/old/1",
        ] {
            home = home.link(Link::to(href));
        }
        for section in 1..=SECTIONS {
            home = home.link(Link::to(&format!("/section-{section}/")));
            let mut index = Html::new(&format!("Abteilung {section}"), "de")
                .link(Link::to(&format!("{}/", bases[LIBRARY])));
            for item in 1..=ITEMS {
                let number = 200 + (section - 1) * ITEMS + item;
                let path = format!("/section-{section}/item-{item}.html");
                index = index.link(Link::to(&format!("item-{item}.html")));
                let page =
                    Html::new(&title(number), "de").canonical(&format!("{}{path}", bases[SHOP]));
                let page = page
                    .text(&paragraph(number, 6))
                    .link(Link::to("/"))
                    .link(Link::to(&format!("{}/", bases[NEIGHBOUR])));
                self.page(SHOP, &path, Owed::Page, page);
                if item == section {
                    self.slow(SHOP, &path, Duration::from_millis(60 * section as u64));
                }
            }
            self.page(SHOP, &format!("/section-{section}/"), Owed::Page, index);
        }
        self.page(SHOP, "/", Owed::Page, home);
        self.page(
            SHOP,
            "/stock.html",
            Owed::Busy,
            Html::new("Lagerbestand", "de"),
        );
        self.page(
            SHOP,
            "/cart?add=1",
            Owed::Forbidden,
            Html::new("Warenkorb", "de"),
        );
        self.page(SHOP, "/checkout/", Owed::Hidden, Html::new("Kasse", "de"));
        let members = Html::new("Mitglieder", "de")
            .robots("nofollow")
            .link(Link::to("/members/list.html"));
        self.page(SHOP, "/members/", Owed::Page, members);
        self.page(
            SHOP,
            "/members/list.html",
            Owed::Hidden,
            Html::new("Mitgliederliste", "de"),
        );
        self.put(
            SHOP,
            "/catalogue.pdf",
            Owed::Page,
            200,
            b"%PDF-1.7 not really".repeat(2_000),
        );
        self.header(SHOP, "/catalogue.pdf", "content-type", "application/pdf");
        // Two that lead to each other, and a chain over to another host.
        self.redirect(SHOP, "/loop/a", 302, "/loop/b");
        self.redirect(SHOP, "/loop/b", 302, "/loop/a");
        self.redirect(SHOP, "/old/1", 301, "./../old/2");
        self.redirect(SHOP, "/old/2", 308, &format!("{}/1994/01/", bases[ARCHIVE]));
    }

    fn archive(&mut self, bases: &[String; HOSTS]) {
        let mut home = Html::new("El archivo", "es").link(Link::to(&format!("{}/", bases[SHOP])));
        home = home.link(Link::to("again/")).link(Link::to("letters/"));
        for year in 1994..=2001 {
            home = home.link(Link::to(&format!("{year}/")));
            let mut index = Html::new(&format!("Año {year}"), "es");
            for month in 1..=12 {
                index = index.link(Link::to(&format!("{month:02}/")));
                let number = year * 12 + month;
                let page = Html::new(&format!("{} ({month:02}/{year})", title(number)), "es")
                    .text(&paragraph(number, 20));
                self.page(
                    ARCHIVE,
                    &format!("/{year}/{month:02}/"),
                    Owed::Page,
                    page.link(Link::to("../")),
                );
            }
            self.page(ARCHIVE, &format!("/{year}/"), Owed::Page, index);
        }
        self.page(ARCHIVE, "/", Owed::Page, home);
        self.letters();
        // Folders without an end: after the third `again` a crawler should have understood.
        for times in 1..=6 {
            let owed = match times {
                ..=3 => Owed::Page,
                4 => Owed::Trap,
                _ => Owed::Hidden,
            };
            let page = Html::new(&format!("Otra vez {times}"), "es").link(Link::to("again/"));
            self.page(ARCHIVE, &format!("/{}", "again/".repeat(times)), owed, page);
        }
    }

    /// Pages in five charsets, told in as many ways.
    fn letters(&mut self) {
        let letters = [
            (
                "latin",
                "Año Nuevo: mañana, señor",
                "es",
                "text/html; charset=iso-8859-1",
                encoding_rs::WINDOWS_1252,
                "",
            ),
            (
                "cyrillic",
                "Письмо из архива",
                "ru",
                "text/html",
                encoding_rs::WINDOWS_1251,
                "windows-1251",
            ),
            (
                "japanese",
                "図書館からの手紙",
                "ja",
                "text/html",
                encoding_rs::SHIFT_JIS,
                "shift_jis",
            ),
            (
                "greek",
                "Γράμμα από το αρχείο",
                "el",
                "text/html",
                encoding_rs::UTF_8,
                "utf-8",
            ),
        ];
        let mut index = Html::new("Cartas", "es").link(Link::to("wide.html"));
        for (name, title, lang, content_type, encoding, declared) in letters {
            index = index.link(Link::to(&format!("{name}.html")));
            let html = Html::new(title, lang).charset(declared).render();
            let path = format!("/letters/{name}.html");
            self.put(
                ARCHIVE,
                &path,
                Owed::Page,
                200,
                encoding.encode(&html).0.into_owned(),
            );
            self.header(ARCHIVE, &path, "content-type", content_type);
        }
        // A byte order mark says more than the header, which is wrong.
        let wide = Html::new("Þetta er bréf", "is").charset("").render();
        let body = [0xff, 0xfe]
            .into_iter()
            .chain(wide.encode_utf16().flat_map(u16::to_le_bytes))
            .collect();
        self.put(ARCHIVE, "/letters/wide.html", Owed::Page, 200, body);
        self.header(
            ARCHIVE,
            "/letters/wide.html",
            "content-type",
            "text/html; charset=utf-8",
        );
        self.page(ARCHIVE, "/letters/", Owed::Page, index);
    }

    fn put(&mut self, host: usize, path: &str, owed: Owed, status: u16, body: Vec<u8>) {
        let resource = Resource {
            owed,
            status,
            headers: Vec::new(),
            body,
            wait: Duration::ZERO,
        };
        let before = self.hosts[host].insert(path.to_owned(), resource);
        debug_assert!(before.is_none(), "{path} is made twice");
    }

    fn page(&mut self, host: usize, path: &str, owed: Owed, html: Html) {
        self.put(
            host,
            path,
            owed,
            200,
            html.charset("utf-8").render().into_bytes(),
        );
        self.header(host, path, "content-type", "text/html; charset=utf-8");
    }

    fn redirect(&mut self, host: usize, path: &str, status: u16, location: &str) {
        self.put(host, path, Owed::Redirect, status, Vec::new());
        self.header(host, path, "location", location);
    }

    fn robots(&mut self, host: usize, text: &str) {
        // It is owed what the crawler's cache decides; the check leaves it out.
        self.put(
            host,
            "/robots.txt",
            Owed::Hidden,
            200,
            text.as_bytes().to_vec(),
        );
        self.header(host, "/robots.txt", "content-type", "text/plain");
    }

    fn header(&mut self, host: usize, path: &str, name: &'static str, value: &str) {
        if let Some(resource) = self.hosts[host].get_mut(path) {
            resource.headers.push((name, value.to_owned()));
        }
    }

    fn slow(&mut self, host: usize, path: &str, wait: Duration) {
        if let Some(resource) = self.hosts[host].get_mut(path) {
            resource.wait = wait;
        }
    }

    fn spell(&mut self, host: usize, other: &str, path: &str) {
        self.spellings[host].insert(other.to_owned(), path.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bases() -> [String; HOSTS] {
        [1, 2, 3, 4].map(|port| format!("http://127.0.0.1:{port}"))
    }

    #[test]
    fn the_same_ports_give_the_same_bytes() {
        let (one, other) = (Site::new(&bases()), Site::new(&bases()));
        for (a, b) in one.hosts.iter().flatten().zip(other.hosts.iter().flatten()) {
            assert_eq!((a.0, &a.1.body), (b.0, &b.1.body));
        }
    }

    #[test]
    fn it_holds_some_of_everything() {
        let site = Site::new(&bases());
        assert!(site.count(Owed::Page) > 200);
        for owed in [
            Owed::Redirect,
            Owed::Broken,
            Owed::Busy,
            Owed::Forbidden,
            Owed::Trap,
            Owed::Hidden,
        ] {
            assert!(site.count(owed) > 0, "{owed:?}");
        }
    }
}
