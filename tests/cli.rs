//! Console sessions, checked.
//!
//! Each file of tests/cli holds commands, what they print and how they end. `TRYCMD=overwrite cargo test --test cli`
//! writes down what they print now.

#[test]
fn sessions() {
    trycmd::TestCases::new()
        .env("PGCRAWL_LOG_LEVEL", "")
        .env("DATABASE_URL", "")
        .env("NO_COLOR", "1")
        .env("COLUMNS", "100")
        .case("tests/cli/*.trycmd");
}
