//! Shapes of blocks and arrays for a network and a GPU.

use crate::device::cuda::Gpu;
use crate::net::cuda::time_defines;
use crate::net::dense::TIME_UNITS;
use crate::net::glass;
use crate::net::hollow::Hollow;
use crate::net::hollow::entering::Entering;

/// Registers that a thread of the forward and the backward kernel needs besides its accumulators.
const REGISTERS: [usize; 2] = [72, 32];
/// Registers of a multiprocessor.
const ALL_REGISTERS: usize = 1 << 16;

/// Rows of a tile of a product on tensor cores; sites that the float32 kernels add up at a time.
const TILE: usize = 16;
/// Threads of a block of the float32 kernels.
const THREADS: usize = 256;
/// Sites of a block of the head in float32.
const HEAD_ROWS: usize = 16;
/// Warps of a block of the head on tensor cores, and tiles of sites of each.
const HEAD_WARPS: usize = 4;
const HEAD_TILES: usize = 2;
/// Steps of a stage of the ring that weights come through, and stages of the ring.
const STAGE_STEPS: usize = 3;
const RING_STAGES: usize = 3;
/// Tiles of entering channels of a warp that computes the gradient of the head's weights, and rows that its block reads at a time.
const OUTER_TILES: usize = 3;
const OUTER_ROWS: usize = 64;
/// Values of a block that computes the gradient of the first layer, at most.
const VALUES: usize = 8;
/// Outputs of a block that computes the gradient of time embeddings.
const GROUP: usize = 8;

/// What all float32 kernels are compiled with.
pub(super) const PLAIN: [(&str, usize); 3] =
    [("THREADS", THREADS), ("HEAD_ROWS", HEAD_ROWS), ("TILE", TILE)];

/// What all kernels on tensor cores are compiled with.
pub(super) const MATRIX: [(&str, usize); 7] = [
    ("HEAD_WARPS", HEAD_WARPS),
    ("HEAD_TILES", HEAD_TILES),
    ("STAGE_STEPS", STAGE_STEPS),
    ("RING_STAGES", RING_STAGES),
    ("OUTER_TILES", OUTER_TILES),
    ("OUTER_ROWS", OUTER_ROWS),
    ("VALUES", VALUES),
];

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
    /// Numbers of a site that enter the first layer; 0 where values do.
    pub(super) real_entering: usize,
    pub(super) entering: usize,
    /// Global features of a site.
    pub(super) real_global_features: usize,
    pub(super) global_features: usize,
    /// Classes of bonds that they count, and orders of alternating signs.
    bond_classes: usize,
    orders: usize,
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
pub(super) fn embedding_defines(features: usize) -> [(&'static str, usize); 5] {
    let [width, features_of_time, units] = time_defines(features);
    let warps = ("EMBED_WARPS", embed_warps(features));
    [width, features_of_time, units, warps, ("GROUP", GROUP)]
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
        let rows = sites.div_ceil(TILE);
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
        self.warps * self.tiles * TILE
    }
}

