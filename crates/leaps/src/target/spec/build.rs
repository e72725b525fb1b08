//! The energy that a description stands for.

use super::{Field, Geometry, Kind, Size, TargetSpec};
use crate::target::{Boundary, Disorder, Graph, Lattice, Pairwise, Target, read_edges};
use crate::{Result, finite};

impl TargetSpec {
    /// The lattice of a [`filled`](Self::filled) description, if it has one.
    pub fn lattice(&self) -> Result<Option<Lattice>> {
        self.dimensions.map(|_| self.full_lattice()).transpose()
    }

    fn full_lattice(&self) -> Result<Lattice> {
        let sides = self.size.clone().unwrap_or(Size(vec![2])).0;
        let dimensions = self.dimensions.unwrap_or(2);
        let shape = if sides.len() > 1 { sides } else { vec![sides[0]; dimensions] };
        Lattice::new(&shape, self.boundary.unwrap_or(Boundary::Periodic))
    }

    fn disorder(&self) -> Disorder {
        self.couplings.unwrap_or(Disorder::Pm1)
    }

    /// The graph of a problem on one: read from its file.
    pub fn graph(&self) -> Result<Graph> {
        Graph::read(self.path.as_deref().unwrap_or("".as_ref()))
    }

    /// The energy of a [`filled`](Self::filled) description.
    pub fn build(&self) -> Result<Pairwise> {
        let coupling = self.coupling.unwrap_or(1.0);
        let seed = self.disorder_seed.unwrap_or(1);
        let model = match self.kind {
            Some(Kind::Ising) => Pairwise::ising(self.full_lattice()?, coupling, 0.0)?,
            Some(Kind::Potts) => {
                Pairwise::potts(self.full_lattice()?, self.q.unwrap_or(3), coupling, 0.0)?
            }
            Some(Kind::SpinGlass) if self.geometry == Some(Geometry::Complete) => {
                let spins = self.size.as_ref().map_or(64, |size| size.0[0]);
                Pairwise::sherrington_kirkpatrick(spins, self.disorder(), seed)?
            }
            Some(Kind::SpinGlass) => {
                Pairwise::edwards_anderson(self.full_lattice()?, self.disorder(), seed)?
            }
            Some(Kind::Rbm) => Pairwise::random_boltzmann_machine(
                self.visible.unwrap_or(16),
                self.hidden.unwrap_or(8),
                self.weight_scale.unwrap_or(0.5),
                seed,
            )?,
            Some(Kind::Maxcut) => Pairwise::max_cut(&self.graph()?)?,
            Some(Kind::IndependentSet) => Pairwise::independent_set(&self.graph()?)?,
            Some(Kind::File) | None => read_edges(self.path.as_deref().unwrap_or("".as_ref()))?,
        };
        match self.field.as_ref().map(Field::values).transpose()?.as_deref() {
            None => Ok(model),
            Some([one]) if model.sites() > 1 => {
                finite("target.field", *one)?;
                model.with_uniform_field(*one)
            }
            Some(values) => model.with_fields(values),
        }
    }
}
