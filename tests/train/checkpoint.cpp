#include <doctest/doctest.h>

#include <algorithm>
#include <cella/interop/safetensors.hpp>
#include <cstring>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "digits.hpp"

using namespace cella;
using namespace cella::test;

/// Shares `first` and `norm` with small_net, but has more classes.
struct wider_net {
  nn::dense<6, 8> first{};
  nn::batch_norm<8> norm{};
  nn::dense<8, 5> last{};
  constexpr var operator()(var x) const { return last(relu(norm(first(x)))); }
};
/// small_net, whose first layer lies in another.
struct adapted_net {
  struct adapted {
    nn::dense<6, 8> base{};
    constexpr var operator()(var x) const { return base(x); }
  };
  adapted first{};
  nn::batch_norm<8> norm{};
  nn::dense<8, 3> head{};
  constexpr var operator()(var x) const { return head(relu(norm(first(x)))); }
};

namespace {

constexpr model_options small{.batch = 8};
using trained =
    model<small_net, features<6>, cross_entropy_loss{}, optim::sgd{.momentum = 0.9}, small>;
using wider = model<wider_net, features<6>, cross_entropy_loss{}, optim::sgd{}, small>;

std::vector<std::byte> bytes_of(const std::filesystem::path& path) {
  return interop::read_file(path, 1 << 20);
}
void write(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()), std::streamsize(bytes.size()));
}
/// Steps on batch after batch of `three_classes(24)`, the last of them smaller.
void steps(trained& m, int count) {
  const auto data = three_classes(21);
  for (int i = 0; i < count; ++i) {
    const int first = i % 3 * 8;
    m.train_step(data.column<0>().data() + first * 6, data.column<1>().data() + first,
                 first == 16 ? 5 : 8, 0.05);
  }
}
struct entry {
  std::string name;
  tensor_type type;
  std::vector<std::byte> bytes;
};
/// The file's tensors, changed by `edit`, as another file.
template <class Edit>
void rewrite(const std::filesystem::path& from, const std::filesystem::path& to, Edit edit) {
  const auto file = interop::safetensors_file::open(from);
  std::vector<entry> all;
  for (const auto& t : file.tensors()) {
    all.push_back({std::string(t.name), t.type, {t.bytes.begin(), t.bytes.end()}});
  }
  edit(all);
  std::vector<interop::named_tensor> out;
  for (const auto& e : all) out.push_back({e.name, e.type, e.bytes});
  interop::write_safetensors(to, out);
}
entry& named(std::vector<entry>& all, const std::string& name) {
  return *std::ranges::find(all, name, &entry::name);
}

}  // namespace

TEST_CASE("three steps, a checkpoint and three steps are six steps, bit for bit") {
  const scratch_directory dir("resume");
  for (execution how : {execution::graph, execution::eager}) {
    trained straight({.seed = 1, .mode = how});
    steps(straight, 3);
    straight.save(dir / "half.safetensors", {.optimizer = true});
    trained resumed({.seed = 99, .mode = how});
    resumed.load(dir / "half.safetensors", {.optimizer = true});
    CHECK(resumed.steps() == 3);
    steps(straight, 3);
    steps(resumed, 3);
    CHECK(straight.snapshot() == resumed.snapshot());
    straight.save(dir / "a.safetensors", {.optimizer = true});
    resumed.save(dir / "b.safetensors", {.optimizer = true});
    CHECK(bytes_of(dir / "a.safetensors") == bytes_of(dir / "b.safetensors"));
    // Without the optimizer's state the way is another one.
    trained forgetful({.seed = 99, .mode = how});
    forgetful.load(dir / "half.safetensors");
    steps(forgetful, 3);
    CHECK(straight.snapshot() != forgetful.snapshot());
  }
}

TEST_CASE("a checkpoint that is saved in the middle of an epoch resumes there") {
  const scratch_directory dir("middle");
  const auto data = three_classes(29).shuffle(4);
  struct saver {
    std::filesystem::path path;
    void on_batch_end(train::fit_context<trained>& c) const {
      if (c.epoch == 1 && c.batch == 2) c.model.save(path, {.optimizer = true});
    }
  };
  trained whole({.seed = 1, .mode = execution::graph});
  const optim::schedule rate = optim::cosine{.first = 0.1, .length = optim::epochs(3)};
  whole.fit(data, {.epochs = 3, .learning_rate = rate}, saver{dir / "m.safetensors"});
  trained resumed({.seed = 2, .mode = execution::graph});
  resumed.load(dir / "m.safetensors", {.optimizer = true});
  CHECK(resumed.steps() == 6);
  CHECK(resumed.epochs() == 1);
  resumed.fit(data, {.epochs = 2, .learning_rate = rate});
  CHECK(resumed.epochs() == 3);
  CHECK(whole.snapshot() == resumed.snapshot());
}

