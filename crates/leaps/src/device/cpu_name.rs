//! The name of the CPU, for records of where numbers were made.

/// The model of the CPU where the system tells, else its architecture.
pub fn cpu_name() -> String {
    let model = model().map(|model| model.trim().to_owned()).filter(|model| !model.is_empty());
    model.unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

#[cfg(target_os = "macos")]
fn model() -> Option<String> {
    use std::ffi::{CStr, c_char, c_int, c_void};
    unsafe extern "C" {
        fn sysctlbyname(
            name: *const c_char,
            old: *mut c_void,
            length: *mut usize,
            new: *mut c_void,
            new_length: usize,
        ) -> c_int;
    }
    let (name, mut text) = (c"machdep.cpu.brand_string", [0u8; 256]);
    let mut length = text.len();
    // SAFETY: at most `length` bytes are written to `text`.
    let answer = unsafe {
        sysctlbyname(name.as_ptr(), text.as_mut_ptr().cast(), &mut length, std::ptr::null_mut(), 0)
    };
    let text = CStr::from_bytes_until_nul(&text).ok().filter(|_| answer == 0)?;
    Some(text.to_string_lossy().into_owned())
}

#[cfg(windows)]
fn model() -> Option<String> {
    std::env::var("PROCESSOR_IDENTIFIER").ok()
}

#[cfg(not(any(target_os = "macos", windows)))]
fn model() -> Option<String> {
    in_cpuinfo(&std::fs::read_to_string("/proc/cpuinfo").ok()?)
}

/// The model in Linux's list: a name on x86-64, numbers of designer and part on ARM.
#[cfg(any(test, not(any(target_os = "macos", windows))))]
fn in_cpuinfo(text: &str) -> Option<String> {
    let entry = |key: &str| {
        let mut entries = text.lines().filter_map(|line| line.split_once(':'));
        entries.find(|(name, _)| name.trim() == key).map(|(_, value)| value.trim())
    };
    entry("model name").map(str::to_owned).or_else(|| {
        let (designer, part) = (entry("CPU implementer")?, entry("CPU part")?);
        Some(format!("{}, implementer {designer}, part {part}", std::env::consts::ARCH))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_found_in_linux_lists() {
        let intel = "processor\t: 0\nvendor_id\t: X\nmodel\t\t: 207\nmodel name\t: A CPU @ 2 GHz\n";
        assert_eq!(in_cpuinfo(intel).unwrap(), "A CPU @ 2 GHz");
        let arm = "processor\t: 0\nBogoMIPS\t: 50.00\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n";
        assert!(in_cpuinfo(arm).unwrap().ends_with(", implementer 0x41, part 0xd4f"));
        assert_eq!(in_cpuinfo("processor\t: 0\n"), None);
        assert!(!cpu_name().is_empty());
    }
}
