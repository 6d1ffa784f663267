#include <cella/nn/layers.hpp>
#include <cella/nn/recurrent.hpp>

#include "bound.hpp"

namespace cella::benchmark {

/// Reads an image row by row.
struct row_reader {
  nn::lstm<28, 128> memory;
  nn::dense<128, 10> out;

  constexpr var operator()(var x) const { return out(memory(x).hidden); }
};
const workload lstm64 = make_workload<row_reader, training<row_reader, 64, 28, 28>>("lstm64");

}  // namespace cella::benchmark
