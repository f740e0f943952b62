//! What a page holds.
