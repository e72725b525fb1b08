//! Write results and samples as files.
