//! When a task is visited again.
