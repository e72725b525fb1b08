//! The program `leaps`.

fn main() {}
