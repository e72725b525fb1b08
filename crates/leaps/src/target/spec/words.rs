//! Targets in words and as formulas.

use std::path::Path;

use super::{Field, Kind, TargetSpec};
use crate::target::{Boundary, Disorder};

impl TargetSpec {
    /// The target in a few words, for headings.
    pub fn describe(&self, sites: usize) -> String {
        let beta = self.beta.unwrap_or(1.0);
        let mut text = self.kind_in_words(sites);
        text += &format!(", beta {beta}{}", self.coupling_in_words());
        match &self.field {
            Some(Field::Uniform(0.0)) | None => {}
            Some(Field::Uniform(h)) => text += &format!(", h {h}"),
            Some(_) => text += ", h per site",
        }
        text
    }

    /// The energy in a few words: neither temperature nor uniform field.
    pub fn describe_energy(&self, sites: usize) -> String {
        let mut text = self.kind_in_words(sites) + &self.coupling_in_words();
        if !matches!(self.field, Some(Field::Uniform(_)) | None) {
            text += ", h per site";
        }
        text
    }

    fn coupling_in_words(&self) -> String {
        let other = self.coupling.filter(|coupling| *coupling != 1.0);
        other.map_or_else(String::new, |coupling| format!(", J {coupling}"))
            + &self.bonds_in_words()
    }

    fn kind_in_words(&self, sites: usize) -> String {
        let spec = self;
        let shape = || match (&spec.size, spec.dimensions) {
            (Some(size), Some(d)) if size.0.len() == 1 => vec![size.0[0].to_string(); d].join("x"),
            (Some(size), _) => size.to_string(),
            (None, _) => String::new(),
        };
        let boundary = match spec.boundary {
            Some(Boundary::Free) => "free",
            _ => "periodic",
        };
        let seed = spec.disorder_seed.unwrap_or(1);
        let on = format!("{}{}", spec.lattice_in_words(), shape());
        if let Some(words) = spec.model_in_words(&on, boundary) {
            return words;
        }
        match spec.kind {
            Some(Kind::Ising) => format!("Ising {on} {boundary}"),
            Some(Kind::Potts) => {
                format!("Potts q={} {on} {boundary}", spec.q.unwrap_or(3))
            }
            Some(Kind::SpinGlass) => {
                let law = match spec.couplings {
                    Some(Disorder::Gaussian) => "gaussian",
                    _ => "pm1",
                };
                match spec.dimensions {
                    Some(_) => {
                        format!("spin glass {} {boundary}, {law} couplings (seed {seed})", shape())
                    }
                    None => format!(
                        "Sherrington-Kirkpatrick glass of {sites} spins, {law} couplings (seed {seed})"
                    ),
                }
            }
            Some(Kind::Rbm) => format!(
                "restricted Boltzmann machine {}+{} (seed {seed})",
                spec.visible.unwrap_or(0),
                spec.hidden.unwrap_or(0)
            ),
            Some(kind @ (Kind::Maxcut | Kind::IndependentSet)) => {
                let what = match kind {
                    Kind::Maxcut => "maximum cut",
                    _ => "maximum independent set",
                };
                format!("{what} of {} ({sites} vertices)", spec.file_name())
            }
            _ => format!("{} ({sites} sites)", spec.file_name()),
        }
    }

    fn file_name(&self) -> String {
        let name = self.path.as_deref().and_then(Path::file_name).unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// The energy and the distribution as formulas with their numbers.
    pub fn formula(&self) -> String {
        let spec = self;
        let field = |what: &str| match &spec.field {
            Some(Field::Uniform(h)) if *h == 0.0 => String::new(),
            Some(Field::Uniform(h)) => {
                format!(" {} {} sum_i {what}", if *h < 0.0 { '-' } else { '+' }, h.abs())
            }
            Some(_) => format!(" + sum_i h_i {what}"),
            None => String::new(),
        };
        if let Some(energy) = spec.model_formula(field) {
            return format!("E = {energy},  rho ~ exp(-{} E)", spec.beta.unwrap_or(1.0));
        }
        let energy = match spec.kind {
            Some(Kind::Ising) => spec.pairs_as_formula(|j| format!("s_i s_{j}")) + &field("s_i"),
            Some(Kind::Potts) => {
                spec.pairs_as_formula(|j| format!("[x_i = x_{j}]")) + &field("[x_i = 0]")
            }
            Some(Kind::SpinGlass) if spec.dimensions.is_none() => {
                format!("-N^(-1/2) sum_(i<j) J_ij s_i s_j{}", field("s_i"))
            }
            Some(Kind::SpinGlass) => format!("-sum_<ij> J_ij s_i s_j{}", field("s_i")),
            Some(Kind::Maxcut) => "-sum_ij w_ij [x_i != x_j]".to_owned(),
            Some(Kind::IndependentSet) => "-sum_i x_i + 2 sum_ij x_i x_j".to_owned(),
            Some(Kind::Rbm) => "-sum_ij v_i W_ij h_j - sum_i a_i v_i - sum_j b_j h_j".to_owned(),
            _ => "that of the file".to_owned(),
        };
        format!("E = {energy},  rho ~ exp(-{} E)", spec.beta.unwrap_or(1.0))
    }
}
