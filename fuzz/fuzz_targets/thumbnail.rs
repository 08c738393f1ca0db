//! Arbitrary bytes as an image: no panic, bounded memory, equal answers.
#![no_main]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use blackboard_thumbnail::{self as thumbnail, Bounds};
use libfuzzer_sys::fuzz_target;

/// What is allocated, and the most that was.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

impl Counting {
    fn add(bytes: usize) {
        let now = NOW.fetch_add(bytes, Ordering::Relaxed).wrapping_add(bytes);
        PEAK.fetch_max(now, Ordering::Relaxed);
    }
}

unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::add(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Self::add(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// What encoders and tables take besides, whatever the image; and 16 MiB that the decoder of VP8 asks for where a
/// frame says that it has so much, which is never touched where the file ends before.
const BESIDES: u64 = 24 << 20;

/// The largest image that is decoded.
const PIXELS_MAX: u64 = 1 << 18;

/// What is made by `work`, and how much memory it took at its peak.
fn measured<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let before = NOW.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let done = work();
    (done, PEAK.load(Ordering::Relaxed).saturating_sub(before) as u64)
}

fuzz_target!(|bytes: &[u8]| {
    let (probed, took) = measured(|| thumbnail::probe(bytes, Bounds::px(Some(19))));
    assert!(took <= thumbnail::DECODING_BYTES_MAX, "to look took {took}");
    // The header is judged in a moment; a whole screen of pixels takes a fuzzer's time. Rows need less memory than there are
    // pixels, and end where these bytes do.
    let pixels = |probe: thumbnail::Probe| u64::from(probe.size.0) * u64::from(probe.size.1);
    let is_large = probed.is_ok_and(|probe| pixels(probe) > PIXELS_MAX);
    if probed.is_ok_and(|probe| probe.need > 32 << 20 || is_large && probe.need > pixels(probe)) {
        return;
    }
    let all = [Some(19), None];
    for max_px in all.into_iter().take(if is_large { 1 } else { 2 }) {
        let (made, took) = measured(|| thumbnail::make(bytes, Bounds::px(max_px)));
        let need = probed.map_or(0, |probe| probe.need);
        // At its own size what is encoded may be as large as what was decoded.
        let most = if max_px.is_none() { 2 * need } else { need } + BESIDES;
        assert!(took <= most, "took {took} where {need} were needed");
        if let Ok(made) = &made {
            let (width, height) = made.size;
            assert!(max_px.is_none_or(|max_px| width.max(height) <= max_px));
            assert_eq!(thumbnail::media_type(&made.bytes), Some(made.media_type));
        }
        assert_eq!(thumbnail::make(bytes, Bounds::px(max_px)), made);
    }
});
