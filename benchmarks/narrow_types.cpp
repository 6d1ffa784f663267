// What numbers of 16 and of 8 bits are worth: training steps that compute in 16 bits, planned by
// this process, and products of bf16 and of bytes, beside the same in f32. Prints Markdown; one
// thread.
//
// usage: narrow_types [lenet32 | gpt_8 | resnet50_8 | products]...     without any: all
#include <algorithm>
#include <cella/backend/cpu/gemm/byte_product.hpp>
#include <cella/backend/cpu/gemm/gemm.hpp>
#include <cella/backend/host/buffer.hpp>
#include <cella/models/gpt.hpp>
#include <cella/models/lenet.hpp>
#include <cella/models/resnet.hpp>
#include <cella/nn/losses.hpp>
#include <cella/ops/strided.hpp>
#include <cella/optim/optimizers.hpp>
#include <cella/runtime/compiled_once.hpp>
#include <cella/runtime/parameters.hpp>
#include <cella/train/slots.hpp>
#include <cella/train/step.hpp>
#include <chrono>
#include <cstdio>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace cella;

double milliseconds(auto f) {
  const auto before = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - before)
      .count();
}

// ---- training steps

/// A training step on made-up samples, whose integers are below `classes`.
class timed_step {
 public:
  template <class Step>
  timed_step(Step step, const std::array<tensor_type, 2>& types, unsigned classes)
      : graph_(compiled_once::optimize(trace(step, types, {true, dtype::f32}))),
        slots_(graph_),
        run_(graph_, dtype::f32) {
    parameters_ = std::make_unique<parameter_store>(step.net, 1);
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    for (const tensor_type& t : types) {
      arguments_.emplace_back(std::size_t(t.bytes()));
      for (std::int64_t i = 0; i < t.size(); ++i)
        write_element({arguments_.back().data(), t}, i,
                      is_floating(t.element) ? double{normal(random)} : double(random() % classes));
    }
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i) run_.bind(int(i), place_of(i));
  }
  double milliseconds_of_a_step() {
    return milliseconds([&] { run_(); });
  }
  /// Bytes of values between steps, as `explain` says.
  std::int64_t arena() const {
    std::ostringstream out;
    run_.explain(out);
    const std::string text = out.str();
    const std::size_t end = text.find("values between steps");
    std::int64_t bytes = 0;
    for (std::size_t i = text.rfind("arena ", end); i < end; ++i) {
      if (text[i] >= '0' && text[i] <= '9') bytes = bytes * 10 + (text[i] - '0');
    }
    return bytes;
  }

 private:
  std::byte* place_of(std::size_t i) {
    const input_info& in = graph_.inputs[i];
    const std::string_view name = graph_.view(in.name);
    const auto index = std::size_t(in.index);
    switch (in.role) {
      case input_role::argument:
        return arguments_[index].data();
      case input_role::scalar:
        numbers_[index] = name == "step" ? 1.f : 1e-3f;
        return reinterpret_cast<std::byte*>(&numbers_[index]);
      case input_role::slot:
        return slots_.value(*slots_.find(name)).data;
      default:
        return parameters_->value(*parameters_->find(name)).data;
    }
  }

  graph graph_;
  slot_store slots_;
  std::unique_ptr<parameter_store> parameters_;
  std::vector<aligned_buffer> arguments_;
  std::array<float, 8> numbers_{};
  loaded_program run_;
};

template <template <dtype> class Step>
void compare_steps(const char* name, const std::array<tensor_type, 2>& types, unsigned classes) {
  timed_step exact(Step<dtype::f32>{}, types, classes);
  timed_step brain(Step<dtype::bf16>{}, types, classes);
  timed_step half(Step<dtype::f16>{}, types, classes);
  const std::array all{&exact, &brain, &half};
  std::array<double, 3> least{1e9, 1e9, 1e9};
  // In turns, so that all see the same machine; short steps several times in each.
  for (int turn = 0; turn < 8; ++turn) {
    for (std::size_t k = 0; k < all.size(); ++k) {
      double sum = 0;
      do {
        const double once = all[k]->milliseconds_of_a_step();
        least[k] = std::min(least[k], once);
        sum += once;
      } while (sum < 50);
    }
  }
  constexpr std::array names{"f32", "bf16", "f16"};
  for (std::size_t k = 0; k < all.size(); ++k)
    std::printf("| `%s` | %s | %.3g | %.2f | %.1f | %.0f %% |\n", name, names[k], least[k],
                least[0] / least[k], double(all[k]->arena()) * 1e-6,
                100 * double(all[k]->arena()) / double(exact.arena()));
}
template <dtype Compute>
using lenet_step = training_step<models::lenet5, cross_entropy_loss,
                                 fixed<optim::sgd{.momentum = 0.9}>, var, Compute>;
template <dtype Compute>
using gpt_step = training_step<models::gpt<1024, 256, 4, 4, 128>, nn::token_cross_entropy,
                               fixed<optim::adam{}>, var, Compute>;
template <dtype Compute>
using resnet_step = training_step<models::resnet50<>, cross_entropy_loss,
                                  fixed<optim::sgd{.momentum = 0.9}>, var, Compute>;

// ---- products

double least_milliseconds(auto f) {
  double least = 1e9;
  for (int i = 0; i < 20; ++i) least = std::min(least, milliseconds(f));
  return least;
}
/// Numbers that lie as those of a plan do: aligned, and in large pages if they are many.
template <class T>
struct numbers {
  explicit numbers(std::size_t count) : memory(count * sizeof(T)), size(count) {}
  T* data() const { return reinterpret_cast<T*>(memory.data()); }
  T* begin() const { return data(); }
  T* end() const { return data() + size; }

