//! The fetched form and the identity of a URL.