TEST_CASE("names are the paths of parameters, states and slots") {
  const scratch_directory dir("names");
  trained m;
  m.save(dir / "p.safetensors");
  m.save(dir / "t.safetensors", {.optimizer = true});
  const auto p = interop::safetensors_file::open(dir / "p.safetensors");
  CHECK(p.tensors().size() == 8);
  CHECK(p.at("first.weight").type == tensor_type{dtype::f32, {8, 6}});
  CHECK(p.find("norm.running_var").has_value());
  const auto t = interop::safetensors_file::open(dir / "t.safetensors");
  CHECK(t.tensors().size() == 8 + 6 + 2);
  CHECK(t.at("momentum.last.bias").type == tensor_type{dtype::f32, {3}});
  CHECK(t.at("cella.progress").type == tensor_type{dtype::i64, {3}});
  const auto w = m.net().last.weight.values();
  CHECK(std::memcmp(p.at("last.weight").bytes.data(), w.data(), w.size_bytes()) == 0);
}

TEST_CASE("a file that does not fit is refused, names the tensor, and changes nothing") {
  const scratch_directory dir("refused");
  trained m({.seed = 3});
  steps(m, 2);
  const auto good = dir / "good.safetensors", bad = dir / "bad.safetensors";
  m.save(good, {.optimizer = true});
  trained victim({.seed = 4, .mode = execution::graph});
  steps(victim, 1);
  const auto before = victim.snapshot();
  victim.save(dir / "before.safetensors", {.optimizer = true});
  auto refused = [&](const char* part, bool optimizer = true) {
    CHECK_THROWS_WITH_AS(victim.load(bad, {.optimizer = optimizer}), doctest::Contains(part),
                         file_error);
    CHECK(victim.snapshot() == before);
    victim.save(dir / "after.safetensors", {.optimizer = true});
    CHECK(bytes_of(dir / "before.safetensors") == bytes_of(dir / "after.safetensors"));
  };
  rewrite(good, bad,
          [](auto& all) { std::erase_if(all, [](auto& e) { return e.name == "last.bias"; }); });
  refused("no tensor \"last.bias\", which the model has as f32[3]");
  rewrite(good, bad, [](auto& all) { named(all, "last.bias").name = "last.offset"; });
  refused("no tensor \"last.bias\"");
  rewrite(good, bad, [](auto& all) { named(all, "first.weight").type.shape = {6, 8}; });
  refused("tensor \"first.weight\" is f32[6,8], but the model has f32[8,6]");
  rewrite(good, bad, [](auto& all) { named(all, "last.bias").type.element = dtype::i32; });
  refused("tensor \"last.bias\" is i32[3], but the model has f32[3]");
  rewrite(good, bad, [](auto& all) {
    all.push_back({"other", {dtype::f32, {1}}, std::vector<std::byte>(4)});
  });
  refused("has the tensor \"other\", which the model lacks");
  refused("has the tensor \"other\", which the model lacks", false);
  rewrite(good, bad, [](auto& all) {
    std::erase_if(all, [](auto& e) { return e.name == "momentum.norm.bias"; });
  });
  refused("no tensor \"momentum.norm.bias\"");
  rewrite(good, bad,
          [](auto& all) { named(all, "cella.progress").bytes.back() = std::byte{0x80}; });
  refused("\"cella.progress\" holds the negative count");
  auto bytes = bytes_of(good);
  for (std::size_t cut : {std::size_t{0}, std::size_t{7}, std::size_t{100}, bytes.size() - 1}) {
    write(bad, std::span(bytes).first(cut));
    refused("bad.safetensors");
  }
  bytes[3] = std::byte{0x7f};  // a header of 2 GB
  write(bad, bytes);
  refused("claims a header of");
  CHECK_THROWS_WITH_AS(victim.load(dir / "none.safetensors"),
                       doctest::Contains("there is no such file"), file_error);
  victim.load(good, {.optimizer = true});
  CHECK(victim.snapshot() == m.snapshot());
}

TEST_CASE("optimizer state of any optimizer is passed over by who loads parameters only") {
  const scratch_directory dir("passed");
  using adam_model = model<small_net, features<6>, cross_entropy_loss{}, optim::adam{}, small>;
  trained m({.seed = 3});
  steps(m, 1);
  m.save(dir / "m.safetensors", {.optimizer = true});
  adam_model other({.seed = 5});
  other.load(dir / "m.safetensors");
  CHECK(other.snapshot() == m.snapshot());
  CHECK(other.steps() == 0);
  CHECK_THROWS_WITH_AS(other.load(dir / "m.safetensors", {.optimizer = true}),
                       doctest::Contains("no tensor \"adam_m.first.weight\""), file_error);
}

