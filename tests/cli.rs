//! Console sessions, checked.
