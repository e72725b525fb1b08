//! Graphs with weighted edges, and the two problems of optimisation on them: maximum cut and maximum independent set.
//!
//! Files are those of rudy and of the G-set: the numbers of vertices and edges, then one edge a line, vertices numbered
//! from 1, a weight of 1 if none is given; `#` starts a comment.
//! ```text
//! 3 2
//! 1 2 -1
//! 2 3
//! ```

use std::collections::BTreeSet;
use std::path::Path;

use super::{Disorder, Interaction, Lattice, Pairwise, Term};
use crate::device::{Purpose, Stream};
use crate::file::{self, TEXT};
use crate::{Error, Result};

/// Most vertices of a file: bounds the memory a hostile file can ask for.
const MAX_VERTICES: usize = 1 << 24;

/// What an edge with both ends in an independent set costs, where a vertex is worth 1: removing one of them always pays.
const PENALTY: f64 = 2.0;

/// An undirected graph with weighted edges between vertices that are numbered from 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    /// Number of vertices.
    pub vertices: usize,
    /// Edges with their weights, none from a vertex to itself.
    pub edges: Vec<(u32, u32, f64)>,
}

/// The weights of the edges of a random graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EdgeWeights {
    /// All are 1.
    One,
    /// 1 or -1, equally likely.
    Pm1,
}

impl EdgeWeights {
    fn draw(self, stream: &mut Stream) -> f64 {
        match self {
            EdgeWeights::One => 1.0,
            EdgeWeights::Pm1 => Disorder::Pm1.draw(stream),
        }
    }
}

impl Graph {
    /// Read a file of rudy's format.
    pub fn read(path: &Path) -> Result<Self> {
        Self::parse(file::read(path, TEXT)?, path)
    }

    /// Parse the bytes of such a file; `path` is for messages.
    pub(crate) fn parse(bytes: Vec<u8>, path: &Path) -> Result<Self> {
        let text = file::text(bytes, path)?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let mut head: Option<(usize, usize, usize)> = None;
        let mut edges = Vec::new();
        let fail = |line: usize, column: usize, reason: String| {
            let reason = format!("rudy (G-set): {reason}");
            Error::Parse { path: path.into(), line, column, reason }
        };
        for (number, line) in text.lines().enumerate() {
            let number = number + 1;
            let content = line.split('#').next().unwrap_or("");
            let at = |word: &str| word.as_ptr() as usize - line.as_ptr() as usize + 1;
            let words: Vec<&str> = content.split_whitespace().collect();
            let whole = |word: &str, what: &str| {
                word.parse::<usize>().map_err(|_| {
                    let shown: String = word.chars().take(40).collect();
                    fail(number, at(word), format!("'{shown}' is not {what}"))
                })
            };
            match (&words[..], head) {
                ([], _) => {}
                (&[n, m], None) => {
                    let vertices = whole(n, "a number of vertices")?;
                    if !(1..=MAX_VERTICES).contains(&vertices) {
                        let reason = format!("a graph has from 1 to {MAX_VERTICES} vertices");
                        return Err(fail(number, at(n), reason));
                    }
                    head = Some((number, vertices, whole(m, "a number of edges")?));
                }
                (&[i, j, ref rest @ ..], Some((_, vertices, _))) if rest.len() <= 1 => {
                    let vertex = |word: &str| match whole(word, "a vertex")? {
                        v if (1..=vertices).contains(&v) => Ok(v as u32 - 1),
                        v => {
                            let reason = format!("vertex {v} is not from 1 to {vertices}");
                            Err(fail(number, at(word), reason))
                        }
                    };
                    let ends = (vertex(i)?, vertex(j)?);
                    if ends.0 == ends.1 {
                        let reason = format!("an edge from vertex {} to itself", ends.0 + 1);
                        return Err(fail(number, at(i), reason));
                    }
                    let weight = rest.first().map_or(Ok(1.0), |word| {
                        let weight = word.parse().ok().filter(|weight: &f64| weight.is_finite());
                        weight.ok_or_else(|| {
                            let shown: String = word.chars().take(40).collect();
                            fail(number, at(word), format!("'{shown}' is not a finite weight"))
                        })
                    })?;
                    edges.push((ends.0, ends.1, weight));
                }
                ([first, ..], None) => {
                    let reason = "expected 'vertices edges', as files of rudy and the G-set begin";
                    return Err(fail(number, at(first), reason.into()));
                }
                ([first, ..], Some(_)) => {
                    let reason = "expected 'i j' or 'i j weight', an edge between two vertices";
                    return Err(fail(number, at(first), reason.into()));
                }
            }
        }
        let Some((line, vertices, expected)) = head else {
            return Err(fail(1, 1, "no line 'vertices edges'".into()));
        };
        if edges.len() != expected {
            let found = edges.len();
            return Err(fail(
                line,
                1,
                format!("this line promises {expected} edges, and {found} follow"),
            ));
        }
        Ok(Graph { vertices, edges })
    }

