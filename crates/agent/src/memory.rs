//! How this process gets its memory from the kernel. The allocator itself is chosen in `main`.

/// Takes memory from the kernel in small pages. The allocator asks for transparent huge ones, of two
/// megabytes each: with several threads that each keep blocks of several sizes, an idle server then holds
/// ten megabytes that nobody uses.
pub fn small_pages() {
    // A kernel that does not know huge pages gives none.
    let _unknown = rustix::thread::disable_transparent_huge_pages(true);
}
