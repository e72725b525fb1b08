//! NVIDIA GPUs: opening them, compiling kernels for them, moving memory to and from them.
//!
//! Driver and compiler (NVRTC) are looked for when they are first needed, so that one program runs on machines with and
//! without a GPU. Kernels are compiled for the GPU at hand and kept in the user's cache directory.

pub(crate) mod arguments;
mod cache;
pub(crate) mod memory;
mod nvrtc;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
use cudarc::driver::sys::{CUdevice_attribute, CUresult, is_culib_present};
use cudarc::driver::{
    CudaContext, CudaFunction, CudaModule, CudaSlice, CudaStream, DevicePtr, DeviceRepr,
    DriverError, PinnedHostSlice, ValidAsZeroBits,
};
use cudarc::nvrtc::Ptx;

pub(crate) use super::Precision;
use crate::{Error, Result};

/// Source that every module starts with: Philox, reductions, activations.
const COMMON: &str = include_str!("common.cu");

/// Source of random choices, for the modules that make some.
pub(crate) const RANDOM: &str = include_str!("random.cu");

/// One GPU, with the stream that all work on it goes through.
pub struct Gpu {
    context: Arc<CudaContext>,
    pub(crate) stream: Arc<CudaStream>,
    name: String,
    capability: (i32, i32),
    multiprocessors: usize,
    shared: usize,
    /// What is compiled and loaded, by the hash of its source.
    modules: Mutex<HashMap<blake3::Hash, Arc<CudaModule>>>,
}

/// Compiled kernels.
pub(crate) struct Kernels(Arc<CudaModule>);

/// What the driver says, as our error.
pub(crate) fn failed(what: &str) -> impl Fn(DriverError) -> Error {
    move |error| {
        let advice = match error.0 {
            CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
                "use fewer walkers or a smaller batch, or the device cpu"
            }
            CUresult::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
            | CUresult::CUDA_ERROR_INVALID_PTX
            | CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU
            | CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION => {
                "the driver is older than the compiler (NVRTC): update the driver"
            }
            _ => "use the device cpu to go on without the GPU",
        };
        Error::device(what, format!("{:?}", error.0), advice)
    }
}

/// Where an array lies on the GPU, for structures of pointers.
///
/// All work goes through one stream, so an array that outlives the launch outlives the kernel.
pub(crate) fn address<T>(gpu: &Gpu, array: &impl DevicePtr<T>) -> u64 {
    array.device_ptr(&gpu.stream).0
}

impl Gpu {
    /// GPU number `ordinal` of this machine.
    pub fn open(ordinal: usize) -> Result<Arc<Self>> {
        // cudarc would panic without the library.
        // SAFETY: looking for the driver loads it, and its initialisers are harmless.
        if !unsafe { is_culib_present() } {
            return Err(Error::device(
                "CUDA",
                match cfg!(windows) {
                    true => "no driver (nvcuda.dll) on this machine",
                    false => "no driver (libcuda.so.1) on this machine",
                },
                "install the NVIDIA driver, or use the device cpu",
            ));
        }
        let context = CudaContext::new(ordinal).map_err(failed("opening the GPU"))?;
        // SAFETY: all work goes through one stream, in order: nothing else needs to be waited for.
        unsafe { context.disable_event_tracking() };
        let fact = |attribute| context.attribute(attribute).map_err(failed("asking the GPU"));
        let multiprocessors =
            fact(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)? as usize;
        let shared =
            fact(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
        Ok(Arc::new(Gpu {
            stream: context.new_stream().map_err(failed("opening the GPU"))?,
            name: context.name().map_err(failed("asking the GPU"))?,
            capability: context.compute_capability().map_err(failed("asking the GPU"))?,
            multiprocessors,
            shared: shared as usize,
            modules: Mutex::default(),
            context,
        }))
    }

    /// [`open`](Self::open), if kernels can be compiled as well. A process opens a GPU once, so that its kernels are loaded once.
    pub fn ready(ordinal: usize) -> Result<Arc<Self>> {
        static OPEN: Mutex<BTreeMap<usize, Arc<Gpu>>> = Mutex::new(BTreeMap::new());
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(gpu) = open.get(&ordinal) {
            return Ok(Arc::clone(gpu));
        }
        let gpu = Self::open(ordinal)?;
        nvrtc::find()?;
        open.insert(ordinal, Arc::clone(&gpu));
        Ok(gpu)
    }

    /// What the GPU is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it has tensor cores for bfloat16 and tf32.
    pub fn has_tensor_cores(&self) -> bool {
        self.capability.0 >= 8
    }

    /// Number of multiprocessors.
    pub(crate) fn multiprocessors(&self) -> usize {
        self.multiprocessors
    }

    /// Most bytes of shared memory that a block may ask for.
    pub(crate) fn shared(&self) -> usize {
        self.shared
    }

    /// Compile `source` with `#define`s for this GPU, or take it from the cache.
    pub(crate) fn compile(&self, source: &str, defines: &[(&str, usize)]) -> Result<Kernels> {
        let (major, minor) = self.capability;
        let text = text(source, defines);
        let key = blake3::hash(text.as_bytes());
        let mut known = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(module) = known.get(&key) {
            return Ok(Kernels(module.clone()));
        }
        let image = binary(&text, &format!("sm_{major}{minor}"))?;
        let module =
            self.context.load_module(Ptx::from_binary(image)).map_err(failed("loading kernels"))?;
        known.insert(key, module.clone());
        Ok(Kernels(module))
    }

    /// Copy numbers to the GPU.
    pub(crate) fn upload<T: DeviceRepr>(&self, data: &[T]) -> Result<CudaSlice<T>> {
        if data.is_empty() {
            return self.stream.null().map_err(failed("memory of the GPU"));
        }
        memory::counts(size_of_val(data));
        self.stream.clone_htod(data).map_err(failed("memory of the GPU"))
    }

    /// Zeros on the GPU.
    pub(crate) fn zeros<T: DeviceRepr + ValidAsZeroBits>(&self, n: usize) -> Result<CudaSlice<T>> {
        let n = if memory::counts(n.saturating_mul(size_of::<T>())) { 1 } else { n.max(1) };
        self.stream.alloc_zeros(n).map_err(failed("memory of the GPU"))
    }

    /// Overwrite numbers on the GPU; `to` may be longer.
    pub(crate) fn write<T: DeviceRepr>(&self, data: &[T], to: &mut CudaSlice<T>) -> Result<()> {
        self.write_at(data, to, 0)
    }

    /// Overwrite numbers on the GPU from number `first` on; `to` may be longer.
    pub(crate) fn write_at<T: DeviceRepr>(
        &self,
        data: &[T],
        to: &mut CudaSlice<T>,
        first: usize,
    ) -> Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        let mut part = to.slice_mut(first..first + data.len());
        self.stream.memcpy_htod(data, &mut part).map_err(failed("memory of the GPU"))
    }

