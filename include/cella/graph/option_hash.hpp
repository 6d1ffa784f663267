// A hash of an operation with its options, in constant evaluation as at run time.
#pragma once

#include <array>
#include <bit>
#include <cella/graph/op_info.hpp>
#include <cstdint>
#include <string_view>

namespace cella {

/// 64 bits of an operation's name and of each field of its options, by name and value: equal for
/// equal options, and the same in every program, compiler and run. FNV-1a, Fowler, Noll and Vo 1991
constexpr std::uint64_t hash(const op_info& op, const attributes& options) {
  const auto bytes = std::bit_cast<std::array<std::uint8_t, sizeof(attribute_words)>>(options);
  std::uint64_t h = 14695981039346656037u;
  auto mix = [&](std::uint8_t byte) { h = (h ^ byte) * 1099511628211u; };
  auto mix_name = [&](std::string_view name) {
    for (char c : name) mix(std::uint8_t(c));
    mix(0);  // so that no name runs into what is behind it
  };
  mix_name(op.name);
  if (!op.options) return h;
  for (const option_field& f : op.options->fields) {
    mix_name(f.name);
    const auto first = std::size_t(f.offset);
    for (std::size_t i = 0; i < std::size_t(detail::bytes_of(f)); ++i) mix(bytes[first + i]);
  }
  return h;
}

}  // namespace cella
