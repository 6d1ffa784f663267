// A mesh of which everything is known, with numbers that have no short form, too.
#pragma once

#include <cella/parallel/mesh.hpp>

namespace cella::test {

inline parallel::device_mesh known_mesh() {
  using parallel::move_kind;
  parallel::device_mesh m = parallel::parse_mesh("data=4,model=2");
  m.axes[0].bytes_per_second = 25e9;
  m.axes[0].latency = 2.5e-6;
  m.axes[0].overlap = 0.25;
  m.axes[0].measured[std::size_t(move_kind::all_reduce)] = {12e9, 4e-6};
  m.axes[1].bytes_per_second = 1e10 / 3;
  m.axes[1].measured[std::size_t(move_kind::all_to_all)] = {3e9, 0};
  m.axes[1].started = {2e9, 1e-6};
  m.each = {112e9, 33e9, 12e9};
  return m;
}

}  // namespace cella::test
