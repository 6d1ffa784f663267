// The network, compiled once for each instruction set.
#include "lenet.hpp"

#include <algorithm>
#include <cella/models/lenet.hpp>
#include <cella/optim/optimizers.hpp>
#include <cella/runtime/executable.hpp>
#include <cella/train/step.hpp>
#include <string>

namespace {

using namespace cella;
using net = models::lenet5;
using one = inference_program<net, tensor<dtype::f32, 1, 1, 28, 28>>;
using step = program<training_step<net, cross_entropy_loss, fixed<optim::sgd{.momentum = 0.9}>>,
                     true, dtype::f32, tensor<dtype::f32, Lenet::batch, 1, 28, 28>,
                     tensor<dtype::i32, Lenet::batch>>;

// A static object, which must be initialized for the chosen variant and for no other.
const std::string variant = std::to_string(8 * vector_bytes()) + " bits";

class Variant : public Lenet {
 public:
  explicit Variant(std::uint64_t seed) : store_(net_, seed), run_(store_), train_(store_) {
    train_.scalar(step::scalar("learning_rate"), 0.01);
  }
  const char* instructions() const override { return variant.c_str(); }
  void scores(const float* image, float* y) override {
    run_.call_unchecked(image);
    std::ranges::copy(run_.result(), y);
  }
  float train(const float* images, const std::int32_t* labels) override {
    train_.call_unchecked(images, labels);
    return train_.result()[0];
  }

 private:
  net net_;
  parameter_store store_;
  executable<one> run_;
  executable<step> train_;
};

}  // namespace

extern "C" Lenet* make_lenet(std::uint64_t seed) { return new Variant(seed); }
extern "C" int lenet_vector_bytes() { return vector_bytes(); }