TEST_CASE("a file's tensors are taken under other names") {
  const scratch_directory dir("renamed");
  trained m({.seed = 3});
  steps(m, 2);
  m.save(dir / "m.safetensors");
  model<adapted_net, features<6>, cross_entropy_loss{}, optim::sgd{},
        model_options{.batch = 8, .compiled = false}>
      a({.seed = 6});
  const auto take = [&](const std::vector<std::pair<std::string, std::string>>& names) {
    return a.load_partial(dir / "m.safetensors", {"*"}, {.names = names});
  };
  const auto before = a.snapshot();
  CHECK_THROWS_WITH_AS(take({{"*.base.*", "first.*"}}),
                       "names: {\"*.base.*\", \"first.*\"} has not as many * on both sides", error);
  CHECK_THROWS_WITH_AS(take({{"*.bass.*", "*.*"}}),
                       "names: none of the chosen parameters matches \"*.bass.*\"", error);
  CHECK_THROWS_WITH_AS(take({{"*.base.*", "*.*"}}),
                       doctest::Contains("has no tensor \"head.weight\""), file_error);
  CHECK(a.snapshot() == before);
  const auto names = take({{"*.base.*", "*.*"}, {"head.*", "last.*"}});
  CHECK(names[0] == "first.base.weight");
  CHECK(names.size() == 8);
  CHECK(std::ranges::equal(a.net().first.base.weight.values(), m.net().first.weight.values()));
  CHECK(std::ranges::equal(a.net().head.bias.values(), m.net().last.bias.values()));
  CHECK(std::ranges::equal(a.net().norm.weight.values(), m.net().norm.weight.values()));
}

TEST_CASE("part of a file is loaded by pattern, for another head") {
  const scratch_directory dir("partial");
  trained m({.seed = 3});
  steps(m, 2);
  m.save(dir / "m.safetensors");
  wider w({.seed = 6});
  const auto head =
      std::vector<float>(w.net().last.weight.values().begin(), w.net().last.weight.values().end());
  const auto names = w.load_partial(dir / "m.safetensors", {"first.*", "norm.*"});
  CHECK(names == std::vector<std::string>{"first.weight", "first.bias", "norm.weight", "norm.bias",
                                          "norm.running_mean", "norm.running_var"});
  CHECK(std::ranges::equal(w.net().first.weight.values(), m.net().first.weight.values()));
  CHECK(std::ranges::equal(w.net().norm.running_mean.values(), m.net().norm.running_mean.values()));
  CHECK(std::ranges::equal(w.net().last.weight.values(), head));
  const auto before = w.snapshot();
  CHECK_THROWS_WITH_AS(
      w.load_partial(dir / "m.safetensors", {"first.*", "last.*"}),
      doctest::Contains("tensor \"last.weight\" is f32[3,8], but the model has f32[5,8]"),
      file_error);
  CHECK_THROWS_WITH_AS(w.load_partial(dir / "m.safetensors", {"conv*"}),
                       doctest::Contains("no parameter matches \"conv*\""), error);
  CHECK(w.snapshot() == before);
  // Prediction sees the loaded values at once, also after programs prepared the old ones.
  std::vector<float> x(6, 1.0f);
  trained reader({.seed = 7, .mode = execution::graph});
  const auto old = reader.predict(x)[0];
  reader.load(dir / "m.safetensors");
  CHECK(reader.predict(x)[0] != old);
  CHECK(reader.predict(x)[0] == doctest::Approx(m.predict(x)[0]));
}

TEST_CASE("a restart forgets the optimizer's state and keeps the parameters") {
  trained a({.seed = 1}), b({.seed = 1});
  steps(a, 3);
  b.restore(a.snapshot());
  a.restart();
  CHECK(a.steps() == 0);
  std::copy_n(a.parameters().random_state(), 2, b.parameters().random_state());
  steps(a, 2);
  steps(b, 2);
  CHECK(a.snapshot() == b.snapshot());
}

TEST_CASE("a frozen parameter gathers no momentum") {
  const scratch_directory dir("frozen");
  for (execution how : {execution::graph, execution::eager}) {
    trained m({.seed = 1, .mode = how});
    m.fit(three_classes(21), {.epochs = 2, .freeze = {"first.*"}});
    m.save(dir / "m.safetensors", {.optimizer = true});
    const auto file = interop::safetensors_file::open(dir / "m.safetensors");
    auto is_zero = [&](const char* name) {
      return std::ranges::all_of(file.at(name).bytes, [](std::byte b) { return b == std::byte{}; });
    };
    CHECK(is_zero("momentum.first.weight"));
    CHECK(is_zero("momentum.first.bias"));
    CHECK_FALSE(is_zero("momentum.last.weight"));
  }
}
