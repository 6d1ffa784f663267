// Which instructions a build uses, and which the processor at hand has: what a program checks when
// it starts, and by what a portable one chooses (cmake/portable.cmake). These functions run where
// the rest of the build may not: they keep to general registers, call nothing but each other and
// the system, and are right in every file of a program, whatever each was compiled for.
#pragma once

#include <cstdint>
#include <cstdlib>
#if defined(__x86_64__)
#include <unistd.h>

/// On every function of this file: no instruction that some x86-64 lacks.
#define CELLA_ANYWHERE \
  [[gnu::target("general-regs-only,no-bmi,no-bmi2,no-lzcnt,no-movbe,no-popcnt")]]

namespace cella::cpu {

/// Extensions of the instruction set: bit i stands for extension_names[i].
using extensions = std::uint32_t;

// The extensions that compilers use by themselves: its name for __builtin_cpu_supports, and the
// macro that tells whether this file is compiled for it.
#define CELLA_EXTENSIONS(X)                 \
  X("sse3", __SSE3__)                       \
  X("ssse3", __SSSE3__)                     \
  X("sse4.1", __SSE4_1__)                   \
  X("sse4.2", __SSE4_2__)                   \
  X("popcnt", __POPCNT__)                   \
  X("avx", __AVX__)                         \
  X("avx2", __AVX2__)                       \
  X("fma", __FMA__)                         \
  X("f16c", __F16C__)                       \
  X("bmi", __BMI__)                         \
  X("bmi2", __BMI2__)                       \
  X("lzcnt", __LZCNT__)                     \
  X("movbe", __MOVBE__)                     \
  X("avx512f", __AVX512F__)                 \
  X("avx512cd", __AVX512CD__)               \
  X("avx512bw", __AVX512BW__)               \
  X("avx512dq", __AVX512DQ__)               \
  X("avx512vl", __AVX512VL__)               \
  X("avx512ifma", __AVX512IFMA__)           \
  X("avx512vbmi", __AVX512VBMI__)           \
  X("avx512vbmi2", __AVX512VBMI2__)         \
  X("avx512vnni", __AVX512VNNI__)           \
  X("avx512bitalg", __AVX512BITALG__)       \
  X("avx512vpopcntdq", __AVX512VPOPCNTDQ__) \
  X("avx512bf16", __AVX512BF16__)           \
  X("amx-tile", __AMX_TILE__)               \
  X("amx-bf16", __AMX_BF16__)               \
  X("amx-int8", __AMX_INT8__)
#define CELLA_NAME(name, macro) name,
inline constexpr const char* extension_names[] = {CELLA_EXTENSIONS(CELLA_NAME)};
inline constexpr int extension_count = int(sizeof(extension_names) / sizeof(const char*));

namespace detail {
constexpr bool same(const char* a, const char* b) {
  while (*a && *a == *b) ++a, ++b;
  return *a == *b;
}
constexpr extensions bits_up_to(const char* last) {
  for (int i = 0; i < extension_count; ++i) {
    if (same(extension_names[i], last)) return (extensions{2} << i) - 1;
  }
  return 0;
}
}  // namespace detail

/// What this file is compiled for. A macro that is defined is 1, any other is its own name.
#define CELLA_TEXT(x) #x
#define CELLA_USED(name, macro) \
  bit = CELLA_TEXT(macro)[0] == '1' ? bits |= bit, bit << 1 : bit << 1;
constexpr extensions extensions_of_build = [] {
  extensions bits = 0, bit = 1;
  CELLA_EXTENSIONS(CELLA_USED)
  return bits;
}();
#undef CELLA_USED
#undef CELLA_TEXT
#undef CELLA_NAME

/// What the processor has, and the operating system lets programs use.
#define CELLA_FOUND(name, macro) \
  bit = __builtin_cpu_supports(name) ? bits |= bit, bit << 1 : bit << 1;
CELLA_ANYWHERE inline extensions extensions_of_processor() {
  __builtin_cpu_init();  // constructors may run before the compiler's own
  extensions bits = 0, bit = 1;
  CELLA_EXTENSIONS(CELLA_FOUND)
  return bits;
}
#undef CELLA_FOUND
#undef CELLA_EXTENSIONS

/// A set that programs are built for, in the order of their strength, each with all that the one
/// before has: levels 2, 3 and 4 of the x86-64 ABI, and AMX.
struct instruction_set {
  const char* name;
  extensions needs;
};
inline constexpr instruction_set instruction_sets[] = {{"sse4.2", detail::bits_up_to("popcnt")},
                                                       {"avx2", detail::bits_up_to("movbe")},
                                                       {"avx512", detail::bits_up_to("avx512vl")},
                                                       {"amx", detail::bits_up_to("amx-int8")}};
inline constexpr int instruction_set_count = 4;

/// Index of an instruction set by its name; -1: there is none.
CELLA_ANYWHERE inline int find_instruction_set(const char* name) {
  for (int i = 0; i < instruction_set_count; ++i) {
    const char *a = instruction_sets[i].name, *b = name;
    while (*a && *a == *b) ++a, ++b;
    if (*a == *b) return i;
  }
  return -1;
}

/// What a build that needs `used` lacks on a processor that has `present`.
CELLA_ANYWHERE inline extensions missing_extensions(extensions used, extensions present) {
  return used & ~present;
}

/// Index of the strongest of the sets whose bits are in `offered` that a processor with `present`
/// can run; -1: none.
CELLA_ANYWHERE inline int best_instruction_set(unsigned offered, extensions present) {
  int best = -1;
  for (int i = 0; i < instruction_set_count; ++i) {
    const bool runs = !missing_extensions(instruction_sets[i].needs, present);
    if ((offered >> i & 1) && runs) best = i;
  }
  return best;
}

/// The matrix unit, which a process must ask the operating system for: it makes the state of each
/// thread larger by 8 kB.
inline constexpr extensions matrix_unit_extension =
    detail::bits_up_to("amx-tile") & ~detail::bits_up_to("avx512bf16");

/// Asks for the matrix unit, for all threads of this process; whether the operating system agrees.
CELLA_ANYWHERE inline bool ask_for_matrix_unit() {
  constexpr long arch_prctl = 158, request_permission = 0x1023, tile_data = 18;
  long result = arch_prctl;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(request_permission), "S"(tile_data)
               : "rcx", "r11", "memory");
  return result == 0;
}

