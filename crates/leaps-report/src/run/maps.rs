//! Maps of structure factors over all wave vectors of a lattice of two dimensions, and of correlations over all offsets.

use std::f64::consts::TAU;

use leaps::results::SamplerResult;

use crate::draw::HeatMap;
use crate::figure::Figure;

/// The maps of a result that has them.
pub fn figures(section: &'static str, result: &SamplerResult) -> Vec<Figure> {
    let (structure, correlation) = match result {
        SamplerResult::Walkers(own) => (&own.structure_factor_map, &own.correlation_map),
        SamplerResult::Chains(own) => (&own.structure_factor_map, &own.correlation_map),
    };
    // Wave vectors and offsets are the same steps along the axes, in the same order.
    let (mut waves, mut offsets) = (Vec::new(), Vec::new());
    let sides = [0, 1].map(|axis| {
        let steps = structure.iter().filter_map(|own| own.k.get(axis).map(|k| k.abs()));
        let least = steps.filter(|k| *k > 0.0).fold(TAU, f64::min);
        (TAU / least).round() as i64
    });
    for (wave, offset) in structure.iter().zip(correlation) {
        let &[row, column] = &offset.offset[..] else { return Vec::new() };
        for [row, column] in both([row, column], sides) {
            let radians = |step: i64, axis: usize| TAU * step as f64 / sides[axis] as f64;
            waves.push((radians(column, 1), radians(row, 0), wave.value.mean));
            offsets.push((column as f64, row as f64, offset.value.mean));
        }
    }
    if waves.is_empty() {
        return Vec::new();
    }
    let map = |name: &str, title: &str, [x, y]: [&str; 2], cells| Figure {
        name: name.to_owned(),
        title: title.to_owned(),
        section,
        element: HeatMap::new(title, x, y, cells).svg(),
    };
    let (k, r) = (["k along columns", "k along rows"], ["columns apart", "rows apart"]);
    vec![
        map("structure-factor", "Structure factor S(k)", k, waves),
        map("correlation-map", "Correlation G(r)", r, offsets),
    ]
}

/// A place and its opposite in a zone that has half a side at its upper ends alone, if these are two places.
fn both(place: [i64; 2], sides: [i64; 2]) -> Vec<[i64; 2]> {
    let back = |axis: usize| match 2 * place[axis] == sides[axis] {
        true => place[axis],
        false => -place[axis],
    };
    let opposite = [back(0), back(1)];
    if opposite == place { vec![place] } else { vec![place, opposite] }
}

#[cfg(test)]
mod tests {
    use leaps::prelude::*;

    use super::*;

    #[test]
    fn maps_cover_the_zone_once() {
        let problem = Ising::lattice(&[4, 5]).field(0.1).beta(0.3).unwrap();
        let run =
            Annealing::ais(problem).walkers(20).intervals(5).structure_factor().run().unwrap();
        let result = SamplerResult::Walkers(Box::new(run.result));
        let figures = figures("", &result);
        let names: Vec<&str> = figures.iter().map(|figure| figure.name.as_str()).collect();
        assert_eq!(names, ["structure-factor", "correlation-map"]);
        for figure in &figures {
            // Every cell says where it is.
            assert_eq!(figure.element.matches("<g><title>").count(), 20, "{}", figure.element);
        }
        assert_eq!(both([2, 1], [4, 5]), [[2, 1], [2, -1]]);
        assert_eq!(both([2, 0], [4, 5]), [[2, 0]]);
        let none = Annealing::ais(Ising::square(3).beta(0.3).unwrap()).walkers(20).run().unwrap();
        assert!(super::figures("", &SamplerResult::Walkers(Box::new(none.result))).is_empty());
    }
}
