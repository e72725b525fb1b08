//! Attention from every site to all others.

use crate::device::vector::Vector;

/// Sites, heads and numbers per head; arrays are `[site * size + head * width + d]`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attention {
    pub(super) sites: usize,
    pub(super) heads: usize,
    pub(super) width: usize,
}

impl Attention {
    /// Numbers per site.
    pub(super) fn size(&self) -> usize {
        self.heads * self.width
    }

    /// The attention of site `i` in head `h`, `p[s]` for s other than i.
    #[inline(always)]
    unsafe fn weights<V: Vector>(&self, key: &[V], query: &[V], i: usize, h: usize, p: &mut [V]) {
        let (size, width) = (self.size(), self.width);
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            let query = &query[i * size + h * width..][..width];
            let scale = V::constant(1.0 / (width as f64).sqrt());
            let mut top = V::constant(-1e30);
            for s in (0..self.sites).filter(|&s| s != i) {
                let mut score = V::zero();
                for (&k, &q) in key[s * size + h * width..][..width].iter().zip(query) {
                    score = k.fma(q, score);
                }
                p[s] = score.mul(scale);
                top = top.max(p[s]);
            }
            let mut total = V::zero();
            for s in (0..self.sites).filter(|&s| s != i) {
                p[s] = p[s].sub(top).exp();
                total = total.add(p[s]);
            }
            let share = total.reciprocal();
            for s in (0..self.sites).filter(|&s| s != i) {
                p[s] = p[s].mul(share);
            }
        }
    }

    /// Write `a`.
    #[inline(always)]
    pub(super) unsafe fn forward<V: Vector>(
        &self,
        key: &[V],
        value: &[V],
        query: &[V],
        p: &mut [V],
        a: &mut [V],
    ) {
        let (size, width) = (self.size(), self.width);
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            for i in 0..self.sites {
                for h in 0..self.heads {
                    self.weights(key, query, i, h, p);
                    let a = &mut a[i * size + h * width..][..width];
                    for a in a.iter_mut() {
                        *a = V::zero();
                    }
                    for s in (0..self.sites).filter(|&s| s != i) {
                        let value = &value[s * size + h * width..][..width];
                        for (a, &value) in a.iter_mut().zip(value) {
                            *a = p[s].fma(value, *a);
                        }
                    }
                }
            }
        }
    }

    /// Write the gradients of keys, values and queries for a gradient `d_a`.
    #[inline(always)]
    pub(super) unsafe fn backward<V: Vector>(
        &self,
        (key, value, query): (&[V], &[V], &[V]),
        p: &mut [V],
        d_a: &[V],
        (d_key, d_value, d_query): (&mut [V], &mut [V], &mut [V]),
    ) {
        let (size, width) = (self.size(), self.width);
        let (p, d_p) = p.split_at_mut(self.sites);
        // SAFETY: the caller has the instructions of the vector.
        unsafe {
            for d in d_key.iter_mut() {
                *d = V::zero();
            }
            for d in d_value.iter_mut() {
                *d = V::zero();
            }
            let scale = V::constant(1.0 / (width as f64).sqrt());
            for i in 0..self.sites {
                for h in 0..self.heads {
                    self.weights(key, query, i, h, p);
                    let at = i * size + h * width;
                    let (query, d_a) = (&query[at..][..width], &d_a[at..][..width]);
                    let mut mean = V::zero();
                    for s in (0..self.sites).filter(|&s| s != i) {
                        let from = s * size + h * width;
                        let mut sum = V::zero();
                        for k in 0..width {
                            sum = d_a[k].fma(value[from + k], sum);
                            d_value[from + k] = p[s].fma(d_a[k], d_value[from + k]);
                        }
                        d_p[s] = sum;
                        mean = p[s].fma(sum, mean);
                    }
                    let d_query = &mut d_query[at..][..width];
                    for d in d_query.iter_mut() {
                        *d = V::zero();
                    }
                    for s in (0..self.sites).filter(|&s| s != i) {
                        let from = s * size + h * width;
                        let d_score = p[s].mul(d_p[s].sub(mean)).mul(scale);
                        for k in 0..width {
                            d_query[k] = d_score.fma(key[from + k], d_query[k]);
                            d_key[from + k] = d_score.fma(query[k], d_key[from + k]);
                        }
                    }
                }
            }
        }
    }
}
