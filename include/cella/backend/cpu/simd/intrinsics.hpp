// The intrinsics of this build's instruction set, and xsimd over them.
#pragma once

#if defined(__GNUC__) && !defined(__clang__)
// g++ 12 warns of the undefined registers from which its own AVX-512 intrinsics start, wherever
// they are inlined; what counts is the state where their header is read.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#if defined(__AVX__) && !defined(_IMMINTRIN_H_INCLUDED)
// g++ reads the intrinsics of every processor there is, half a second in each file. These are the
// parts that this build can use. They ask for the name that `immintrin.h` defines, which goes away
// below: a program that includes it afterwards gets the rest.
#define CELLA_PARTS_OF_INTRINSICS
#define _IMMINTRIN_H_INCLUDED
// Each part needs those before it.
// clang-format off
#include <smmintrin.h>
#include <avxintrin.h>
#include <avx2intrin.h>
#include <f16cintrin.h>
#include <fmaintrin.h>
#ifdef __AVXVNNI__
#include <avxvnniintrin.h>
#endif
#ifdef __AVX512F__
#include <avx512fintrin.h>
#include <avx512cdintrin.h>
#include <avx512vlintrin.h>
#include <avx512bwintrin.h>
#include <avx512dqintrin.h>
#include <avx512vlbwintrin.h>
#include <avx512vldqintrin.h>
#endif
#ifdef __AVX512VNNI__
#include <avx512vnniintrin.h>
#include <avx512vnnivlintrin.h>
#endif
#ifdef __AVX512BF16__
#include <avx512bf16vlintrin.h>
#include <avx512bf16intrin.h>
#endif
// clang-format on
#endif
#endif

#if defined(__AVX__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif
#include <cella/backend/cpu/simd/neon64_functions.hpp>
#include <xsimd/xsimd.hpp>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#ifdef CELLA_PARTS_OF_INTRINSICS
#undef CELLA_PARTS_OF_INTRINSICS
#undef _IMMINTRIN_H_INCLUDED
#endif
#endif
