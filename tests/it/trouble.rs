//! The database in trouble: what a statement, a process and a whole crawl make of it.

mod upgrade;
