//! The demo's words and its HTML.

/// A page under construction.
#[derive(Debug, Clone)]
pub(super) struct Html {
    title: String,
    lang: String,
    charset: String,
    head: String,
    text: String,
    links: Vec<Link>,
}

/// A link of a page.
#[derive(Debug, Clone)]
pub(super) struct Link {
    href: String,
    nofollow: bool,
}

impl Link {
    pub(super) fn to(href: &str) -> Link {
        Link {
            href: href.to_owned(),
            nofollow: false,
        }
    }

    pub(super) fn nofollow(self) -> Link {
        Link {
            nofollow: true,
            ..self
        }
    }
}

impl Html {
    pub(super) fn new(title: &str, lang: &str) -> Html {
        let (title, lang) = (title.to_owned(), lang.to_owned());
        Html {
            title,
            lang,
            charset: String::new(),
            head: String::new(),
            text: String::new(),
            links: Vec::new(),
        }
    }

    pub(super) fn text(mut self, text: &str) -> Html {
        self.text.push_str(&format!("<p>{text}</p>\n"));
        self
    }

    pub(super) fn link(mut self, link: Link) -> Html {
        self.links.push(link);
        self
    }

    /// Declares a charset in the page; an empty one declares none.
    pub(super) fn charset(self, charset: &str) -> Html {
        Html {
            charset: charset.to_owned(),
            ..self
        }
    }

    pub(super) fn canonical(mut self, url: &str) -> Html {
        self.head
            .push_str(&format!("<link rel=\"canonical\" href=\"{url}\">\n"));
        self
    }

    pub(super) fn robots(mut self, content: &str) -> Html {
        self.head
            .push_str(&format!("<meta name=\"robots\" content=\"{content}\">\n"));
        self
    }

    pub(super) fn render(&self) -> String {
        let Html {
            title,
            lang,
            charset,
            head,
            text,
            links,
        } = self;
        let charset = match charset.as_str() {
            "" => String::new(),
            name => format!("<meta charset=\"{name}\">\n"),
        };
        let links: String = links
            .iter()
            .map(|Link { href, nofollow }| {
                let rel = if *nofollow { " rel=\"nofollow\"" } else { "" };
                format!(
                    "<li><a href=\"{}\"{rel}>{title}</a></li>\n",
                    href.replace('&', "&amp;")
                )
            })
            .collect();
        format!(
            "<!doctype html>\n<html lang=\"{lang}\">\n<head>\n{charset}<title>{title}</title>\n{head}</head>\n\
             <body>\n<h1>{title}</h1>\n{text}<ul>\n{links}</ul>\n</body>\n</html>\n"
        )
    }
}

const ADJECTIVES: [&str; 8] = [
    "Quiet",
    "Northern",
    "Forgotten",
    "Bright",
    "Patient",
    "Salty",
    "Second",
    "Winding",
];
const NOUNS: [&str; 9] = [
    "Rivers", "Harbours", "Bridges", "Gardens", "Letters", "Winters", "Lanterns", "Orchards",
    "Maps",
];
const PLACES: [&str; 7] = [
    "Lisbon", "Tartu", "Oaxaca", "Kyoto", "Dakar", "Bergen", "Cork",
];

/// Returns the title of the nth work.
pub(super) fn title(number: usize) -> String {
    let (adjective, noun) = (
        ADJECTIVES[number % ADJECTIVES.len()],
        NOUNS[number % NOUNS.len()],
    );
    format!("{adjective} {noun} of {}", PLACES[number % PLACES.len()])
}

/// Returns so many sentences of the nth work.
pub(super) fn paragraph(number: usize, sentences: usize) -> String {
    let sentence = |n: usize| {
        format!(
            "The {} of {} were there before us.",
            NOUNS[n % NOUNS.len()].to_lowercase(),
            PLACES[n / 2 % PLACES.len()]
        )
    };
    (number..number + sentences)
        .map(sentence)
        .collect::<Vec<_>>()
        .join(" ")
}
