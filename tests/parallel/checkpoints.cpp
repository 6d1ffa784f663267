// Checkpoints that ranks write together are the same bits on any other mesh.
#include <doctest/doctest.h>

#include <cella/nn/layers.hpp>
#include <cella/ops/activation.hpp>
#include <cella/parallel/rank_program.hpp>
#include <cella/parallel/sharded_checkpoint.hpp>
#include <cella/parallel/thread_ranks.hpp>
#include <cella/runtime/compiled_once.hpp>
#include <cella/train/step.hpp>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "support/scratch_directory.hpp"

using namespace cella;
using namespace cella::parallel;

namespace {

/// Extents that divide among two ranks, among three, and among neither.
struct small_net {
  nn::dense<5, 6> one{};
  nn::dense<6, 7> two{};
  constexpr var operator()(var x) const { return two(relu(one(x))); }
};
graph step_graph() {
  training_step<small_net, cross_entropy_loss, optim::adam> step;
  const std::array types{tensor_type{dtype::f32, {6, 5}}, tensor_type{dtype::i32, {6}}};
  return compiled_once::optimize(trace(step, types, {.training = true}));
}
struct batch {
  std::vector<float> x = std::vector<float>(30);
  std::vector<std::int32_t> y{0, 2, 6, 1, 0, 5};
  batch() {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(i * 37 % 41) / 41.0f - 0.5f;
  }
};
double train(rank_program& run, int step) {
  batch b;
  run.set(run.find("x"), {reinterpret_cast<std::byte*>(b.x.data()), {dtype::f32, {6, 5}}});
  run.set(run.find("y"), {reinterpret_cast<std::byte*>(b.y.data()), {dtype::i32, {6}}});
  run.scalar("learning_rate", 0.01);
  run.scalar("step", step);
  run();
  return read_element(run.result(0), 0);
}
/// What a checkpoint has, whole, as the ranks have it.
std::vector<std::vector<std::byte>> kept(const rank_program& run) {
  std::vector<std::vector<std::byte>> all;
  for (const rank_program::input& in : run.inputs()) {
    if (!in.is_kept()) continue;
    all.emplace_back(std::size_t(in.whole.bytes()));
    run.get(in.index, {all.back().data(), in.whole});
  }
  return all;
}
std::string fault_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const error& e) { return e.what(); }
  return "none";
}

}  // namespace

TEST_CASE("a checkpoint of one mesh is the same bits on every other, and training goes on") {
  const test::scratch_directory folder("shards");
  const graph g = step_graph();
  struct place {
    const char* mesh;
    mode how;
  };
  const place all[] = {{"data=1", mode::serial}, {"data=2", mode::data},
                       {"data=4", mode::zero3},  {"data=3", mode::zero1},
                       {"data=2", mode::zero3},  {"data=2,model=2", mode::automatic}};
  for (const place& from : all) {
    const auto index = folder.path() / "run.json";
    std::vector<std::vector<std::byte>> expected;
    double next = 0;
    {
      const parallel_plan p = plan_for(g, parse_mesh(from.mesh), {.mode = from.how});
      thread_ranks ranks(p.mesh);
      ranks.run([&](int r, const communicator& c) {
        rank_program run(g, p, r, c);
        small_net net;
        run.load(parameter_store(net, 3));
        for (int s = 1; s <= 3; ++s) train(run, s);
        save_shards(run, index);
        const auto whole = kept(run);
        const double loss = train(run, 4);
        if (r == 0) expected = whole, next = loss;
      });
    }
    CHECK(expected.size() == 12);  // four parameters, each with two moments
    for (const place& to : all) {
      const parallel_plan p = plan_for(g, parse_mesh(to.mesh), {.mode = to.how});
      thread_ranks ranks(p.mesh);
      ranks.run([&](int r, const communicator& c) {
        rank_program run(g, p, r, c);
        load_shards(run, index);
        CHECK(kept(run) == expected);
        CHECK(train(run, 4) == doctest::Approx(next).epsilon(1e-5));
      });
    }
    small_net net;
    parameter_store store(net, 9);
    load_shards(store, index);
    std::size_t found = 0;
    for (const named_parameter& e : store.entries())
      for (const auto& bytes : expected)
        if (bytes.size() == std::size_t(e.type.bytes()) &&
            std::memcmp(bytes.data(), store.value(e).data, bytes.size()) == 0) {
          ++found;
          break;
        }
    CHECK(found == 4);
  }
}

TEST_CASE("files that do not belong together are told from those that do") {
  const test::scratch_directory folder("shards");
  const graph g = step_graph();
  const auto save = [&](const char* name) {
    const parallel_plan p =
        plan_for(g, parse_mesh("data=2"), {.mode = mode::zero3, .whole_bytes = 0});
    thread_ranks ranks(p.mesh);
    ranks.run([&](int r, const communicator& c) {
      rank_program run(g, p, r, c);
      small_net net;
      run.load(parameter_store(net, 3));
      save_shards(run, folder.path() / name);
    });
  };
  save("a.json");
  save("b.json");
  const auto in = [&](const char* name) { return (folder.path() / name).string(); };
  const auto load = [&](const char* name) {
    small_net net;
    parameter_store store(net, 3);
    return fault_of([&] { load_shards(store, folder.path() / name); });
  };
  CHECK(load("a.json") == "none");
  std::filesystem::copy_file(in("b-2-of-2.safetensors"), in("a-2-of-2.safetensors"),
                             std::filesystem::copy_options::overwrite_existing);
  CHECK(load("a.json") == "the index \"" + in("a.json") +
                              "\" of a sharded checkpoint and its file a-2-of-2.safetensors were "
                              "not written together");
  std::ifstream whole(in("b.json"));
  std::string text(std::istreambuf_iterator<char>(whole), {});
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string other = text;
    const auto at = other.find(from);
    REQUIRE(at != other.npos);
    std::ofstream(in("c.json")) << other.replace(at, from.size(), to);
    return load("c.json");
  };
  CHECK(with("one.weight", "one.height")
            .ends_with("has no tensor one.weight; load the checkpoint that belongs to this net"));
  CHECK(with("\"file\": \"b-", "\"file\": \"../b-").ends_with("names a file of another folder"));
  CHECK(with("cella sharded checkpoint 1", "x").ends_with("has another format"));
  CHECK(with("{", "").find("parse error") != std::string::npos);
}
