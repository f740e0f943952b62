//! The settings of other modules, made of ours: they own the meaning, and their defaults are held equal by a test.

use super::Config;
use crate::scope::TrapLimits;

impl Config {
    /// Returns the limits against endless URL spaces.
    pub fn trap_limits(&self) -> TrapLimits {
        TrapLimits {
            max_depth: self.crawl.max_depth,
            max_url_length: self.traps.max_url_length,
            max_segments: self.traps.max_segments,
            max_repeats: self.traps.max_repeats,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_those_of_the_modules_that_own_them() {
        let config = Config::default();
        assert_eq!(config.trap_limits(), TrapLimits::default());
        assert_eq!(config.crawl.scope, Default::default());
    }
}
