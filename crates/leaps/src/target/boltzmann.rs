//! Restricted Boltzmann machines, visible and hidden units together.

use super::{Interaction, Pairwise, Term};
use crate::device::{Purpose, Stream};
use crate::{Error, Result, finite};

impl Pairwise {
    /// A restricted Boltzmann machine over units 0 or 1, visible ones first:
    /// `E(v, h) = -sum_ij v_i W_ij h_j - sum_i a_i v_i - sum_j b_j h_j`, with `weights[i * hidden + j]`.
    ///
    /// The units are the values themselves. `v h = (1 + s)(1 + s')/4` turns each weight into an Ising
    /// coupling `W/4`, two fields and a constant.
    pub fn boltzmann_machine(
        weights: &[f64],
        visible_bias: &[f64],
        hidden_bias: &[f64],
    ) -> Result<Self> {
        let (visible, hidden) = (visible_bias.len(), hidden_bias.len());
        if visible == 0 || hidden == 0 || weights.len() != visible * hidden {
            return Err(Error::invalid(
                "weights",
                weights.len(),
                format!("visible x hidden = {visible} x {hidden} numbers, both at least 1"),
                "give one weight per pair of units",
            ));
        }
        let mut edges = Vec::with_capacity(weights.len());
        let mut fields = vec![0.0; 2 * (visible + hidden)];
        let mut constant = 0.0;
        for (i, row) in weights.chunks_exact(hidden).enumerate() {
            for (j, &weight) in row.iter().enumerate() {
                finite("weights", weight)?;
                edges.push((i as u32, (visible + j) as u32, weight / 4.0));
                // -W/4 (1 + s + s'): the part that is not a coupling.
                for unit in [i, visible + j] {
                    fields[2 * unit] += weight / 4.0;
                    fields[2 * unit + 1] -= weight / 4.0;
                }
                constant -= weight / 4.0;
            }
        }
        for (unit, &bias) in visible_bias.iter().chain(hidden_bias).enumerate() {
            fields[2 * unit + 1] -= finite("bias", bias)?;
        }
        let mut model = Self::from_edges(Interaction::Ising, visible + hidden, 2, &edges)?;
        model.absorb(Term { name: "weights".into(), couplings: Vec::new(), fields, constant });
        Ok(model)
    }

    /// A restricted Boltzmann machine with normal weights of standard deviation `scale` and normal
    /// biases of standard deviation 0.1, from a seed.
    pub fn random_boltzmann_machine(
        visible: usize,
        hidden: usize,
        scale: f64,
        seed: u64,
    ) -> Result<Self> {
        finite("weight-scale", scale)?;
        let mut stream = Stream::new(seed, Purpose::Disorder, 0, 0);
        let weights: Vec<f64> = (0..visible * hidden).map(|_| scale * stream.normal()).collect();
        let mut bias = |n: usize| -> Vec<f64> { (0..n).map(|_| 0.1 * stream.normal()).collect() };
        let (a, b) = (bias(visible), bias(hidden));
        Self::boltzmann_machine(&weights, &a, &b)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Target;
    use super::*;

    #[test]
    fn energy_is_the_textbook_formula() {
        let (w, a, b) = ([0.3, -1.2, 0.7, 2.0, -0.5, 0.1], [0.2, -0.4], [1.0, 0.0, -0.3]);
        let machine = Pairwise::boltzmann_machine(&w, &a, &b).unwrap();
        for code in 0..32u32 {
            let x: Vec<u8> = (0..5).map(|i| (code >> i & 1) as u8).collect();
            let unit = |i: usize| f64::from(x[i]);
            let mut energy = 0.0;
            for i in 0..2 {
                energy -= a[i] * unit(i);
                for j in 0..3 {
                    energy -= w[i * 3 + j] * unit(i) * unit(2 + j);
                }
            }
            for j in 0..3 {
                energy -= b[j] * unit(2 + j);
            }
            assert!((machine.energy(0, &x) - energy).abs() < 1e-13);
        }
    }
}