impl Sizes {
    /// Float32 on any GPU.
    pub(super) fn plain(network: &Hollow, q: usize, gpu: &Gpu) -> Self {
        let (geometry, channels) = (&network.geometry, network.stack.channels());
        let (real_entering, counted) = match &network.stack.entering {
            Entering::Values { global_features, .. } => (0, global_features.as_ref()),
            Entering::Bonds(bonds) => (bonds.inputs(), None),
        };
        let whole = Tiling { tiles: 1, warps: geometry.sites.div_ceil(TILE), blocks: 1 };
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
            real_entering,
            entering: real_entering,
            real_global_features: network.stack.global_features(),
            global_features: network.stack.global_features(),
            bond_classes: counted.map_or(0, |counted| counted.classes.len()),
            orders: counted.map_or(0, |counted| counted.orders.len()),
            features: network.head.time.features,
            forward: whole,
            back: whole,
            shared_plane: (geometry.sites + 1) * channels * 4 <= gpu.shared(),
        }
    }

    /// Tensor cores, if the network fits into what the GPU has of registers and shared memory.
    pub(super) fn matrix(network: &Hollow, q: usize, gpu: &Gpu) -> Option<Self> {
        let plain = Self::plain(network, q, gpu);
        let entering = plain.entering.next_multiple_of(8);
        // What enters lies in shared memory where channels do.
        let channels = plain.channels.next_multiple_of(8).max(entering);
        let mut sizes = Sizes {
            matrix: true,
            channels,
            head: plain.head.next_multiple_of(16),
            global_features: plain.global_features.next_multiple_of(8),
            entering,
            forward: Tiling::new(plain.sites, channels, 1)?,
            back: Tiling::new(plain.sites, channels, 2)?,
            ..plain
        };
        let largest = sizes.largest_block();
        // Tables of the sums in the head, and threads of the first layer's gradient.
        let static_limit = 4 * HEAD_WARPS * sizes.head_sums() <= 40 << 10;
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
            self.head_shared() + self.head_tables(),
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
            ("BOND_CLASSES", self.bond_classes),
            ("ORDERS", self.orders),
            ("ENTERING", self.entering),
        ];
        if self.entering > 0 {
            all.extend(glass::cuda::defines());
        }
        if self.matrix {
            all.extend(MATRIX);
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
            all.extend(PLAIN);
            all.extend([
                ("FORWARD_ROWS", self.forward.rows()),
                ("BACK_ROWS", self.back.rows()),
                ("SHARED_PLANE", usize::from(self.shared_plane)),
            ]);
        }
        all.extend(embedding_defines(self.features));
        all
    }

    /// Blocks that add up gradients of a time embedding: of its first layer, and of its outputs.
    pub(super) fn embed_blocks(&self) -> usize {
        1 + (2 * self.real_channels.max(self.real_head)).div_ceil(GROUP)
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

    /// Bytes of the ring that weights come through.
    fn ring(&self) -> usize {
        RING_STAGES * STAGE_STEPS * self.channels.div_ceil(16) * 32 * 16
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
        if self.matrix { self.forward.warps * 32 } else { THREADS }
    }

    /// Blocks of the forward pass that a multiprocessor has at a time.
    pub(super) fn forward_blocks(&self) -> usize {
        self.forward.blocks
    }

    pub(super) fn back_threads(&self) -> usize {
        if self.matrix { self.back.warps * 32 } else { THREADS }
    }

    pub(super) fn forward_shared(&self) -> usize {
        if !self.matrix {
            return if self.shared_plane { (self.sites + 1) * self.channels * 4 } else { 0 };
        }
        let c = self.channels;
        let numbers = self.taps * self.forward_rows() + (self.layers - 1) * 2 * c + self.layers * c;
        let values = match self.entering {
            0 => 4 * self.taps * (self.q + 1) * c + self.sites + 1,
            _ => 0,
        };
        self.plane() + self.ring() + 4 * numbers + values
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
        let rows = if self.matrix { HEAD_WARPS * HEAD_TILES * TILE } else { HEAD_ROWS };
        self.sites.div_ceil(rows)
    }

    pub(super) fn head_threads(&self) -> usize {
        if self.matrix { HEAD_WARPS * 32 } else { THREADS }
    }

    pub(super) fn head_shared(&self) -> usize {
        if !self.matrix {
            return self.head_back_shared();
        }
        let chunks = (self.mix_width() / 8).next_multiple_of(2);
        HEAD_WARPS * HEAD_TILES * TILE * (chunks + 1) * 16
    }

    /// Bytes of shared memory of its tables, which the driver adds.
    pub(super) fn head_tables(&self) -> usize {
        if self.matrix { (4 + self.outputs) * self.head * 4 } else { 0 }
    }

    /// Shared memory of the head's backward pass.
    pub(super) fn head_back_shared(&self) -> usize {
        if self.matrix { 0 } else { HEAD_ROWS * 4 * (self.mix_width() + 2 * self.head) }
    }

    pub(super) fn weights_shared(&self) -> usize {
        if !self.matrix {
            return TILE * 4 * 2 * self.channels;
        }
        let rows = self.sites.next_multiple_of(TILE);
        self.plane() + rows * self.stride() + 32 + self.outer_taps() * rows * 4
    }

    pub(super) fn weights_threads(&self) -> usize {
        if self.matrix { self.outer_taps() * 32 } else { THREADS }
    }

    pub(super) fn first_threads(&self) -> usize {
        match self.matrix {
            true if self.entering > 0 => self.weights_threads(),
            true => (self.taps * self.channels / 2).next_multiple_of(32),
            false => THREADS,
        }
    }

    pub(super) fn first_shared(&self) -> usize {
        match self.matrix {
            false => 0,
            true if self.entering > 0 => self.weights_shared(),
            true => 4 * self.sites * (self.channels / 2 + self.taps) + 2 * (self.sites + 1),
        }
    }

    /// Numbers of a site that the first layer has weights for.
    pub(super) fn real_inputs(&self) -> usize {
        match self.real_entering {
            0 if self.q == 2 => 1,
            0 => self.q,
            numbers => numbers,
        }
    }

    /// What the gradient of the first layer adds up for every tap and channel.
    pub(super) fn first_rows(&self) -> usize {
        if self.entering > 0 { self.entering } else { self.q }
    }

    /// Blocks along values or numbers that enter, and along groups of taps.
    pub(super) fn first_blocks(&self) -> (usize, usize) {
        match (self.matrix, self.entering) {
            (false, _) => (self.first_rows(), 1),
            (true, 0) => (self.q.div_ceil(self.q.min(VALUES)), 1),
            (true, _) => (1, self.taps.div_ceil(self.outer_taps())),
        }
    }

    fn outer(&self, width: usize) -> (usize, usize) {
        if !self.matrix {
            return (THREADS, TILE * 4 * (width + self.head));
        }
        let stride = |n: usize| 2 * n + 16 - n / 8 % 2 * 16;
        let threads = width.div_ceil(OUTER_TILES * TILE) * 32;
        (threads, OUTER_ROWS * (stride(width) + stride(self.head)) + 256)
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
