#include <cella/nn/embedding_bag.hpp>
#include <cella/nn/layers.hpp>

#include "bound.hpp"

namespace cella::benchmark {

constexpr int rows = 1'000'000;
/// Ten classes of bags of words.
struct bags_of_words {
  nn::embedding_bag<rows, 64> words;
  nn::dense<64, 10> out;

  constexpr var operator()(var bags) const { return out(words(bags)); }
};
/// SGD has no state that would be as large as the table.
using step = program<training_step<bags_of_words, cross_entropy_loss, fixed<optim::sgd{}>>, true,
                     dtype::f32, tensor<dtype::i32, 512, 32>, tensor<dtype::i32, 512>>;
const workload embedding_bag = make_workload<bags_of_words, step, 10, rows>("embedding_bag");

}  // namespace cella::benchmark
