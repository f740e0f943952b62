//! Forms that are sent by GET, as a browser would send them when nothing was changed (HTML standard §4.10.22.4,
//! "constructing the entry list", for the first button that submits).

use std::borrow::Cow;

use encoding_rs::Encoding;
use url::form_urlencoded::Serializer;

use super::super::entities::{self, Place};
use super::super::{LinkKind, Rel};
use super::RawLink;
use super::collect::{Collector, Ends};
use super::tokens::Tag;
use super::tokens::name::*;

/// Forms of a page that are read.
const MAX_FORMS: usize = 100;

/// Controls of a page that are read.
const MAX_CONTROLS: usize = 2_000;

/// The longest query that is made, in bytes: four times the longest URL that a crawl accepts by default.
const MAX_QUERY_BYTES: usize = 8 * 1024;

/// The forms of a page so far.
#[derive(Debug, Default)]
pub(super) struct Forms {
    forms: Vec<Form>,
    /// The form at hand.
    open: Option<usize>,
    /// How many disabled groups are open.
    disabled: usize,
    controls: Vec<Control>,
    select: Option<Select>,
    /// The text of the option or text field at hand.
    text: Option<Text>,
}

#[derive(Debug)]
struct Form {
    id: Option<String>,
    action: String,
    is_get: bool,
    rel: Rel,
}

#[derive(Debug)]
enum Owner {
    /// The form around it.
    Form(usize),
    /// The form with this id.
    Id(String),
}

#[derive(Debug)]
struct Control {
    owner: Owner,
    name: String,
    value: String,
    button: Option<Button>,
}

/// What a button that submits says of where to, and how.
#[derive(Debug)]
struct Button {
    action: Option<String>,
    is_get: Option<bool>,
    is_picture: bool,
}

#[derive(Debug)]
struct Select {
    owner: Owner,
    name: String,
    takes_many: bool,
    /// Its options that can be chosen: value, and whether it is.
    options: Vec<(String, bool)>,
}

#[derive(Debug)]
struct Text {
    raw: String,
    of: TextOf,
}

#[derive(Debug)]
enum TextOf {
    Option { is_chosen: bool },
    Field { owner: Owner, name: String },
}

impl<'t> Collector<'t> {
    /// Takes what a tag says of forms.
    pub(super) fn control(&mut self, tag: &Tag<'_, 't>, depth: usize) {
        let ends = self.forms.tag(tag);
        if let Some(ends) = ends {
            self.mark(ends, depth);
        }
    }
}

impl Forms {
    /// Takes a tag; says what is to be done at its end, if anything.
    fn tag(&mut self, tag: &Tag<'_, '_>) -> Option<Ends> {
        let has = |name: &str| tag.has(name);
        let said = |name: &str| tag.attribute(name).map(Cow::into_owned);
        let is_disabled = self.disabled > 0 || has("disabled");
        match tag.name {
            // A form within a form is none.
            FORM if self.open.is_none() && self.forms.len() < MAX_FORMS => {
                self.forms.push(Form {
                    id: said("id"),
                    action: said("action").unwrap_or_default(),
                    is_get: is_get(said("method").as_deref()).unwrap_or(true),
                    rel: Rel::of(&said("rel").unwrap_or_default()),
                });
                self.open = Some(self.forms.len() - 1);
            }
            FIELDSET if has("disabled") => {
                self.disabled += 1;
                return Some(Ends::Disabled);
            }
            INPUT if !is_disabled => self.input(&said, has("checked")),
            BUTTON
                if !is_disabled
                    && said("type").is_none_or(|kind| !is_one_of(&kind, &["button", "reset"])) =>
            {
                self.button(&said, false);
            }
            SELECT => {
                self.end_text();
                self.end_select();
                let name = said("name").filter(|name| !name.is_empty() && !is_disabled);
                if let (Some(owner), Some(name)) = (self.owner(said("form")), name) {
                    self.select = Some(Select {
                        owner,
                        name,
                        takes_many: has("multiple"),
                        options: Vec::new(),
                    });
                    return Some(Ends::Select);
                }
            }
            OPTION => {
                // Its end tag is often left out.
                self.end_text();
                if !has("disabled") && self.select.is_some() {
                    let is_chosen = has("selected");
                    match said("value") {
                        Some(value) => self.option(value, is_chosen),
                        None => {
                            self.text = Some(Text {
                                raw: String::new(),
                                of: TextOf::Option { is_chosen },
                            });
                            return Some(Ends::FieldText);
                        }
                    }
                }
            }
            TEXTAREA if !is_disabled => {
                if let (Some(owner), Some(name)) = (self.owner(said("form")), said("name")) {
                    self.text = Some(Text {
                        raw: String::new(),
                        of: TextOf::Field { owner, name },
                    });
                    return Some(Ends::FieldText);
                }
            }
            _ => {}
        }
        None
    }

