//! Memory settings of the process. `main` chooses the allocator.

/// Disables transparent huge pages (2 MB each), which the allocator asks for: each thread keeps blocks of several
/// sizes, so an idle server would hold about ten megabytes more.
pub fn disable_huge_pages() {
    // Fails on kernels without huge pages, which need no setting.
    let _ignored = rustix::thread::disable_transparent_huge_pages(true);
}
