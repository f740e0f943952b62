//! What tests stand on.

pub(crate) mod names;
pub(crate) mod site;