    /// Copy numbers from the GPU, after all work so far.
    pub(crate) fn download<T: DeviceRepr + Default + Clone>(
        &self,
        data: &impl DevicePtr<T>,
    ) -> Result<Vec<T>> {
        self.stream.clone_dtoh(data).map_err(failed("a kernel"))
    }

    /// Memory of the host that the GPU can write to while the CPU does something else.
    pub(crate) fn pinned<T: DeviceRepr + ValidAsZeroBits>(
        &self,
        n: usize,
    ) -> Result<PinnedHostSlice<T>> {
        // SAFETY: zeros are written before anything is read, and are values of the type.
        unsafe {
            let mut memory =
                self.context.alloc_pinned_with_flags::<T>(n.max(1), 0).map_err(failed("memory"))?;
            memory.as_mut_ptr().map_err(failed("memory"))?.write_bytes(0, n.max(1));
            Ok(memory)
        }
    }

    /// Start to copy numbers from the GPU to `to`, which may be longer; reading `to` waits for them.
    pub(crate) fn send<T: DeviceRepr>(
        &self,
        data: &impl DevicePtr<T>,
        to: &mut PinnedHostSlice<T>,
    ) -> Result<()> {
        self.stream.memcpy_dtoh(data, to).map_err(failed("a kernel"))
    }

    /// Wait for all work so far.
    pub(crate) fn wait(&self) -> Result<()> {
        self.stream.synchronize().map_err(failed("a kernel"))
    }
}

impl Kernels {
    /// The kernel `name`, allowed `shared` bytes of dynamic shared memory.
    pub(crate) fn get(&self, name: &str, shared: usize) -> Result<CudaFunction> {
        let function = self.0.load_function(name).map_err(failed("loading kernels"))?;
        if shared > 48 << 10 {
            function
                .set_attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared as i32)
                .map_err(failed("shared memory of the GPU"))?;
        }
        Ok(function)
    }
}

/// `source` with `#define`s and what every module starts with.
fn text(source: &str, defines: &[(&str, usize)]) -> String {
    let mut text = String::new();
    for (name, value) in defines {
        text += &format!("#define {name} {value}\n");
    }
    text + COMMON + source
}

/// Machine code of `text` for an architecture such as `sm_90`, from the cache if it is there.
fn binary(text: &str, architecture: &str) -> Result<Vec<u8>> {
    let options = [format!("--gpu-architecture={architecture}"), "--std=c++17".to_owned()];
    if let Some(image) = cache::find(text, &options) {
        return Ok(image);
    }
    let image = nvrtc::compile(text, &options)?;
    cache::keep(text, &options, &image);
    Ok(image)
}

/// Launch a kernel: `launch!(gpu, function, (grid, block, shared), arguments...)`.
///
/// The arguments must be those of the kernel, in its order and of its types, and it must stay within its memory: what
/// tests on a GPU check, also under compute-sanitizer.
macro_rules! launch {
    ($gpu:expr, $function:expr, ($grid:expr, $block:expr, $shared:expr), $($argument:expr),* $(,)?) => {{
        use cudarc::driver::PushKernelArg;
        let mut builder = $gpu.stream.launch_builder(&$function);
        $(builder.arg($argument);)*
        let config = cudarc::driver::LaunchConfig {
            grid_dim: $grid,
            block_dim: ($block as u32, 1, 1),
            shared_mem_bytes: $shared as u32,
        };
        // SAFETY: callers keep to what is asked of them above.
        unsafe { builder.launch(config) }.map(|_| ()).map_err($crate::device::cuda::failed("a kernel"))
    }};
}
pub(crate) use launch;

#[cfg(test)]
pub(crate) mod testing {
    /// Compile `source` for a usual GPU.
    pub(crate) fn compiles(source: &str, defines: &[(&str, usize)]) {
        super::binary(&super::text(source, defines), "sm_90").unwrap();
    }
}
