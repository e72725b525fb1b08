//! Figures and pages from results of leaps.
//!
//! | module | what it does |
//! |---|---|
//! | [`draw`] | charts, as SVG text or as PNG |
//! | [`text`] | numbers with their errors, tables for terminals |

pub mod draw;
pub mod text;
