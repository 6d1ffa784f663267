// A trained network in a program that knows nothing of deep learning. docs/embedding.md quotes this
// file.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cella/data/xtensor.hpp>
#include <cella/interop/safetensors.hpp>
#include <cella/models/mlp.hpp>
#include <cella/runtime/executable.hpp>
#include <filesystem>
#include <span>
#include <thread>
#include <vector>

namespace {

using Net = cella::models::mlp<16, 32, 4>;
using Program = cella::inference_program<Net, cella::tensor<cella::dtype::f32, 1, 16>>;

// Contracts that the compiler checks: memory and work per call.
static_assert(Program::plan.arena_bytes <= 4096);
static_assert(Program::plan.step_count <= 4);

/// What the rest of the program sees: two arrays and a function that cannot fail.
class Classifier {
 public:
  explicit Classifier(const std::filesystem::path& weights) { load(weights); }

  void operator()(std::span<const float, 16> features, std::span<float, 4> scores) noexcept {
    run_(features);
    const std::span<const float> y = run_.result<0>();
    std::copy(y.begin(), y.end(), scores.begin());
  }

 private:
  void load(const std::filesystem::path& path);

  Net net_;
  cella::parameter_store store_{net_, 0};
  cella::executable<Program> run_{store_};
};

void Classifier::load(const std::filesystem::path& path) {
  const auto file = cella::interop::safetensors_file::open(path);
  for (const auto& entry : store_.entries()) {
    const auto tensor = file.at(entry.name);  // throws file_error, which names the tensor
    const auto value = store_.value(entry);
    if (tensor.type != value.type) throw cella::file_error(entry.name + " has another shape");
    std::memcpy(value.data, tensor.bytes.data(), tensor.bytes.size());
  }
  store_.touch();
}

/// A pool that starts no thread: those of the host work for it while they have nothing else to do.
struct Host {
  cella::thread_pool pool{1, 2};  // the caller, and seats for two guests
  std::jthread first{[this](std::stop_token stop) { pool.worker(stop); }};
  std::jthread second{[this](std::stop_token stop) { pool.worker(stop); }};
};

/// Answers in several threads at once: one store of weights, an arena for each thread.
struct Service {
  using Scores = std::array<float, 4>;

  Net net;
  cella::parameter_store store{net, 7};

  /// What one thread does with its samples.
  std::vector<Scores> answer(std::span<const std::array<float, 16>> samples) {
    cella::executable<Program> run(store);
    std::vector<Scores> all(samples.size());
    for (std::size_t i = 0; i < samples.size(); ++i) {
      run(samples[i]);
      std::ranges::copy(run.result<0>(), all[i].begin());
    }
    return all;
  }
};

std::filesystem::path saved_weights() {
  Net net;
  cella::parameter_store store(net, 7);
  std::vector<cella::interop::named_tensor> all;
  for (const auto& e : store.entries()) {
    const auto v = store.value(e);
    all.push_back({e.name, v.type, {v.data, std::size_t(v.type.bytes())}});
  }
  const auto path =
      std::filesystem::temp_directory_path() /
      ("cella_embedding_" +
       std::to_string(std::hash<std::thread::id>{}(std::this_thread::get_id())) + ".safetensors");
  cella::interop::write_safetensors(path, all);
  return path;
}
/// The same network in plain loops.
std::array<float, 4> expected(const Net& net, std::span<const float, 16> x) {
  std::array<float, 32> hidden{};
  for (std::size_t o = 0; o < 32; ++o) {
    float sum = net.layer.bias.values()[o];
    for (std::size_t i = 0; i < 16; ++i) sum += net.layer.weight.values()[o * 16 + i] * x[i];
    hidden[o] = std::max(sum, 0.0f);
  }
  std::array<float, 4> y{};
  for (std::size_t o = 0; o < 4; ++o) {
    y[o] = net.rest.layer.bias.values()[o];
    for (std::size_t i = 0; i < 32; ++i)
      y[o] += net.rest.layer.weight.values()[o * 32 + i] * hidden[i];
  }
  return y;
}
std::array<float, 16> features() {
  std::array<float, 16> x{};
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(i) / 8 - 1;
  return x;
}

}  // namespace

TEST_CASE("an embedded classifier loads its weights and answers") {
  const auto path = saved_weights();
  Classifier classify(path);
  std::filesystem::remove(path);
  std::array<float, 4> scores{};
  classify(features(), scores);
  Net net;
  cella::parameter_store store(net, 7);
  const auto y = expected(net, features());
  for (std::size_t i = 0; i < 4; ++i) CHECK(scores[i] == doctest::Approx(y[i]).epsilon(1e-5));
  CHECK_THROWS_AS(Classifier("no such file"), cella::file_error);
}

TEST_CASE("a program runs on the host's threads") {
  Host host;
  while (host.pool.size() < 3) std::this_thread::yield();
  Net net;
  cella::parameter_store store(net, 7);
  using Many = cella::inference_program<Net, cella::tensor<cella::dtype::f32, 64, 16>>;
  cella::executable<Many> run(store, &host.pool);
  std::vector<float> x;
  for (int i = 0; i < 64; ++i) {
    const auto one = features();
    x.insert(x.end(), one.begin(), one.end());
  }
  run(x);
  const auto y = expected(net, features());
  for (std::size_t n = 0; n < 64; ++n) {
    for (std::size_t i = 0; i < 4; ++i)
      CHECK(run.result<0>()[n * 4 + i] == doctest::Approx(y[i]).epsilon(1e-5));
  }
}

TEST_CASE("several threads answer over one store of weights") {
  Service service;
  const std::vector samples(50, features());
  const auto y = expected(service.net, features());
  std::array<std::vector<Service::Scores>, 4> answers;
  {
    std::vector<std::jthread> threads;
    for (auto& a : answers) threads.emplace_back([&] { a = service.answer(samples); });
  }
  for (const auto& all : answers) {
    REQUIRE(all.size() == 50);
    CHECK(all == answers[0]);
    for (std::size_t i = 0; i < 4; ++i) CHECK(all[49][i] == doctest::Approx(y[i]).epsilon(1e-5));
  }
}

TEST_CASE("parameters are seen as xtensor arrays without a copy") {
  Net net;
  cella::parameter_store store(net, 7);
  auto weight = cella::data::as_xtensor(net.layer.weight);
  weight *= 0.5f;  // changes the network itself
  store.touch();   // so that what was derived from the old values is made again
  CHECK(weight.shape(0) == 32);
  CHECK(weight.shape(1) == 16);
  Net other;
  cella::parameter_store unchanged(other, 7);
  CHECK(net.layer.weight.values()[5] == 0.5f * other.layer.weight.values()[5]);
}
