//! Figures and pages from results of leaps.
//!
//! | module | what it does |
//! |---|---|
//! | [`run`] | the page of a run or of a result: self-contained HTML |
//! | [`experiment`] | the page of an experiment: Markdown with figures, and the raw numbers |
//! | [`free_energy`] | free energies over temperatures and fields: curves, maps |
//! | [`csv`] | tables as CSV |
//! | [`figure`] | figures with names, as SVG, PNG or PDF files |
//! | [`draw`] | charts, as SVG text, PNG or PDF |
//! | [`machine`] | the machine and the day |
//! | [`markdown`] | prose lines of one width |
//! | [`text`] | numbers with their errors, tables for terminals |

pub mod csv;
pub mod draw;
pub mod experiment;
pub mod figure;
pub mod free_energy;
pub mod machine;
pub mod markdown;
pub mod run;
pub mod text;
