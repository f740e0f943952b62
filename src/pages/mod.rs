//! What a visit leaves behind.
