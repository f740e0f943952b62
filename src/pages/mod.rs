//! What a visit leaves behind: a row of `pages`, and the body where it is kept.
//!
//! The rows are made here and written by [`crate::frontier::Frontier::finish`], in the same statement as the task's status: so no page
//! is there without its finish, and no finish without its page.

mod row;
mod signals;
mod text;

pub use row::PageRow;
pub use signals::signals_json;
pub use text::{clean, headers_json};
