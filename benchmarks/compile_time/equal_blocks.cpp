// A training program of so many equal blocks: what each further one costs the compiler.
// `compile_time.py --blocks` measures it.
//
// -DCELLA_BLOCKS=4 -DCELLA_BLOCK_KIND=gpt|residual|dense
#include <array>
#include <cella/models/gpt.hpp>
#include <cella/models/resnet.hpp>
#include <cella/nn/losses.hpp>
#include <cella/optim/optimizers.hpp>
#include <cella/runtime/executable.hpp>
#include <cella/train/step.hpp>
#include <cstdio>
#include <vector>

namespace {

using namespace cella;

/// A GPT, 64 wide, on texts of 32 words.
struct gpt {
  using net = models::gpt<256, 64, 4, CELLA_BLOCKS, 32>;
  using number = std::int32_t;
  static constexpr bool counts_steps = true;
  static constexpr int numbers = 8 * 32, labels = 8 * 32;
  using step = program<training_step<net, nn::token_cross_entropy, fixed<optim::adam{}>>, true,
                       dtype::f32, tensor<dtype::i32, 8, 32>, tensor<dtype::i32, labels>>;
};

/// Residual blocks of 16 channels.
struct residual {
  struct net {
    nn::conv2d<3, 16, 3, false> first{.padding = 1};
    std::array<models::basic_block<16, 16>, CELLA_BLOCKS> blocks{};
    nn::dense<16, 10> last{};

    constexpr var operator()(var x) const {
      x = first(x);
      for (const auto& block : blocks) x = block(x);
      return last(global_average_pool(x));
    }
  };
  using number = float;
  static constexpr bool counts_steps = false;
  static constexpr int numbers = 32 * 3 * 32 * 32, labels = 32;
  using step =
      program<training_step<net, cross_entropy_loss, fixed<optim::sgd{.momentum = 0.9}>>, true,
              dtype::f32, tensor<dtype::f32, 32, 3, 32, 32>, tensor<dtype::i32, labels>>;
};

/// Dense layers, 64 wide.
struct dense {
  struct net {
    std::array<nn::dense<64, 64>, CELLA_BLOCKS> layers{};
    nn::dense<64, 10> last{};

    constexpr var operator()(var x) const {
      for (const auto& layer : layers) x = relu(layer(x));
      return last(x);
    }
  };
  using number = float;
  static constexpr bool counts_steps = false;
  static constexpr int numbers = 32 * 64, labels = 32;
  using step = program<training_step<net, cross_entropy_loss, fixed<optim::sgd{.momentum = 0.9}>>,
                       true, dtype::f32, tensor<dtype::f32, 32, 64>, tensor<dtype::i32, labels>>;
};

template <class Kind>
void run() {
  typename Kind::net net;
  parameter_store store(net, 1);
  executable<typename Kind::step> train(store);
  train.scalar(Kind::step::scalar("learning_rate"), 0.01);
  if constexpr (Kind::counts_steps) train.scalar(Kind::step::scalar("step"), 1);
  const std::vector<typename Kind::number> x(Kind::numbers, 1);
  const std::vector<std::int32_t> y(Kind::labels, 3);
  train(x, y);
  std::printf("loss %g\n", double(train.template result<0>()[0]));
}

}  // namespace

int main() { run<CELLA_BLOCK_KIND>(); }
