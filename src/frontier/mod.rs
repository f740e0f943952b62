//! The frontier.