  aligned_buffer memory;
  std::size_t size;
};
/// Milliseconds of a product of rows x columns x depth, of operands that are stored as S, row by
/// row or transposed.
template <class S>
double milliseconds_of_product(int rows, int columns, int depth, bool turned_a, bool turned_b) {
  numbers<S> x(std::size_t(rows) * std::size_t(depth));
  numbers<S> y(std::size_t(depth) * std::size_t(columns));
  numbers<float> z(std::size_t(rows) * std::size_t(columns));
  std::ranges::fill(x, S(1.f));
  std::ranges::fill(y, S(1.f));
  cpu::product<float, S> p;
  p.rows = rows;
  p.columns = columns;
  p.depth = depth;
  p.a = turned_a ? cpu::matrix<S>{x.data(), 1, rows} : cpu::matrix<S>{x.data(), depth, 1};
  p.b = turned_b ? cpu::matrix<S>{y.data(), 1, depth} : cpu::matrix<S>{y.data(), columns, 1};
  p.c_row = columns;
  aligned_buffer scratch(std::size_t(cpu::gemm_scratch(p)));
  return least_milliseconds([&] { cpu::gemm(p, cpu::store_to<float>{z.data()}, scratch.data()); });
}
/// As `gpt_8` has them.
void compare_products_of_bf16() {
  std::printf(
      "\n| rows x columns x depth | f32 GFLOP/s | bf16 GFLOP/s | ratio |\n"
      "| --- | ---: | ---: | ---: |\n");
  struct extents {
    int rows, columns, depth;
    bool turned_a = false, turned_b = false;
  };
  for (const extents& e : {extents{64, 64, 64},
                           {256, 256, 256},
                           {1024, 1024, 1024},
                           {1024, 1024, 256, false, true},
                           {1024, 256, 1024, false, true},
                           {1024, 256, 1024, true, false}}) {
    const auto time = [&]<class S>(S) {
      return milliseconds_of_product<S>(e.rows, e.columns, e.depth, e.turned_a, e.turned_b);
    };
    const double single = time(0.f), brain = time(bfloat16{});
    const double operations = 2e-6 * e.rows * e.columns * e.depth;
    std::printf("| %d x %d x %d%s | %.0f | %.0f | %.2f |\n", e.rows, e.columns, e.depth,
                e.turned_a   ? ", A transposed"
                : e.turned_b ? ", B transposed"
                             : "",
                operations / single, operations / brain, single / brain);
  }
}

void compare_products_of_bytes(int n) {
  const auto size = std::size_t(n) * std::size_t(n);
  std::mt19937 random(1);
  numbers<std::uint8_t> a(size);
  numbers<std::int8_t> b(size);
  numbers<std::int32_t> c(size);
  for (auto& x : a) x = static_cast<std::uint8_t>(random());
  for (auto& x : b) x = static_cast<std::int8_t>(random());
  const cpu::byte_product p{n, n, n, {a.data(), n, 1}, {b.data(), n, 1}, c.data(), n};
  numbers<std::uint32_t> packed(std::size_t(cpu::byte_packed_words(n, n)));
  aligned_buffer scratch(std::size_t(cpu::byte_product_scratch(n)));
  const double pack = least_milliseconds([&] {
    cpu::byte_pack(p, packed.data(), {0, cpu::byte_pack_units(n)});
  });
  const double bytes = least_milliseconds([&] {
    cpu::byte_multiply(p, packed.data(), scratch.data(), {0, cpu::byte_product_units(n)});
  });
  const double single = milliseconds_of_product<float>(n, n, n, false, false);
  const double operations = 2e-6 * n * n * n;
  std::printf("| %d | %.0f | %.0f | %.2f | %.2f |\n", n, operations / single, operations / bytes,
              single / bytes, single / (bytes + pack));
}

}  // namespace

int main(int argc, char** argv) {
  const auto wanted = [&](std::string_view name) {
    return argc == 1 || std::find(argv + 1, argv + argc, name) != argv + argc;
  };
  if (wanted("lenet32") || wanted("gpt_8") || wanted("resnet50_8"))
    std::printf(
        "| workload | computes in | step ms | times f32 | arena MB | of f32's |\n"
        "| --- | --- | ---: | ---: | ---: | ---: |\n");
  if (wanted("lenet32"))
    compare_steps<lenet_step>(
        "lenet32", {tensor_type{dtype::f32, {32, 1, 28, 28}}, tensor_type{dtype::i32, {32}}}, 10);
  if (wanted("gpt_8"))
    compare_steps<gpt_step>(
        "gpt_8", {tensor_type{dtype::i32, {8, 128}}, tensor_type{dtype::i32, {8 * 128}}}, 1024);
  if (wanted("resnet50_8"))
    compare_steps<resnet_step>(
        "resnet50_8", {tensor_type{dtype::f32, {8, 3, 224, 224}}, tensor_type{dtype::i32, {8}}},
        1000);
  if (!wanted("products")) return 0;
  compare_products_of_bf16();
  std::printf(
      "\n| n x n x n | f32 GFLOP/s | bytes Gop/s | ratio | with packing |\n"
      "| --- | ---: | ---: | ---: | ---: |\n");
  for (const int n : {64, 256, 512, 1024}) compare_products_of_bytes(n);
}
