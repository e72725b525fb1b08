//! Monitors of jobs that are made of others.

use std::path::Path;

use crate::device::{NoProgress, Progress};
use crate::results::SamplerResult;
use crate::store::Observer;

/// Somebody who follows a job that is made of others, such as a terminal: each of them has a progress of its own.
pub trait Monitor: Sync {
    /// The progress of the part called `label`, which begins.
    fn progress(&self, label: &str) -> Box<dyn Progress + '_> {
        let _ = label;
        Box::new(NoProgress)
    }

    /// Who looks on while a network is trained in this run directory.
    fn training(&self, directory: &Path) -> Box<dyn Observer + '_> {
        let _ = directory;
        Box::new(NoProgress)
    }

    /// Something that is worth knowing.
    fn note(&self, text: &str) {
        let _ = text;
    }

    /// Something for those who want to know more.
    fn detail(&self, text: &str) {
        let _ = text;
    }

    /// What the sampler called `name` found.
    fn found(&self, name: &str, result: &SamplerResult) {
        let _ = (name, result);
    }

    /// A reason to doubt what is found.
    fn warn(&self, text: &str) {
        let _ = text;
    }
}

impl Monitor for NoProgress {}
