//! The database: connect, migrate, run one of our own.
