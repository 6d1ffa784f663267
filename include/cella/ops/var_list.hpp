// The tensors that an operation cuts another one into.
#pragma once

#include <cella/graph/list.hpp>
#include <cella/graph/var.hpp>
#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string_view>
#include <utility>

namespace cella {

/// A list of one var at least. A part that is none of it is a fault of the cell, where the list was
/// made.
struct var_list : list<var> {
  constexpr var_list(list<var> parts, std::string_view who, std::source_location at)
      : list<var>(std::move(parts)), who_(who), at_(at) {}

  constexpr var& operator[](std::size_t i) { return data()[checked(i)]; }
  constexpr const var& operator[](std::size_t i) const { return data()[checked(i)]; }
  __attribute__((
      unavailable("these are several tensors; take one of them: split(x, 2, axis)[0]"))) constexpr
  operator var() const {
    return front();
  }

 private:
  constexpr std::size_t checked(std::size_t i) const {
    if (i < size()) return i;
    front().b->fail(text() << at_ << ": " << who_ << ": part " << std::int64_t(i)
                           << " is read, but there are " << std::int64_t(size())
                           << ", which count from 0");
    return 0;
  }

  std::string_view who_;
  std::source_location at_;
};

}  // namespace cella
