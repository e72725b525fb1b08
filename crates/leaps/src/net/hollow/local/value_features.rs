//! Global features of one walker, sixteen sites in lanes.
//!
//! The sums over sites are saved and changed with the value of a site. They are all whole numbers, the same in whatever order they are added.

use crate::device::vector::{Array, Floats, Vector, WIDTH, cast, cast_mut};
use crate::net::hollow::global_features::{BondClass, FUNCTIONS, GlobalFeatures, functions};

/// The values of a walker and the sums over them.
#[derive(Clone, Debug)]
pub(super) struct ValueFeatures {
    global: Option<GlobalFeatures>,
    inputs: usize,
    sites: usize,
    values: Vec<u8>,
    /// What enters, `[site / 16][input]`.
    x: Vec<Array<f32>>,
    /// How many bonds of a class join equal values, and what clusters with a table gain: at every site, `[class][site / 16]`, and in all.
    own: Vec<Array<f32>>,
    bonds: Vec<f32>,
    /// The sum of what enters, and the sums with the signs of every order, `[order][input]`.
    sum: Vec<f32>,
    orders: Vec<f32>,
    /// The signs of every order, `[order][site / 16]`.
    signs: Vec<Array<f32>>,
    /// The features, `[site / 16][feature]`.
    features: Vec<Array<f32>>,
}

impl ValueFeatures {
    pub(super) fn new(global: Option<&GlobalFeatures>, inputs: usize, sites: usize) -> Self {
        let blocks = sites.div_ceil(WIDTH);
        let zeros = |n: usize| vec![Array([0.0; WIDTH]); n];
        let classes = global.map_or(0, |global| global.classes.len() + global.tables.len());
        let orders = global.map_or(&[][..], |global| &global.orders);
        let signs = orders.iter().flat_map(|signs| {
            signs.chunks(WIDTH).map(|some| {
                let sign = |lane| some.get(lane).map_or(0.0, |&sign| f32::from(sign));
                Array(std::array::from_fn(sign))
            })
        });
        ValueFeatures {
            inputs,
            sites,
            values: vec![0; sites],
            x: zeros(blocks * inputs),
            own: zeros(classes * blocks),
            bonds: vec![0.0; classes],
            sum: vec![0.0; inputs],
            orders: vec![0.0; orders.len() * inputs],
            signs: signs.collect(),
            features: zeros(blocks * global.map_or(0, GlobalFeatures::width)),
            global: global.cloned(),
        }
    }

    /// What enters at a site.
    fn value(&self, site: usize, s: usize) -> f32 {
        let value = self.values[site];
        match self.inputs {
            1 => 2.0 * f32::from(value) - 1.0,
            _ => f32::from(u8::from(usize::from(value) == s)),
        }
    }

    /// Put in all values, also into the lanes of the sites' rows.
    pub(super) fn set(&mut self, values: &[u8], rows: &mut [Array<f32>]) {
        self.values.copy_from_slice(values);
        for site in 0..self.sites {
            for s in 0..self.inputs {
                self.write(site, s, rows);
            }
        }
        let Some(global) = self.global.take() else { return };
        for s in 0..self.inputs {
            self.sum[s] = (0..self.sites).map(|site| self.value(site, s)).sum();
            for (k, signs) in global.orders.iter().enumerate() {
                let signs = signs.iter().map(|&sign| f32::from(sign)).enumerate();
                let signed = signs.map(|(site, sign)| sign * self.value(site, s));
                self.orders[k * self.inputs + s] = signed.sum();
            }
        }
        for class in 0..global.classes.len() {
            for site in 0..self.sites {
                let own = self.count(&global, class, site);
                *self.own_mut(class, site) = own;
            }
            let forwards = global.classes[class].ends.iter().step_by(2);
            self.bonds[class] = forwards
                .flat_map(|ends| ends.iter().enumerate())
                .map(|(i, &end)| self.equal(i, end))
                .sum();
        }
        for (class, table) in (global.classes.len()..).zip(&global.tables) {
            for site in 0..self.sites {
                *self.own_mut(class, site) = table.own(site, values);
            }
            self.bonds[class] = table.all(values);
        }
        self.global = Some(global);
    }

