//! One HTTP exchange as data.
