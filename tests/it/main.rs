//! The integration tests: one binary, one module a capability.

mod embedded;
mod fetch;
mod support;
