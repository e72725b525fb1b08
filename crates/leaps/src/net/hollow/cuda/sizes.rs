//! Shapes of blocks and arrays for a network and a GPU.

use crate::device::cuda::Gpu;
use crate::net::cuda::time_defines;
use crate::net::dense::TIME_UNITS;
use crate::net::hollow::Hollow;

/// Registers that a thread of the forward and the backward kernel needs besides its accumulators.
const REGISTERS: [usize; 2] = [72, 32];
/// Registers of a multiprocessor.
const ALL_REGISTERS: usize = 1 << 16;

/// Numbers that the kernels are compiled with. Channels are padded for tensor cores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sizes {
    pub(super) matrix: bool,
    pub(super) sites: usize,
    pub(super) real_channels: usize,
    pub(super) channels: usize,
    pub(super) layers: usize,
    pub(super) taps: usize,
    pub(super) q: usize,
    pub(super) directions: usize,
    pub(super) real_head: usize,
    pub(super) head: usize,
    pub(super) outputs: usize,
    /// Global features of a site.
    pub(super) real_global_features: usize,
    pub(super) global_features: usize,
    /// Features of a time, and of what the network is conditioned on beside it.
    pub(super) features: usize,
    /// Tiles of 16 rows per warp, warps of a block, blocks of a multiprocessor.
    forward: Tiling,
    back: Tiling,
    /// Whether a plane of channels fits into shared memory (without tensor cores).
    shared_plane: bool,
}

/// Warps of a block of `embed_gradient`: as many as have room for their sums in 48 KiB of shared memory.
fn embed_warps(features: usize) -> usize {
    let sums = (features + 1) * (TIME_UNITS + 1) * size_of::<f32>();
    ((48 << 10) / sums).min(32)
}

