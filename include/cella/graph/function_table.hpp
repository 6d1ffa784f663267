// Functions that are called by name, and regions that transforms derived from them: each is made
// once, and found again by recursion and by other callers.
#pragma once

#include <algorithm>
#include <cella/graph/graph.hpp>

namespace cella {

/// A function that is called by name, for arguments of these types.
struct named_function {
  const void* key;
  list<tensor_type> types;
  int region = -1;         ///< none before it is traced
  bool draws{};            ///< random numbers: a key is its last argument
  bool called_too_soon{};  ///< without a key, by itself, before it was known to draw
};

class function_table {
 public:
  /// What a transform makes of a function's region.
  enum class derivation : std::uint8_t { forward_mode, halves };

  /// The index of a function, which need not have been traced.
  constexpr std::size_t find(const void* key, span<const tensor_type> types) {
    std::size_t k = 0;
    for (; k < functions_.size(); ++k) {
      const named_function& f = functions_[k];
      if (f.key == key && std::equal(f.types.begin(), f.types.end(), types.begin(), types.end()))
        return k;
    }
    functions_.push_back({key, {types.begin(), types.end()}});
    return k;
  }
  constexpr named_function& operator[](std::size_t index) { return functions_[index]; }

  /// The region derived from region `of` for this set of marked inputs; -1 if there is none.
  constexpr int find_derived(derivation kind, int of, const flags& marked) const {
    for (const derived_region& d : derived_) {
      if (d.kind == kind && d.of == of && d.marked == marked) return d.made;
    }
    return -1;
  }
  constexpr void remember_derived(derivation kind, int of, const flags& marked, int made) {
    derived_.push_back({kind, of, marked, made});
  }

  /// Forgets what was made of region `r` and of those behind it.
  constexpr void forget_since(int r) {
    erase_if(derived_, [&](const derived_region& d) { return d.of >= r || d.made >= r; });
    for (named_function& f : functions_) {
      if (f.region >= r) f.region = -1;
    }
  }

 private:
  struct derived_region {
    derivation kind;
    int of;
    flags marked;
    int made;
  };

  list<named_function> functions_;
  list<derived_region> derived_;
};

}  // namespace cella