    /// The text of a file.
    pub fn to_text(&self) -> String {
        let mut text = format!("{} {}\n", self.vertices, self.edges.len());
        for (i, j, weight) in &self.edges {
            text += &format!("{} {} {weight}\n", i + 1, j + 1);
        }
        text
    }

    /// A random graph as rudy's `-rnd_graph vertices density`: exactly that share of all edges, to the nearest.
    pub fn random(vertices: usize, density: f64, weights: EdgeWeights, seed: u64) -> Result<Self> {
        if !(2..=100_000).contains(&vertices) || !(0.0..=1.0).contains(&density) {
            let shown = format!("{vertices} vertices, density {density}");
            let condition = "2 to 100000 vertices and a density from 0 to 1";
            return Err(Error::invalid("graph", shown, condition, "6 % is a density of 0.06"));
        }
        let all = vertices as u64 * (vertices as u64 - 1) / 2;
        let count = (density * all as f64).round() as u64;
        let mut stream = Stream::new(seed, Purpose::Disorder, 0, 0);
        // Floyd's: every set of so many edges is equally likely.
        let mut chosen = BTreeSet::new();
        for last in all - count..all {
            let pick = (stream.uniform() * (last + 1) as f64) as u64;
            if !chosen.insert(pick.min(last)) {
                chosen.insert(last);
            }
        }
        let edge = |number: u64| {
            let mut row = ((2.0 * number as f64 + 0.25).sqrt() - 0.5) as u64;
            // The root may be off by one.
            while row * (row + 1) / 2 > number {
                row -= 1;
            }
            while (row + 1) * (row + 2) / 2 <= number {
                row += 1;
            }
            ((number - row * (row + 1) / 2) as u32, row as u32 + 1)
        };
        let ends: Vec<(u32, u32)> = chosen.into_iter().map(edge).collect();
        let edges = ends.into_iter().map(|(i, j)| (i, j, weights.draw(&mut stream))).collect();
        Ok(Graph { vertices, edges })
    }

    /// The bonds of a lattice, as rudy's `-toroidal_grid_2D` for a periodic one of two dimensions.
    pub fn on_lattice(lattice: &Lattice, weights: EdgeWeights, seed: u64) -> Self {
        let mut stream = Stream::new(seed, Purpose::Disorder, 0, 0);
        let bonds = lattice.bonds().into_iter();
        let edges = bonds.map(|(i, j)| (i, j, weights.draw(&mut stream))).collect();
        Graph { vertices: lattice.sites(), edges }
    }

    /// The weight of the edges between vertices of different values.
    pub fn cut(&self, x: &[u8]) -> f64 {
        let across = |&&(i, j, _): &&(u32, u32, f64)| x[i as usize] != x[j as usize];
        self.edges.iter().filter(across).map(|edge| edge.2).sum()
    }

    /// The number of vertices of value 1 if no edge joins two of them.
    pub fn independent(&self, x: &[u8]) -> Option<usize> {
        let inside = |&(i, j, _): &(u32, u32, f64)| x[i as usize] == 1 && x[j as usize] == 1;
        let size = x.iter().filter(|&&value| value == 1).count();
        (!self.edges.iter().any(inside)).then_some(size)
    }
}

impl Pairwise {
    /// Maximum cut: `E(x) = -sum_ij w_ij [x_i != x_j]`, so that the lowest energy is minus the largest cut.
    pub fn max_cut(graph: &Graph) -> Result<Self> {
        let edges: Vec<_> = graph.edges.iter().map(|&(i, j, w)| (i, j, -0.5 * w)).collect();
        let mut model = Self::from_edges(Interaction::Ising, graph.vertices, 2, &edges)?;
        // Couplings of spins count half of every weight twice; the other half is the same for all states.
        let constant = -0.5 * graph.edges.iter().map(|edge| edge.2).sum::<f64>();
        let (couplings, fields) = (Vec::new(), Vec::new());
        model.absorb(Term { name: "cut".into(), couplings, fields, constant });
        Ok(model)
    }

    /// Maximum independent set: `E(x) = -sum_i x_i + 2 sum_ij x_i x_j` over the edges, whatever their weights.
    ///
    /// In a state that no change of one site improves no edge is inside the set: the energy is minus its size.
    pub fn independent_set(graph: &Graph) -> Result<Self> {
        let once: BTreeSet<(u32, u32)> =
            graph.edges.iter().map(|&(i, j, _)| (i.min(j), i.max(j))).collect();
        let edges: Vec<_> = once.iter().map(|&(i, j)| (i, j, -0.25 * PENALTY)).collect();
        let mut model = Self::from_edges(Interaction::Ising, graph.vertices, 2, &edges)?;
        // x x' = ([x = x'] + x + x' - 1) / 2
        let mut fields = vec![0.0; 2 * graph.vertices];
        for entry in fields.iter_mut().skip(1).step_by(2) {
            *entry = -1.0;
        }
        for (i, j) in once {
            fields[2 * i as usize + 1] += 0.5 * PENALTY;
            fields[2 * j as usize + 1] += 0.5 * PENALTY;
        }
        let constant = -0.25 * PENALTY * edges.len() as f64;
        model.absorb(Term { name: "set".into(), couplings: Vec::new(), fields, constant });
        Ok(model)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Boundary, Target};
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<Graph> {
        Graph::parse(text.as_bytes().to_vec(), Path::new("graph.txt"))
    }