    /// Whether a text is of use.
    pub(super) fn listens(&self) -> bool {
        self.text.is_some()
    }

    /// Takes a text.
    pub(super) fn text(&mut self, piece: &str) {
        if let Some(text) = &mut self.text
            && text.raw.len() < MAX_QUERY_BYTES
        {
            text.raw.push_str(piece);
        }
    }

    /// Ends the form at hand. Only its end tag does, wherever it stands (HTML standard §13.2.6.4.7, "form element pointer").
    pub(super) fn close(&mut self) {
        self.open = None;
    }

    /// Ends a disabled group.
    pub(super) fn end_disabled(&mut self) {
        self.disabled = self.disabled.saturating_sub(1);
    }
}

/// Whether the method is GET; none where it is left to others. `dialog` sends nothing.
fn is_get(method: Option<&str>) -> Option<bool> {
    method.map(|method| !is_one_of(method, &["post", "dialog"]))
}

fn is_one_of(word: &str, known: &[&str]) -> bool {
    known.iter().any(|known| word.eq_ignore_ascii_case(known))
}

impl Forms {
    fn owner(&self, form: Option<String>) -> Option<Owner> {
        match form {
            Some(id) => Some(Owner::Id(id)),
            None => self.open.map(Owner::Form),
        }
    }

    fn control(&mut self, owner: Owner, name: String, value: String, button: Option<Button>) {
        if self.controls.len() < MAX_CONTROLS {
            self.controls.push(Control {
                owner,
                name,
                value,
                button,
            });
        }
    }

    fn input(&mut self, said: &dyn Fn(&str) -> Option<String>, is_checked: bool) {
        let kind = said("type").unwrap_or_default().to_ascii_lowercase();
        let preset = match kind.as_str() {
            "submit" => return self.button(said, false),
            "image" => return self.button(said, true),
            "button" | "reset" => return,
            "checkbox" | "radio" if !is_checked => return,
            "checkbox" | "radio" => "on",
            "range" => "50",
            "color" => "#000000",
            _ => "",
        };
        let name = said("name").filter(|name| !name.is_empty());
        let value = match kind.as_str() {
            // No file was chosen.
            "file" => None,
            _ => said("value"),
        };
        if let (Some(owner), Some(name)) = (self.owner(said("form")), name) {
            self.control(
                owner,
                name,
                value.unwrap_or_else(|| preset.to_owned()),
                None,
            );
        }
    }

    fn button(&mut self, said: &dyn Fn(&str) -> Option<String>, is_picture: bool) {
        if let Some(owner) = self.owner(said("form")) {
            let button = Button {
                action: said("formaction"),
                is_get: is_get(said("formmethod").as_deref()),
                is_picture,
            };
            self.control(
                owner,
                said("name").unwrap_or_default(),
                said("value").unwrap_or_default(),
                Some(button),
            );
        }
    }

    fn option(&mut self, value: String, is_chosen: bool) {
        if let Some(select) = &mut self.select
            && select.options.len() < MAX_CONTROLS
        {
            select.options.push((value, is_chosen));
        }
    }

