//! Adam with clipping, and an average of the parameters.

use rayon::prelude::*;

use super::TrainSpec;

/// Parameters on their way, with Adam's moments and the running average.
#[derive(Clone, Debug, PartialEq)]
pub struct Optimiser {
    /// The parameters.
    pub parameters: Vec<f32>,
    /// Their exponential average, which sampling uses.
    pub average: Vec<f32>,
    /// Mean of the gradient.
    pub first: Vec<f32>,
    /// Mean of its square.
    pub second: Vec<f32>,
    /// Steps made.
    pub step: u64,
}

/// Parameters per task: fixed, so that nothing depends on the number of threads.
const CHUNK: usize = 1 << 14;

impl Optimiser {
    /// Start from `parameters`.
    pub fn new(parameters: Vec<f32>) -> Self {
        let n = parameters.len();
        Optimiser {
            average: parameters.clone(),
            parameters,
            first: vec![0.0; n],
            second: vec![0.0; n],
            step: 0,
        }
    }

    /// Make a step with learning rate `rate`; returns the norm of the gradient before clipping.
    pub fn step(&mut self, gradient: &[f32], rate: f64, spec: &TrainSpec) -> f64 {
        let squares: Vec<f64> = gradient
            .par_chunks(CHUNK)
            .map(|part| part.iter().map(|&g| f64::from(g) * f64::from(g)).sum())
            .collect();
        let norm = squares.iter().sum::<f64>().sqrt();
        if !norm.is_finite() {
            return norm;
        }
        let scale = if norm > spec.clip { spec.clip / norm } else { 1.0 };
        self.step += 1;
        let count = self.step as f64;
        let rate = rate * (1.0 - spec.beta2.powf(count)).sqrt() / (1.0 - spec.beta1.powf(count));
        // A young average forgets faster, so that the initial parameters do not linger.
        let ema = spec.ema.min((1.0 + count) / (10.0 + count));
        let (b1, b2) = (spec.beta1 as f32, spec.beta2 as f32);
        let (scale, rate, ema) = (scale as f32, rate as f32, ema as f32);
        self.parameters
            .par_chunks_mut(CHUNK)
            .zip(self.average.par_chunks_mut(CHUNK))
            .zip(self.first.par_chunks_mut(CHUNK))
            .zip(self.second.par_chunks_mut(CHUNK))
            .zip(gradient.par_chunks(CHUNK))
            .for_each(|((((parameters, average), first), second), gradient)| {
                for i in 0..parameters.len() {
                    let g = scale * gradient[i];
                    first[i] = b1 * first[i] + (1.0 - b1) * g;
                    second[i] = b2 * second[i] + (1.0 - b2) * g * g;
                    parameters[i] -= rate * first[i] / (second[i].sqrt() + 1e-8);
                    average[i] = ema * average[i] + (1.0 - ema) * parameters[i];
                }
            });
        norm
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adam_finds_the_bottom_of_a_bowl() {
        let spec = TrainSpec { ema: 0.9, ..TrainSpec::default() };
        let mut optimiser = Optimiser::new(vec![3.0, -2.0, 0.5]);
        let goal = [1.0f32, 1.0, -1.0];
        for _ in 0..3000 {
            let gradient: Vec<f32> =
                optimiser.parameters.iter().zip(goal).map(|(p, g)| 2.0 * (p - g)).collect();
            optimiser.step(&gradient, 0.01, &spec);
        }
        for (p, g) in optimiser.average.iter().zip(goal) {
            assert!((p - g).abs() < 1e-3, "{p} {g}");
        }
    }

    #[test]
    fn the_first_step_is_the_learning_rate_and_clipping_does_not_turn_it() {
        let spec = TrainSpec { clip: 1.0, ..TrainSpec::default() };
        let mut optimiser = Optimiser::new(vec![0.0, 0.0]);
        let norm = optimiser.step(&[300.0, -400.0], 0.1, &spec);
        assert_eq!(norm, 500.0);
        assert!((optimiser.parameters[0] + 0.1).abs() < 1e-5);
        assert!((optimiser.parameters[1] - 0.1).abs() < 1e-5);
        let before = optimiser.clone();
        assert!(optimiser.step(&[f32::NAN, 0.0], 0.1, &spec).is_nan());
        assert_eq!(optimiser, before, "a gradient that is not a number changes nothing");
    }
}
