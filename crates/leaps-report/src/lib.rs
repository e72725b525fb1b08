//! Figures and pages from results of leaps.
//!
//! | module | what it does |
//! |---|---|
//! | [`run`] | the page of a run or of a result: self-contained HTML |
//! | [`draw`] | charts, as SVG text or as PNG |
//! | [`text`] | numbers with their errors, tables for terminals |

pub mod draw;
pub mod run;
pub mod text;
