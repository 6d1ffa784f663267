#include <cella/nn/layers.hpp>
#include <cella/nn/recurrent.hpp>

#include "bound.hpp"

namespace cella::benchmark {

/// Reads an image row by row.
struct gated_reader {
  nn::gru<28, 128> memory;
  nn::dense<128, 10> out;

  constexpr var operator()(var x) const { return out(memory(x).hidden); }
};
const workload gru128 = make_workload<gated_reader, training<gated_reader, 128, 28, 28>>("gru128");

}  // namespace cella::benchmark
