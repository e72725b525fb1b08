//! Limits of memory on Windows.

/// Bytes that this process may still take: what Windows would still commit.
pub fn free_memory() -> Option<u64> {
    /// MEMORYSTATUSEX.
    #[repr(C)]
    #[derive(Default)]
    struct Status {
        length: u32,
        load: u32,
        physical: [u64; 2],
        /// Total and available, files for paging included.
        commit: [u64; 2],
        address_space: [u64; 2],
        extended: u64,
    }
    #[link(name = "kernel32")]
    unsafe extern "system" {
        fn GlobalMemoryStatusEx(status: *mut Status) -> i32;
    }
    let mut status = Status { length: size_of::<Status>() as u32, ..Status::default() };
    // SAFETY: the structure is Windows' own and knows its length.
    (unsafe { GlobalMemoryStatusEx(&mut status) } != 0).then_some(status.commit[1])
}