/// Text that a program ends with, gathered without the help of a library.
struct start_message {
  char text[1024];
  int size = 0;

  CELLA_ANYWHERE start_message& operator<<(const char* s) {
    while (*s && size < int(sizeof(text))) text[size++] = *s++;
    return *this;
  }
  /// The names of extensions, with commas between them.
  CELLA_ANYWHERE start_message& operator<<(extensions bits) {
    const char* between = "";
    for (int i = 0; i < extension_count; ++i) {
      if (!(bits >> i & 1)) continue;
      *this << between << extension_names[i];
      between = ", ";
    }
    return *this;
  }
};

/// Writes a message to standard error and ends the process.
[[noreturn]] CELLA_ANYWHERE inline void refuse_to_start(const start_message& m) {
  [[maybe_unused]] const auto written = ::write(2, m.text, std::size_t(m.size));
  ::_exit(1);
}

/// What this process may use: what the processor has, less what is beyond the set that the
/// environment names in CELLA_INSTRUCTIONS. Ends the process if there is no set of that name.
CELLA_ANYWHERE inline extensions permitted_extensions() {
  const extensions present = extensions_of_processor();
  const char* limit = std::getenv("CELLA_INSTRUCTIONS");
  if (!limit || !*limit) return present;
  const int set = find_instruction_set(limit);
  if (set >= 0) return present & instruction_sets[set].needs;
  start_message m;
  m << "cella: CELLA_INSTRUCTIONS is " << limit << ", which is none of";
  for (const instruction_set& s : instruction_sets) m << " " << s.name;
  refuse_to_start(m << "\n");
}

/// Says why a build that needs `used` cannot run where `present` is, and what helps.
CELLA_ANYWHERE inline void explain_missing(start_message& m, extensions used, extensions present) {
  m << "cella: this program was compiled for instructions that this processor lacks: "
    << missing_extensions(used, present)
    << "\nCompile it on this machine, or for the oldest machine that it must run on "
       "(-march=x86-64-v3), or for several with cella_portable_sources (docs/embedding.md).\n";
  if (std::getenv("CELLA_INSTRUCTIONS")) m << "CELLA_INSTRUCTIONS in the environment limits it.\n";
}

/// What a portable program that was compiled for the sets in `offered` (bit i: instruction_sets[i])
/// runs in this process. Ends the process if the processor has none of them.
CELLA_ANYWHERE inline int chosen_instruction_set(unsigned offered) {
  extensions permitted = permitted_extensions();
  int best = best_instruction_set(offered, permitted);
  if (best >= 0 && (instruction_sets[best].needs & matrix_unit_extension) &&
      !ask_for_matrix_unit()) {
    permitted &= ~matrix_unit_extension;
    best = best_instruction_set(offered, permitted);
  }
  if (best >= 0) return best;
  int weakest = 0;
  while (!(offered >> weakest & 1)) ++weakest;
  start_message m;
  explain_missing(m, instruction_sets[weakest].needs, permitted);
  refuse_to_start(m);
}

}  // namespace cella::cpu

// Such a program would end in the middle with "illegal instruction": better at once and with a
// reason. Variants of a portable program are chosen instead; a program that chooses by itself which
// of its files run defines the macro too.
#if !defined(CELLA_INSTRUCTIONS_ARE_CHOSEN)
namespace {
[[gnu::constructor(101)]] CELLA_ANYWHERE void check_instructions_of_build() {
  using namespace cella::cpu;
  const extensions permitted = permitted_extensions();
  start_message m;
  if (missing_extensions(extensions_of_build, permitted)) {
    explain_missing(m, extensions_of_build, permitted);
  } else {
    if (!(extensions_of_build & matrix_unit_extension) || ask_for_matrix_unit()) return;
    m << "cella: this program was compiled for the matrix unit of this processor (AMX), which the "
         "operating system does not let it use.\nCompile it with -mno-amx-tile.\n";
  }
  refuse_to_start(m);
}
}  // namespace
#endif
#undef CELLA_ANYWHERE
#endif
