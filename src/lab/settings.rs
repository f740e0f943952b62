//! How much is measured.

use super::{
    BatchSettings, DeathSettings, IndexSettings, LockingSettings, ScaleSettings, SemanticsSettings,
};

/// Settings of a run, a part a section. Default is the quick run: three to four minutes on two cores.
#[derive(Clone, Debug, PartialEq)]
pub struct LabSettings {
    /// What this size is called in the report. Default `quick`.
    pub name: &'static str,
    /// Commits of one row each, whose median stands with the machine. Default 50.
    pub commits: u32,
    /// Section a.
    pub locking: LockingSettings,
    /// Section b.
    pub batches: BatchSettings,
    /// Section c.
    pub index: IndexSettings,
    /// Section d.
    pub death: DeathSettings,
    /// Section e.
    pub scale: ScaleSettings,
    /// Section f.
    pub semantics: SemanticsSettings,
}

impl Default for LabSettings {
    fn default() -> LabSettings {
        LabSettings {
            name: "quick",
            commits: 50,
            locking: LockingSettings::default(),
            batches: BatchSettings::default(),
            index: IndexSettings::default(),
            death: DeathSettings::default(),
            scale: ScaleSettings::default(),
            semantics: SemanticsSettings::default(),
        }
    }
}

impl LabSettings {
    /// The whole of it: ten million tasks, a million hosts, a snapshot held for minutes. Half an hour and 10 GB.
    pub fn full() -> LabSettings {
        LabSettings {
            name: "full",
            commits: 500,
            scale: ScaleSettings::full(),
            ..LabSettings::default()
        }
    }
}
