// Functions that programs linked with `cella::kernels` do not compile again. Most of what traces,
// differentiates and optimizes a graph at run time is the same in all programs; it stands in
// headers because the compiler runs it, too.
#pragma once

namespace cella {

/// Whether this program is linked with `cella::kernels`.
#if defined(CELLA_KERNELS)
inline constexpr bool has_compiled_kernels = true;
#else
inline constexpr bool has_compiled_kernels = false;
#endif

/// Whether models are developed: they compile no programs, and run through plans that are made at
/// run time. The target cella::development says so.
#if defined(CELLA_DEVELOPMENT)
inline constexpr bool in_development = true;
static_assert(has_compiled_kernels,
              "cella: CELLA_DEVELOPMENT needs the compiled kernels; link cella::development");
#else
inline constexpr bool in_development = false;
#endif

}  // namespace cella

// Of functions that constant evaluation needs the body stands in the class or behind it, and
// CELLA_ONCE before it: the compiler runs it anywhere, but no other object file than that of
// kernels.cpp gets a copy. (Not for virtual functions, which tables ask for in their own way;
// for constructors and destructors see CELLA_MADE_ONCE.)
//
// The bodies of others stand in headers `*_body.hpp`, with CELLA_BODY before each, and those of
// operations behind their structs; programs that are linked with the kernels, where
// CELLA_HAS_BODIES is 0, do not even parse them. (What is parsed costs more than that: g++
// instantiates all templates that it calls, at the end of each file, called itself or not.)
//
// Programs that compile both themselves optimize them for size, which takes less time, but for
// those with CELLA_HOT_BODY.
#if defined(CELLA_COMPILES_KERNELS)
#define CELLA_ONCE [[gnu::used]] inline
#define CELLA_BODY
#define CELLA_HOT_BODY
#define CELLA_HAS_BODIES 1
#elif !defined(CELLA_KERNELS)
#define CELLA_ONCE [[gnu::cold]] inline
#define CELLA_BODY [[gnu::cold]] inline
#define CELLA_HOT_BODY inline
#define CELLA_HAS_BODIES 1
#else
// With gnu_inline a body is there to be inlined at most, and both compilers would do so, whatever
// its size: clang may be told not to, g++ does not inline what is optimized in another way.
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wgnu-inline-cpp-without-extern"
#define CELLA_ONCE [[gnu::gnu_inline, gnu::noinline]] inline
#else
#define CELLA_ONCE [[gnu::gnu_inline, gnu::optimize("O0")]] inline
#endif
#define CELLA_HAS_BODIES 0
#endif

/// As CELLA_ONCE, before constructors and destructors: each has two functions, of which clang puts
/// one into the kernels' object, so that programs make their own.
#if defined(__clang__)
#define CELLA_MADE_ONCE inline
#else
#define CELLA_MADE_ONCE CELLA_ONCE
#endif

/// Before a function whose speed matters less than the compiler's time.
#if defined(__clang__)
#define CELLA_UNOPTIMIZED [[clang::optnone, gnu::noinline]]
#else
#define CELLA_UNOPTIMIZED [[gnu::optimize("O0"), gnu::noinline]]
#endif