    /// Change one value, also in the lanes of the sites' rows.
    pub(super) fn change(&mut self, site: usize, value: u8, rows: &mut [Array<f32>]) {
        self.values[site] = value;
        for s in 0..self.inputs {
            let change = self.write(site, s, rows);
            self.sum[s] += change;
            if let Some(global) = &self.global {
                for (k, signs) in global.orders.iter().enumerate() {
                    self.orders[k * self.inputs + s] += f32::from(signs[site]) * change;
                }
            }
        }
        let Some(global) = self.global.take() else { return };
        for (class, BondClass { ends, .. }) in global.classes.iter().enumerate() {
            let own = self.count(&global, class, site);
            let before = std::mem::replace(self.own_mut(class, site), own);
            self.bonds[class] += own - before;
            for end in ends.iter().map(|ends| ends[site] as usize) {
                if end < self.sites {
                    let own = self.count(&global, class, end);
                    *self.own_mut(class, end) = own;
                }
            }
        }
        for (class, table) in (global.classes.len()..).zip(&global.tables) {
            let own = table.own(site, &self.values);
            let before = std::mem::replace(self.own_mut(class, site), own);
            self.bonds[class] += own - before;
            for near in table.around(site) {
                *self.own_mut(class, near) = table.own(near, &self.values);
            }
        }
        self.global = Some(global);
    }

    /// Write what enters, and return how much it has changed.
    fn write(&mut self, site: usize, s: usize, rows: &mut [Array<f32>]) -> f32 {
        let value = self.value(site, s);
        rows[site * self.inputs.div_ceil(WIDTH) + s / WIDTH].0[s % WIDTH] = value;
        let x = &mut self.x[site / WIDTH * self.inputs + s].0[site % WIDTH];
        value - std::mem::replace(x, value)
    }

    fn own_mut(&mut self, class: usize, site: usize) -> &mut f32 {
        let blocks = self.sites.div_ceil(WIDTH);
        &mut self.own[class * blocks + site / WIDTH].0[site % WIDTH]
    }

    /// 1 if the values of two sites are equal, for spins their product; 0 where there is no second site.
    fn equal(&self, a: usize, b: u32) -> f32 {
        let (b, x) = (b as usize, |site: usize| f32::from(self.values[site]));
        match (b < self.sites, self.inputs) {
            (false, _) => 0.0,
            (true, 1) => (2.0 * x(a) - 1.0) * (2.0 * x(b) - 1.0),
            (true, _) => f32::from(u8::from(self.values[a] == self.values[b])),
        }
    }

    /// The bonds of a class at a site that join equal values.
    fn count(&self, global: &GlobalFeatures, class: usize, site: usize) -> f32 {
        global.classes[class].ends.iter().map(|ends| self.equal(site, ends[site])).sum()
    }

    /// The features of all sites.
    #[inline(always)]
    pub(super) unsafe fn features<L: Floats>(&mut self) -> &[L::V] {
        let Some(global) = &self.global else { return &[] };
        let (inputs, classes, width) = (self.inputs, self.bonds.len(), global.width());
        let x = cast::<L>(&self.x);
        let (own, signs) = (cast::<L>(&self.own), cast::<L>(&self.signs));
        let blocks = self.sites.div_ceil(WIDTH);
        // SAFETY: the caller has the instructions of the level.
        unsafe {
            let rows = cast_mut::<L>(&mut self.features)
                .chunks_exact_mut(width)
                .zip(x.chunks_exact(inputs));
            for (block, (row, x)) in rows.enumerate() {
                let (values, row) = row.split_at_mut(FUNCTIONS * inputs);
                for (s, out) in values.chunks_exact_mut(FUNCTIONS).enumerate() {
                    let others = L::V::splat(self.sum[s]).sub(x[s]);
                    functions(others, global.values, global.root, out);
                }
                let (bonds, orders) = row.split_at_mut(FUNCTIONS * classes);
                for (k, out) in bonds.chunks_exact_mut(FUNCTIONS).enumerate() {
                    let others = L::V::splat(self.bonds[k]).sub(own[k * blocks + block]);
                    functions(others, global.class_scale(k), global.root, out);
                }
                for (at, out) in orders.chunks_exact_mut(FUNCTIONS).enumerate() {
                    let (k, s) = (at / inputs, at % inputs);
                    let all = L::V::splat(self.orders[at]).mul(signs[k * blocks + block]);
                    functions(all.sub(x[s]), (global.order_factor, 0.0), global.root, out);
                }
            }
        }
        cast::<L>(&self.features)
    }
}