    fn states(n: usize) -> impl Iterator<Item = Vec<u8>> {
        (0..1u32 << n).map(move |k| (0..n).map(|i| (k >> i & 1) as u8).collect())
    }

    #[test]
    fn energies_are_cuts_and_sizes() {
        let graph =
            parse("# a graph\n5 6\n1 2 -1\n2 3\n3 4 0.5\n4 5 2\n5 1\n1 3 3 # last\n").unwrap();
        assert_eq!(graph.edges[0], (0, 1, -1.0));
        assert_eq!(graph.edges[1], (1, 2, 1.0));
        assert_eq!(parse(&graph.to_text()).unwrap(), graph);
        let (cut, set) =
            (Pairwise::max_cut(&graph).unwrap(), Pairwise::independent_set(&graph).unwrap());
        assert_eq!((cut.terms(), set.terms()), (1, 1));
        for x in states(5) {
            assert!((cut.energy(0, &x) + graph.cut(&x)).abs() < 1e-12, "{x:?}");
            let size = x.iter().filter(|&&value| value == 1).count() as f64;
            let inside = |e: &&(u32, u32, f64)| x[e.0 as usize] == 1 && x[e.1 as usize] == 1;
            let violated = graph.edges.iter().filter(inside).count();
            assert_eq!(set.energy(0, &x), 2.0 * violated as f64 - size, "{x:?}");
            assert_eq!(graph.independent(&x), (violated == 0).then_some(size as usize));
        }
    }

    #[test]
    fn edges_of_a_set_count_once() {
        let twice = parse("2 2\n1 2\n2 1\n").unwrap();
        let set = Pairwise::independent_set(&twice).unwrap();
        assert_eq!((set.energy(0, &[1, 1]), set.energy(0, &[1, 0])), (0.0, -1.0));
    }

    #[test]
    fn random_graphs_have_rudys_numbers_of_edges() {
        let graph = Graph::random(800, 0.06, EdgeWeights::Pm1, 1).unwrap();
        assert_eq!(graph.edges.len(), 19176); // as G1 to G10
        let distinct: BTreeSet<_> = graph.edges.iter().map(|e| (e.0, e.1)).collect();
        assert_eq!(distinct.len(), graph.edges.len());
        assert!(graph.edges.iter().all(|&(i, j, w)| i < j && j < 800 && w.abs() == 1.0));
        let up = graph.edges.iter().filter(|edge| edge.2 == 1.0).count() as f64;
        assert!((up - 9588.0).abs() < 5.0 * 69.3, "{up}");
        assert_ne!(graph, Graph::random(800, 0.06, EdgeWeights::Pm1, 2).unwrap());
        let complete = Graph::random(20, 1.0, EdgeWeights::One, 1).unwrap();
        assert_eq!(complete.edges.len(), 190);
        let torus = Lattice::new(&[100, 8], Boundary::Periodic).unwrap();
        let torus = Graph::on_lattice(&torus, EdgeWeights::Pm1, 1);
        assert_eq!((torus.vertices, torus.edges.len()), (800, 1600)); // as G11
        assert!(Graph::random(20, 6.0, EdgeWeights::One, 1).is_err());
    }

    #[test]
    fn errors_name_line_and_column() {
        for (text, line, column) in [
            ("", 1, 1),
            ("# nothing", 1, 1),
            ("3", 1, 1),
            ("x 1\n1 2", 1, 1),
            ("3 x\n1 2", 1, 3),
            ("0 0", 1, 1),
            ("3 1\n0 2", 2, 1),
            ("3 1\n1 4", 2, 3),
            ("3 1\n 2 2", 2, 2),
            ("3 1\n1 2 nan", 2, 5),
            ("3 1\n1 2 one", 2, 5),
            ("3 1\n1 2 3 4", 2, 1),
            ("3 2\n1 2", 1, 1),
            ("99999999999 1\n1 2", 1, 1),
        ] {
            match parse(text) {
                Err(Error::Parse { line: l, column: c, .. }) => {
                    assert_eq!((l, c), (line, column), "{text}")
                }
                other => panic!("{text}: {other:?}"),
            }
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in "([0-9a-z .#-]{0,12}\n){0,8}") {
            let _ = parse(&text);
        }
    }
}
