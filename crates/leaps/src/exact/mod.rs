//! Compute exact answers, for everything else to be checked against.
