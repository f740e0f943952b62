//! Now, as a value.
