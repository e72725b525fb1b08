//! The threads of all parallel work.

use std::num::NonZeroUsize;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use anyhow::Result;
use leaps::job::MOST_THREADS;
use rayon::ThreadBuilder;

use crate::error::usage;

/// Start `asked` threads; without a wish one for every core, or as many as the system lets this process have. Says how many there are if they are fewer.
///
/// The threads are started before the pool is made of them: a pool that cannot start one of its threads is lost, and with it all parallel work.
pub fn start(asked: Option<usize>) -> Result<Option<String>> {
    if let Some(threads) = asked.filter(|threads| !(1..=MOST_THREADS).contains(threads)) {
        return Err(usage(format!("--threads = {threads}: must be from 1 to {MOST_THREADS}")));
    }
    share_one_heap();
    let wanted = asked.unwrap_or_else(usual);
    let (waiting, refusal) = idle(wanted);
    let started = waiting.len();
    let shortage = refusal.map(|error| match started {
        0 => format!("no thread can be started ({error}); computing in the only one there is"),
        n => format!("computing with {n} of {wanted} threads; no more can be started ({error})"),
    });
    if let (Some(asked), Some(shortage)) = (asked, &shortage) {
        return Err(anyhow::anyhow!("--threads = {asked}: {shortage}; leave it out"));
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(started.max(1));
    if started == 0 {
        pool.use_current_thread().build_global()?;
        return Ok(shortage);
    }
    let mut waiting = waiting.into_iter();
    let employ = |work: ThreadBuilder| {
        let gone = || std::io::Error::other("a thread has ended");
        waiting.next().ok_or_else(gone)?.send(work).map_err(|_| gone())
    };
    pool.spawn_handler(employ).build_global()?;
    Ok(shortage)
}

/// Where the address space is limited (`ulimit -v`), let all threads take memory from one heap.
///
/// By itself glibc reserves 64 MB of addresses for a heap of every thread, as soon as there is room for it: what is free would go to heaps that
/// are not used, at once under a wide limit and in the middle of the work under a narrow one.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn share_one_heap() {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the first call writes the limit, the second sets a number before there are other threads.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_AS, &mut limit) == 0
            && limit.rlim_cur != libc::RLIM_INFINITY
        {
            libc::mallopt(libc::M_ARENA_MAX, 1);
        }
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn share_one_heap() {}

/// Threads that wait for work, and why there are fewer than wanted.
fn idle(wanted: usize) -> (Vec<Sender<ThreadBuilder>>, Option<std::io::Error>) {
    let mut waiting = Vec::new();
    while waiting.len() < wanted {
        let (sender, receiver) = channel::<ThreadBuilder>();
        let wait = move || receiver.recv().map(ThreadBuilder::run);
        match thread::Builder::new().spawn(wait) {
            Ok(_) => waiting.push(sender),
            Err(error) => return (waiting, Some(error)),
        }
    }
    (waiting, None)
}

/// One thread for every core, or as many as rayon's own variable says.
fn usual() -> usize {
    let said = std::env::var("RAYON_NUM_THREADS").ok().and_then(|text| text.parse().ok());
    let cores = || thread::available_parallelism().map_or(1, NonZeroUsize::get);
    said.filter(|said| (1..=MOST_THREADS).contains(said)).unwrap_or_else(cores)
}