    /// Ends the option or text field at hand.
    pub(super) fn end_text(&mut self) {
        let Some(text) = self.text.take() else {
            return;
        };
        let value = entities::decode(&text.raw, Place::Text);
        match text.of {
            TextOf::Option { is_chosen } => {
                let words: Vec<_> = value.split_ascii_whitespace().collect();
                self.option(words.join(" "), is_chosen);
            }
            TextOf::Field { owner, name } => {
                // The first line break belongs to the tag.
                let value = value.replace("\r\n", "\n");
                let value = value.strip_prefix('\n').unwrap_or(&value);
                let value = value.replace('\n', "\r\n");
                self.control(owner, name, value, None);
            }
        }
    }

    /// Ends the choice at hand.
    pub(super) fn end_select(&mut self) {
        self.end_text();
        let Some(select) = self.select.take() else {
            return;
        };
        let mut chosen: Vec<_> = select
            .options
            .iter()
            .filter(|(_, chosen)| *chosen)
            .collect();
        if !select.takes_many {
            // Of several the last is chosen, of none the first.
            chosen = chosen
                .last()
                .copied()
                .or(select.options.first())
                .into_iter()
                .collect();
        }
        for (value, _) in chosen {
            let owner = match &select.owner {
                Owner::Form(at) => Owner::Form(*at),
                Owner::Id(id) => Owner::Id(id.clone()),
            };
            self.control(owner, select.name.clone(), value.clone(), None);
        }
    }

    /// The links of all forms, relative to the base of the page; an empty action is the page itself.
    pub(super) fn links<'t>(
        mut self,
        page: &str,
        encoding: &'static Encoding,
    ) -> impl Iterator<Item = RawLink<'t>> {
        self.end_text();
        self.end_select();
        let forms = std::mem::take(&mut self.forms);
        let ids: Vec<Option<String>> = forms.iter().map(|form| form.id.clone()).collect();
        let mut owned: Vec<Vec<Control>> = forms.iter().map(|_| Vec::new()).collect();
        for control in self.controls {
            let owner = match &control.owner {
                Owner::Form(at) => Some(*at),
                Owner::Id(id) => ids.iter().position(|known| known.as_ref() == Some(id)),
            };
            if let Some(controls) = owner.and_then(|owner| owned.get_mut(owner)) {
                controls.push(control);
            }
        }
        let page = page.to_owned();
        forms
            .into_iter()
            .zip(owned)
            .filter_map(move |(form, controls)| form.link(&controls, &page, encoding))
    }
}

/// What the encoding lacks becomes a character reference, as in a browser.
fn in_encoding(encoding: &'static Encoding) -> impl for<'t> Fn(&'t str) -> Cow<'t, [u8]> {
    move |text| encoding.output_encoding().encode(text).0
}

impl Form {
    fn link<'t>(
        self,
        controls: &[Control],
        page: &str,
        encoding: &'static Encoding,
    ) -> Option<RawLink<'t>> {
        let default = controls.iter().position(|control| control.button.is_some());
        let button = default.and_then(|at| controls.get(at)?.button.as_ref());
        if !button
            .and_then(|button| button.is_get)
            .unwrap_or(self.is_get)
        {
            return None;
        }
        let encode = in_encoding(encoding);
        let mut query = Serializer::new(String::new());
        query.encoding_override(Some(&encode));
        for (at, control) in controls.iter().enumerate() {
            match &control.button {
                Some(_) if Some(at) != default => {}
                Some(button) if button.is_picture => {
                    let of = |axis: &str| match control.name.as_str() {
                        "" => axis.to_owned(),
                        name => format!("{name}.{axis}"),
                    };
                    query.append_pair(&of("x"), "0").append_pair(&of("y"), "0");
                }
                _ if control.name.is_empty() => {}
                _ => {
                    query.append_pair(&control.name, &control.value);
                }
            }
        }
        let query = query.finish();
        if query.len() > MAX_QUERY_BYTES {
            return None;
        }
        let action = button
            .and_then(|button| button.action.as_deref())
            .unwrap_or(&self.action)
            .trim();
        let action = if action.is_empty() { page } else { action };
        let path = action.split(['?', '#']).next().unwrap_or_default();
        let mut link = RawLink::new(format!("{path}?{query}"), LinkKind::Form);
        link.rel = self.rel;
        Some(link)
    }
}
