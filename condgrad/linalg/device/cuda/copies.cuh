// Asynchronous copies of a thread from global to shared memory, in groups; only this thread may read what it has copied.
// GPUs that cannot copy so copy at once.

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
// Begin to copy N bytes, or zeros if not is_there; both places are multiples of N.
template <int N>
__device__ __forceinline__ void begin_copy(void* to, const void* from, bool is_there) {
    const unsigned place = (unsigned)__cvta_generic_to_shared(to);
    const int n_read = is_there ? N : 0;
    if constexpr (N == 16) {  // past the first cache: nobody reads an entry of X twice
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(place), "l"(from), "r"(n_read) : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(place), "l"(from), "n"(N), "r"(n_read)
                     : "memory");
    }
}

// End a group of copies.
__device__ __forceinline__ void close_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Wait until at most N groups are not copied yet.
template <int N>
__device__ __forceinline__ void wait_for_copies() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }
#else
template <int N>
__device__ __forceinline__ void begin_copy(void* to, const void* from, bool is_there) {
    for (int k = 0; k < N; k++) ((char*)to)[k] = is_there ? ((const char*)from)[k] : 0;
}
__device__ __forceinline__ void close_copies() {}
template <int N>
__device__ __forceinline__ void wait_for_copies() {}
#endif
