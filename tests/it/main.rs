//! The integration tests: one binary, one module a capability.

mod fetch;
mod support;
