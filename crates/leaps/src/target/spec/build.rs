//! The energy that a description stands for.

use std::sync::Arc;

use super::{Field, Geometry, Kind, Size, TargetSpec};
use crate::target::{
    Boundary, Disorder, Format, Graph, Instance, Interaction, Lattice, Pairwise, Target,
};
use crate::{Result, finite};

impl TargetSpec {
    /// The lattice of a [`filled`](Self::filled) description, if it has one.
    pub fn lattice(&self) -> Result<Option<Lattice>> {
        self.dimensions.map(|_| self.full_lattice()).transpose()
    }

    pub(super) fn full_lattice(&self) -> Result<Lattice> {
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

    /// The instance in the file of a target that is one, and the format of the file.
    pub fn instance(&self) -> Result<(Instance, Format)> {
        Instance::read(self.path.as_deref().unwrap_or("".as_ref()), self.format)
    }

    /// The lattice of a [`filled`](Self::filled) description, and whether all its sites are alike. That of a file is found out by reading it; one
    /// that cannot be read has none.
    pub fn placement(&self) -> Result<(Option<Lattice>, bool)> {
        if self.kind != Some(Kind::File) {
            return Ok((self.lattice()?, self.is_uniform()));
        }
        let model = self.pairwise().ok();
        let uniform = model.as_ref().is_some_and(Pairwise::is_uniform);
        Ok((model.and_then(|model| model.lattice().cloned()), uniform))
    }

    /// The energy of a [`filled`](Self::filled) description.
    pub fn build(&self) -> Result<Arc<dyn Target>> {
        Ok(match self.kind {
            Some(kind) if kind.is_lattice_model() => Arc::new(self.lattice_model()?),
            Some(Kind::File) => self.instance()?.0.target()?,
            _ => Arc::new(self.pairwise()?),
        })
    }

    /// The energy of a description of a pairwise model.
    fn pairwise(&self) -> Result<Pairwise> {
        let seed = self.disorder_seed.unwrap_or(1);
        let model = match self.kind {
            Some(Kind::Ising) => self.uniform_model(Interaction::Ising)?,
            Some(Kind::Potts) => self.uniform_model(Interaction::Potts)?,
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
            _ => self.instance()?.0.model()?,
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