/// `#define`s of time embeddings.
pub(super) fn embedding_defines(features: usize) -> [(&'static str, usize); 4] {
    let [width, features_of_time, units] = time_defines(features);
    [width, features_of_time, units, ("EMBED_WARPS", embed_warps(features))]
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Tiling {
    tiles: usize,
    warps: usize,
    blocks: usize,
}

impl Tiling {
    /// The tiling for accumulators of `copies` times the channels; `None` if it does not fit.
    fn new(sites: usize, channels: usize, copies: usize) -> Option<Self> {
        let rows = sites.div_ceil(16);
        let most = (96 / (copies * channels / 2)).max(1);
        let tiles = rows.div_ceil(4).clamp(1, most);
        let warps = rows.div_ceil(tiles);
        let registers = REGISTERS[copies - 1] + copies * tiles * channels / 2;
        // A few registers too few are spilled without much harm.
        let fits = warps <= 32 && warps * 32 * (registers - 16) <= ALL_REGISTERS;
        let blocks = (ALL_REGISTERS / (warps * 32 * registers)).clamp(1, 16);
        fits.then_some(Tiling { tiles, warps, blocks })
    }

    fn rows(&self) -> usize {
        self.warps * self.tiles * 16
    }
}

impl Sizes {
    /// Float32 on any GPU.
    pub(super) fn plain(network: &Hollow, q: usize, gpu: &Gpu) -> Self {
        let (geometry, channels) = (&network.geometry, network.stack.channels());
        let whole = Tiling { tiles: 1, warps: geometry.sites.div_ceil(16), blocks: 1 };
        Sizes {
            matrix: false,
            sites: geometry.sites,
            real_channels: channels,
            channels,
            layers: network.stack.depth(),
            taps: geometry.taps(),
            q,
            directions: geometry.directions.len(),
            real_head: network.head.width(),
            head: network.head.width(),
            outputs: network.head.out.outputs,
            real_global_features: network.stack.global_features(),
            global_features: network.stack.global_features(),
            features: network.head.time.features,
            forward: whole,
            back: whole,
            shared_plane: (geometry.sites + 1) * channels * 4 <= gpu.shared(),
        }
    }

    /// Tensor cores, if the network fits into what the GPU has of registers and shared memory.
    pub(super) fn matrix(network: &Hollow, q: usize, gpu: &Gpu) -> Option<Self> {
        let plain = Self::plain(network, q, gpu);
        let channels = plain.channels.next_multiple_of(8);
        let mut sizes = Sizes {
            matrix: true,
            channels,
            head: plain.head.next_multiple_of(16),
            global_features: plain.global_features.next_multiple_of(8),
            forward: Tiling::new(plain.sites, channels, 1)?,
            back: Tiling::new(plain.sites, channels, 2)?,
            ..plain
        };
        let largest = sizes.largest_block();
        // Tables of the sums in the head, and threads of the first layer's gradient.
        let static_limit = 4 * 4 * sizes.head_sums() <= 40 << 10;
        let threads = sizes.first_threads() <= 1024;
        let registers = 3 * sizes.head / 2 <= 160;
        if !gpu.has_tensor_cores()
            || largest > gpu.shared()
            || !static_limit
            || !threads
            || !registers
        {
            return None;
        }
        let fit = |bytes: usize| (gpu.shared() / (bytes + 1024)).max(1);
        sizes.forward.blocks = sizes.forward.blocks.min(fit(sizes.forward_shared()));
        sizes.back.blocks = sizes.back.blocks.min(fit(sizes.back_shared()));
        Some(sizes)
    }

    fn largest_block(&self) -> usize {
        [
            self.forward_shared(),
            self.back_shared(),
            self.weights_shared(),
            self.first_shared(),
            self.mix_outer().1,
            self.hidden_outer().1,
        ]
        .into_iter()
        .max()
        .unwrap_or(0)
    }

    /// Taps of a block that computes the gradient of weights.
    pub(super) fn outer_taps(&self) -> usize {
        if self.matrix { self.taps.min(9) } else { 1 }
    }

    /// `#define`s.
    pub(super) fn defines(&self) -> Vec<(&'static str, usize)> {
        let mut all = vec![
            ("SITES", self.sites),
            ("CHANNELS", self.channels),
            ("LAYERS", self.layers),
            ("TAPS", self.taps),
            ("Q", self.q),
            ("DIRECTIONS", self.directions),
            ("HEAD", self.head),
            ("OUTPUTS", self.outputs),
            ("GLOBAL_FEATURES", self.global_features),
        ];
        if self.matrix {
            all.extend([
                ("FORWARD_TILES", self.forward.tiles),
                ("FORWARD_WARPS", self.forward.warps),
                ("FORWARD_BLOCKS", self.forward.blocks),
                ("BACK_TILES", self.back.tiles),
                ("BACK_WARPS", self.back.warps),
                ("BACK_BLOCKS", self.back.blocks),
                ("OUTER_TAPS", self.outer_taps()),
            ]);
        } else {
            all.extend([
                ("FORWARD_ROWS", self.forward.rows()),
                ("BACK_ROWS", self.back.rows()),
                ("SHARED_PLANE", usize::from(self.shared_plane)),
            ]);
        }
        all.extend(embedding_defines(self.features));
        all
    }

    /// Threads of a block that adds up gradients of time embeddings.
    pub(super) fn embed_threads(&self) -> usize {
        32 * embed_warps(self.features)
    }

    /// Rows of the tables of taps.
    pub(super) fn forward_rows(&self) -> usize {
        self.forward.rows()
    }

    pub(super) fn back_rows(&self) -> usize {
        self.back.rows()
    }

    /// What one step from row to row is in the tables of taps: bytes on tensor cores, else numbers.
    pub(super) fn stride(&self) -> usize {
        match self.matrix {
            true => 2 * self.channels + if (self.channels / 8).is_multiple_of(2) { 16 } else { 0 },
            false => self.channels,
        }
    }

    fn plane(&self) -> usize {
        (self.sites + 1) * self.stride() + 32
    }

    /// Bytes of the ring that weights come through: three stages of three steps.
    fn ring(&self) -> usize {
        3 * 3 * self.channels.div_ceil(16) * 32 * 16
    }

    pub(super) fn time_row(&self) -> usize {
        (self.layers - 1) * 2 * self.channels + 2 * self.head
    }

    pub(super) fn head_sums(&self) -> usize {
        4 * self.head + self.outputs * self.head + self.outputs
    }

    pub(super) fn back_sums(&self) -> usize {
        3 * self.channels
    }

    /// 32-bit words of `n` channels.
    pub(super) fn words(&self, n: usize) -> usize {
        if self.matrix { n / 2 } else { n }
    }

    /// Words of global scratch for each slot and direction.
    pub(super) fn scratch(&self) -> usize {
        if self.matrix || self.shared_plane { 0 } else { (self.sites + 1) * self.channels }
    }

    pub(super) fn forward_threads(&self) -> usize {
        if self.matrix { self.forward.warps * 32 } else { 256 }
    }

    pub(super) fn back_threads(&self) -> usize {
        if self.matrix { self.back.warps * 32 } else { 256 }
    }

    pub(super) fn forward_shared(&self) -> usize {
        if !self.matrix {
            return if self.shared_plane { (self.sites + 1) * self.channels * 4 } else { 0 };
        }
        let c = self.channels;
        let numbers = self.taps * self.forward_rows()
            + (self.layers - 1) * 2 * c
            + self.taps * (self.q + 1) * c
            + self.layers * c;
        self.plane() + self.ring() + 4 * numbers + self.sites + 1
    }

    pub(super) fn back_shared(&self) -> usize {
        if !self.matrix {
            return self.forward_shared();
        }
        let c = self.channels;
        let numbers = self.taps * self.back_rows()
            + (self.layers - 1) * 2 * c
            + self.back.warps * self.back_sums();
        2 * self.plane() + self.ring() + 4 * numbers
    }

    /// Blocks of the head along the sites of a slot, their threads and shared memory.
    pub(super) fn head_blocks(&self) -> usize {
        self.sites.div_ceil(if self.matrix { 128 } else { 16 })
    }

    pub(super) fn head_threads(&self) -> usize {
        if self.matrix { 128 } else { 256 }
    }

    pub(super) fn head_shared(&self) -> usize {
        if self.matrix { 0 } else { 16 * 4 * (self.mix_width() + 2 * self.head) }
    }

    pub(super) fn weights_shared(&self) -> usize {
        if !self.matrix {
            return 16 * 4 * 2 * self.channels;
        }
        let rows = self.sites.next_multiple_of(16);
        self.plane() + rows * self.stride() + 32 + self.outer_taps() * rows * 4
    }

    pub(super) fn weights_threads(&self) -> usize {
        if self.matrix { self.outer_taps() * 32 } else { 256 }
    }

    pub(super) fn first_threads(&self) -> usize {
        match self.matrix {
            true => (self.taps * self.channels / 2).next_multiple_of(32),
            false => 256,
        }
    }

    pub(super) fn first_shared(&self) -> usize {
        if !self.matrix {
            return 0;
        }
        4 * self.sites * (self.channels / 2 + self.taps) + 2 * (self.sites + 1)
    }

    /// Blocks along the values.
    pub(super) fn first_blocks(&self) -> usize {
        if self.matrix { self.q.div_ceil(self.q.min(8)) } else { self.q }
    }

    fn outer(&self, width: usize) -> (usize, usize) {
        if !self.matrix {
            return (256, 16 * 4 * (width + self.head));
        }
        let stride = |n: usize| 2 * n + 16 - n / 8 % 2 * 16;
        (width.div_ceil(48) * 32, 64 * (stride(width) + stride(self.head)) + 256)
    }

    /// Channels that enter the head: context and global features.
    pub(super) fn mix_width(&self) -> usize {
        self.directions * self.channels + self.global_features
    }

    /// Threads and shared memory of the gradients of the head's weights.
    pub(super) fn mix_outer(&self) -> (usize, usize) {
        self.outer(self.mix_width())
    }

    pub(super) fn hidden_outer(&self) -> (usize, usize) {
        self.outer(self.head)
    }
}
