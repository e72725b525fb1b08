//! Estimates of memory beside the memory that is taken.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use leaps::device::{Bytes, Purpose, Stream, free_memory};
use leaps::mcmc::{AnyKernel, Kernel, KernelName};
use leaps::target::{Boundary, Density, Disorder, Lattice, Pairwise, Target};

/// The system's, which counts.
struct Counting;

static TAKEN: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        TAKEN.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        TAKEN.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are the system's.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// One test alone: others would count as well.
#[test]
fn copies_of_kernels_take_what_is_said() {
    let free = free_memory();
    assert!(free.is_none_or(|free| free > 1 << 20), "{free:?}");
    assert_eq!(Bytes(free.unwrap_or(0) as f64).to_string().split(' ').count(), 2);
    let lattice = |side| Lattice::new(&[side, side], Boundary::Periodic).unwrap();
    let targets: [Pairwise; 3] = [
        Pairwise::ising(lattice(16), 1.0, 0.1).unwrap(),
        Pairwise::potts(lattice(12), 5, 1.0, 0.0).unwrap(),
        Pairwise::sherrington_kirkpatrick(60, Disorder::Pm1, 1).unwrap(),
    ];
    for target in &targets {
        let [lambda, colder] = [0.4, 0.5].map(|beta| vec![beta; target.terms()]);
        for name in KernelName::ALL {
            let kernel = AnyKernel::new(name, target, &lambda).unwrap();
            let mut x = vec![0; target.sites()];
            let mut stream = Stream::new(1, Purpose::Move, 0, 0);
            let before = TAKEN.load(Ordering::Relaxed);
            let mut copy = kernel.clone();
            // Copies share what belongs to a temperature until they move at another.
            copy.step(&Density::new(target, &colder), &mut x, &mut stream);
            let taken = TAKEN.load(Ordering::Relaxed) - before;
            drop(copy);
            let said = name.bytes(target);
            // Fields of a fixed size are not counted, nor is a small share of the others.
            assert!(taken <= said + said / 10 + 1000, "{name}: takes {taken}, says {said}");
            assert!(said <= 2 * taken + 1000, "{name}: takes {taken}, says {said}");
        }
    }
}
