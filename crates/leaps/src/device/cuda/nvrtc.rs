//! Compilation of CUDA C++ with NVRTC, wherever the library lies.

use std::ffi::{CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use libloading::{Library, Symbol};

use crate::{Error, Result};

type Program = *mut c_void;

/// The functions we use, with their C types.
struct Functions {
    library: Library,
}

/// File names of the library, newest first.
const NAMES: &[&str] = if cfg!(windows) {
    &["nvrtc64_130_0.dll", "nvrtc64_120_0.dll"]
} else {
    &["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"]
};

/// Folders of toolkits that hold it.
const FOLDERS: &[&str] = if cfg!(windows) {
    &["bin/x64", "bin"]
} else if cfg!(target_arch = "aarch64") {
    &["lib64", "lib", "targets/sbsa-linux/lib", "targets/aarch64-linux/lib"]
} else {
    &["lib64", "lib", "targets/x86_64-linux/lib"]
};

/// Where it may be: `LEAPS_NVRTC` (a file or a folder), the system's own places, then usual toolkits.
fn places() -> Vec<PathBuf> {
    let mut places = Vec::new();
    if let Some(named) = std::env::var_os("LEAPS_NVRTC") {
        places.push(PathBuf::from(&named));
        places.extend(NAMES.iter().map(|name| Path::new(&named).join(name)));
    }
    places.extend(NAMES.iter().map(PathBuf::from));
    let mut folders = Vec::new();
    for variable in ["CUDA_HOME", "CUDA_PATH"] {
        folders.extend(std::env::var_os(variable).map(PathBuf::from));
    }
    folders.extend(["/usr/local/cuda", "/opt/cuda"].map(PathBuf::from));
    for folder in folders {
        for inner in FOLDERS {
            places.extend(NAMES.iter().map(|name| folder.join(inner).join(name)));
        }
    }
    places
}

fn functions() -> Result<&'static Functions> {
    static FOUND: OnceLock<Option<Functions>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        // SAFETY: loading a library runs its initialisers; NVRTC's are harmless.
        let library = places().iter().find_map(|place| unsafe { Library::new(place) }.ok())?;
        Some(Functions { library })
    });
    found.as_ref().ok_or_else(|| {
        Error::device(
            "NVRTC",
            format!("no {} on this machine, to compile kernels with", NAMES.join(" or ")),
            "install it (Ubuntu: cuda-nvrtc-13-0, pip: nvidia-cuda-nvrtc) and name its folder in LEAPS_NVRTC, \
             or use the device cpu",
        )
    })
}

impl Functions {
    fn get<F>(&self, name: &str) -> Result<Symbol<'_, F>> {
        // SAFETY: the types `F` below are those of NVRTC's header.
        unsafe { self.library.get(name.as_bytes()) }.map_err(|_| {
            Error::device("NVRTC", format!("has no {name}"), "use one of CUDA 12 or 13")
        })
    }
}

/// Whether there is a compiler.
pub(super) fn find() -> Result<()> {
    functions().map(|_| ())
}

/// Machine code for the architecture in `options`.
pub(super) fn compile(source: &str, options: &[String]) -> Result<Vec<u8>> {
    let all = functions()?;
    type Create = unsafe extern "C" fn(
        *mut Program,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> c_int;
    type Compile = unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int;
    type Size = unsafe extern "C" fn(Program, *mut usize) -> c_int;
    type Get = unsafe extern "C" fn(Program, *mut c_char) -> c_int;
    type Destroy = unsafe extern "C" fn(*mut Program) -> c_int;
    let create: Symbol<'_, Create> = all.get("nvrtcCreateProgram")?;
    let run: Symbol<'_, Compile> = all.get("nvrtcCompileProgram")?;
    let log_size: Symbol<'_, Size> = all.get("nvrtcGetProgramLogSize")?;
    let log: Symbol<'_, Get> = all.get("nvrtcGetProgramLog")?;
    let image_size: Symbol<'_, Size> = all.get("nvrtcGetCUBINSize")?;
    let image: Symbol<'_, Get> = all.get("nvrtcGetCUBIN")?;
    let destroy: Symbol<'_, Destroy> = all.get("nvrtcDestroyProgram")?;

    let text = |s: &str| {
        CString::new(s)
            .map_err(|_| Error::device("NVRTC", "a zero byte in the source", "report it"))
    };
    let (source, name) = (text(source)?, text("leaps.cu")?);
    let options = options.iter().map(|option| text(option)).collect::<Result<Vec<_>>>()?;
    let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
    let read = |size: &Symbol<'_, Size>, get: &Symbol<'_, Get>, program: Program| {
        let mut length = 0;
        let mut bytes = Vec::new();
        // SAFETY: the program lives, and as many bytes are written as it said.
        unsafe {
            if size(program, &mut length) == 0 {
                bytes = vec![0u8; length];
                if get(program, bytes.as_mut_ptr().cast()) != 0 {
                    bytes.clear();
                }
            }
        }
        bytes
    };
    let mut program: Program = std::ptr::null_mut();
    // SAFETY: all texts end with 0 and outlive the calls; the program is destroyed once, after its last use.
    unsafe {
        let none = std::ptr::null();
        if create(&mut program, source.as_ptr(), name.as_ptr(), 0, none, none) != 0 {
            return Err(Error::device("NVRTC", "cannot take the source", "report it"));
        }
        let code = run(program, pointers.len() as c_int, pointers.as_ptr());
        let binary = if code == 0 { read(&image_size, &image, program) } else { Vec::new() };
        let said = read(&log_size, &log, program);
        destroy(&mut program);
        if !binary.is_empty() {
            return Ok(binary);
        }
        let said = String::from_utf8_lossy(&said).trim_end_matches('\0').to_owned();
        Err(Error::device(
            "NVRTC",
            format!("cannot compile (code {code}): {said}"),
            "it may be older than the GPU; use the device cpu",
        ))
    }
}
