//! Write a graph by rudy's published parameters, such as those of the G-set, in its format.
//!
//! ```text
//! cargo run --release -p leaps --example rudy -- random 800 0.06 pm1 1 > like-G6.txt
//! cargo run --release -p leaps --example rudy -- torus 100x8 pm1 1 > like-G11.txt
//! ```
//! The random numbers are not rudy's, so that the graphs are other ones with the same law.

use leaps::target::{Boundary, EdgeWeights, Graph, Lattice};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let weights = |word: &str| match word {
        "one" => Ok(EdgeWeights::One),
        "pm1" => Ok(EdgeWeights::Pm1),
        _ => Err(format!("'{word}': weights are one or pm1")),
    };
    let graph = match words[..] {
        ["random", vertices, density, law, seed] => {
            Graph::random(vertices.parse()?, density.parse()?, weights(law)?, seed.parse()?)?
        }
        ["torus", sides, law, seed] => {
            let sides: Result<Vec<usize>, _> = sides.split('x').map(str::parse).collect();
            let torus = Lattice::new(&sides?, Boundary::Periodic)?;
            Graph::on_lattice(&torus, weights(law)?, seed.parse()?)
        }
        _ => {
            return Err("random VERTICES DENSITY one|pm1 SEED, or torus 100x8 one|pm1 SEED".into());
        }
    };
    print!("{}", graph.to_text());
    Ok(())
}
