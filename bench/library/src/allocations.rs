//! Decides how allocations are counted: each thread counts its own, so that other threads cannot disturb.
//! It exists because allocation counts are exact, where times are not: a regression shows in one run.
//! It refuses to count what is given back; only taking costs a caller that is compared here.

#![expect(unsafe_code, reason = "an allocator cannot be written without it")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

thread_local! {
    static TAKEN: Cell<u64> = const { Cell::new(0) };
}

/// Returns how many allocations the calling thread has made; growing one in place counts as one.
pub(crate) fn taken() -> u64 {
    TAKEN.with(Cell::get)
}

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count() {
    TAKEN.with(|taken| taken.set(taken.get() + 1));
}

// SAFETY: every method hands its arguments to the system's allocator unchanged, whose contract is the same.
// Counting does not allocate: the cell is constant-initialised and has no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as for the whole block.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as for the whole block.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as for the whole block.
        unsafe { System.realloc(place, layout, size) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: as for the whole block.
        unsafe { System.dealloc(place, layout) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taking_growing_and_nothing_else_count() {
        let before = taken();
        let mut list: Vec<u64> = Vec::with_capacity(1);
        list.extend([1, 2, 3]);
        drop(list);
        assert_eq!(taken() - before, 2);
    }
}
