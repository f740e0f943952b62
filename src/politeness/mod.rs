//! Leave to fetch.
