//! What of a page is taken for a link, beyond what every reader would click on.

/// Which links are read. It decides what becomes a task, so all machines of a crawl agree on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Wants {
    /// What pages are made of: pictures, styles, scripts, media. Default no.
    pub assets: bool,
    /// The pages that forms lead to which are sent by GET as they stand. Default no.
    pub forms: bool,
    /// URLs in plain text. Default no.
    pub text_links: bool,
    /// What stands in `<noscript>` and `<noframes>`, for readers without scripts and frames, as this one. Default yes.
    pub noscript: bool,
    /// What stands in `<template>`, which is no part of a page until a script makes it one. Default no.
    pub templates: bool,
}

impl Default for Wants {
    fn default() -> Wants {
        Wants {
            assets: false,
            forms: false,
            text_links: false,
            noscript: true,
            templates: false,
        }
    }
}
