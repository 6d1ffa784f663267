// Training steps as pipelines: the losses and the parameters of one device, whatever the stages.
#include <doctest/doctest.h>

#include <atomic>
#include <cella/nn/layers.hpp>
#include <cella/optim/clip.hpp>
#include <cella/parallel/pipeline_json.hpp>
#include <cella/parallel/pipeline_program.hpp>
#include <cella/parallel/plan_text.hpp>
#include <cella/parallel/thread_ranks.hpp>
#include <chrono>
#include <sstream>
#include <thread>

#include "trained_net.hpp"

namespace cella::test {

using namespace cella::parallel;

namespace {

void give(pipeline_program& run, const trained_net& t) {
  for (std::size_t i = 0; i < t.first.values.size(); ++i) run.set(int(i), t.first.values[i]);
}

void check_losses(const trained_net& t, const pipeline_plan& p) {
  const auto expected = losses_on_one_device(t, 3);
  thread_ranks ranks(p.mesh);
  std::vector<std::vector<double>> losses(std::size_t(p.mesh.ranks()));
  ranks.run([&](int r, const communicator& c) {
    pipeline_program run(t.step, p, r, c);
    give(run, t);
    for (int s = 0; s < 3; ++s) {
      run();
      losses[std::size_t(r)].push_back(read_element(run.result(0), 0));
    }
  });
  for (const auto& l : losses) CHECK(l == losses[0]);
  for (std::size_t k = 0; k < expected.size(); ++k)
    CHECK(losses[0][k] == doctest::Approx(expected[k]).epsilon(1e-5));
}
void check_losses(const trained_net& t, const char* mesh, const pipeline_options& o) {
  INFO(std::string(mesh) << ", microbatches " << o.microbatches << ", " << schedule_name(o.schedule)
                         << ", chunks " << o.chunks);
  check_losses(t, make_pipeline(t.step, parse_mesh(mesh), o));
}

/// Statistics over all samples, and a weight that is read in the first and in the last stage.
struct normed_net {
  nn::dense<6, 6, false> tied{};
  nn::batch_norm<6> norm{};
  constexpr var operator()(var x) const { return tied(relu(norm(tied(x)))); }
};
struct tied_net {
  nn::dense<6, 6, false> tied{};
  nn::dense<6, 6> between{};
  constexpr var operator()(var x) const { return tied(relu(between(relu(tied(x))))); }
};
template <class Net>
trained_net small() {
  return make_net<Net>({dtype::f32, {8, 6}}, {dtype::i32, {8}}, 6, optim::sgd{.momentum = 0.9});
}

}  // namespace

TEST_CASE("a pipeline has the losses of one device, whatever its stages and microbatches") {
  constexpr auto gpipe = pipeline_schedule::gpipe;
  for (const trained_net& t : {lenet(), gpt()}) {
    for (const char* mesh : {"pipe=1", "pipe=2", "pipe=3", "pipe=4"})
      for (int microbatches : {1, 2, 4}) check_losses(t, mesh, {.microbatches = microbatches});
    check_losses(t, "pipe=2", {.microbatches = 4, .schedule = gpipe});
    check_losses(t, "pipe=4", {.schedule = gpipe});
    check_losses(t, "data=2,pipe=2", {.microbatches = 2});
    check_losses(t, "model=2,data=2", {});
  }
}

TEST_CASE("ranks with several stages have the losses of one device") {
  for (const trained_net& t : {lenet(), gpt()}) {
    for (const char* mesh : {"pipe=1", "pipe=2", "pipe=4"})
      for (int chunks : {2, 3}) {
        check_losses(t, mesh, {.microbatches = 4, .chunks = chunks});
        check_losses(t, mesh,
                     {.microbatches = 4, .schedule = pipeline_schedule::gpipe, .chunks = chunks});
      }
    check_losses(t, "data=2,pipe=2", {.microbatches = 2, .chunks = 2});
    check_losses(t, "pipe=2", {.chunks = 2});
  }
  check_losses(small<tied_net>(), "pipe=2", {.microbatches = 4, .chunks = 2});
}

TEST_CASE("gradients are clipped by the norm of all, which stages exchange") {
  constexpr auto clipped = optim::clip_by_global_norm(0.05, optim::sgd{.momentum = 0.9});
  const trained_net t =
      make_net<small_gpt>({dtype::i32, {8, 16}}, {dtype::i32, {128}}, 32, clipped);
  for (const char* mesh : {"pipe=2", "pipe=4", "data=2,pipe=2"}) {
    for (int microbatches : {1, 2, 4}) check_losses(t, mesh, {.microbatches = microbatches});
    check_losses(t, mesh, {.microbatches = 4, .chunks = 2});
  }
}

TEST_CASE("a weight of two stages lies in one of them, and what needs all samples has them") {
  for (const char* mesh : {"pipe=2", "pipe=3"}) {
    check_losses(small<tied_net>(), mesh, {.microbatches = 2});
    check_losses(small<tied_net>(), mesh, {.microbatches = 1});
    check_losses(small<normed_net>(), mesh, {});
  }
  const trained_net t = small<normed_net>();
  const pipeline_plan p = make_pipeline(t.step, parse_mesh("pipe=2"));
  CHECK(p.microbatches() == 1);
  CHECK(p.needs_whole_batch);
}

TEST_CASE("parameters and the optimizer's state lie in one stage each, and are gathered") {
  const trained_net t = lenet();
  const pipeline_plan p = make_pipeline(t.step, parse_mesh("pipe=2"));
  std::array<std::int64_t, 2> bytes{};
  models::lenet5 net;
  const parameter_store expected(net, 3);
  thread_ranks ranks(p.mesh);
  ranks.run([&](int r, const communicator& c) {
    pipeline_program run(t.step, p, r, c);
    run.load(expected);
    for (const rank_inputs::input& in : run.inputs()) {
      if (!in.is_kept()) continue;
      CHECK(in.stage >= 0);
      CHECK(run.part(in.index).type.bytes() == (in.stage == r ? in.whole.bytes() : 0));
      bytes[std::size_t(r)] += run.part(in.index).type.bytes();
    }
    models::lenet5 other;
    parameter_store found(other, 4);
    run.save(found);
    CHECK(same_numbers(expected, found));
  });
  CHECK(bytes[0] > 0);
  CHECK(bytes[1] > 0);
  CHECK(bytes[0] + bytes[1] == 2 * 4 * 61'706);  // with momenta
}

TEST_CASE("the schedules are those of GPipe and 1F1B") {
  const auto gpipe = pipeline_schedule::gpipe, f1b1 = pipeline_schedule::one_forward_one_backward;
  CHECK(schedule_of_stage(gpipe, 1, 2, 3) == list<int>{1, 2, 3, -1, -2, -3});
  CHECK(schedule_of_stage(f1b1, 0, 3, 4) == list<int>{1, 2, 3, -1, 4, -2, -3, -4});
  CHECK(schedule_of_stage(f1b1, 2, 3, 4) == list<int>{1, -1, 2, -2, 3, -3, 4, -4});
  const trained_net t = gpt();
  device_mesh m = parse_mesh("pipe=2");
  m.axes[0].latency = 0;
  m.axes[0].bytes_per_second = 1e15;
  const auto bubble = [&](int microbatches, pipeline_schedule s) {
    return make_pipeline(t.step, m, {.microbatches = microbatches, .schedule = s}).bubble;
  };
  // (stages - 1) / (microbatches + stages - 1) where all stages take as long, more elsewhere.
  for (auto s : {gpipe, f1b1}) {
    CHECK(bubble(1, s) == doctest::Approx(0.5).epsilon(0.1));
    CHECK(bubble(4, s) >= 0.2 * 0.9);
    CHECK(bubble(4, s) < 0.35);
  }
  const pipeline_plan all = make_pipeline(t.step, m, {.microbatches = 4, .schedule = gpipe});
  const pipeline_plan few = make_pipeline(t.step, m, {.microbatches = 4});
  CHECK(all.stages[0].kept == 4);
  CHECK(few.stages[0].kept == 2);
  CHECK(few.stages[1].kept == 1);
  CHECK(few.bytes_on_device() < all.bytes_on_device());
  // The interleaved schedule waits for half as long, and keeps more.
  const pipeline_plan half = make_pipeline(t.step, m, {.microbatches = 4, .chunks = 2});
  CHECK(half.bubble < 0.75 * few.bubble);
  CHECK(half.stages[0].kept + half.stages[2].kept > few.stages[0].kept);
  CHECK(tasks_of_place(f1b1, 1, 2, 2, 2) == list<pipeline_task>{{false, 0, 0},
                                                                {false, 1, 0},
                                                                {false, 0, 1},
                                                                {true, 0, 1},
                                                                {false, 1, 1},
                                                                {true, 1, 1},
                                                                {true, 0, 0},
                                                                {true, 1, 0}});
  std::ostringstream out;
  print_plan(out, half);
  CHECK(out.str().starts_with(
      "mesh pipe=2, mode pipeline along pipe, 1f1b, stages of a rank: 2, microbatches: 4; "));
  out.str("");
  print_plan(out, few);
  CHECK(out.str().starts_with("mesh pipe=2, mode pipeline along pipe, 1f1b, microbatches: 4; "));
}

TEST_CASE("what a pipeline cannot do is one sentence") {
  const trained_net t = lenet();
  const auto fault = [](const graph& g, const char* mesh, const pipeline_options& o) {
    try {
      make_pipeline(g, parse_mesh(mesh), o);
    } catch (const model_error& e) { return std::string(e.what()); }
    return std::string("none");
  };
  CHECK(fault(t.step, "pipe=2", {.microbatches = 3}) ==
        "mode pipeline: the argument x f32[16,1,28,28] is not divided evenly by 3 microbatches");
  CHECK(fault(t.step, "data=2,pipe=2", {.microbatches = 16}) ==
        "mode pipeline: the argument x f32[16,1,28,28] is not divided evenly by 16 microbatches on "
        "2 ranks of the axis data");
  CHECK(fault(t.step, "pipe=2,model=2", {}) ==
        "mode pipeline: stages are along the axis pipe of the mesh pipe=2,model=2, and samples "
        "along data; nothing is along model");
  CHECK(fault(t.step, "pipe=2", {.microbatches = 1, .chunks = 2}) ==
        "mode pipeline: with 2 stages on each of 2 ranks microbatches are a multiple of the ranks, "
        "not 1");
  CHECK(fault(t.step, "pipe=2", {.chunks = 0}) ==
        "mode pipeline: each rank has 0 stages; give 1 or more");
  CHECK(fault(t.step, "pipe=2", {.axis = "stage"}) ==
        "mode pipeline: the mesh pipe=2 has no axis called stage");
  CHECK(fault(small<tied_net>().step, "pipe=40", {}).starts_with("mode pipeline: 40 stages, but "));
  CHECK(fault(small<normed_net>().step, "pipe=2", {.microbatches = 2}) ==
        "mode pipeline: norm needs all samples at once, so that the batch is not divided into "
        "microbatches; take one, or another mode");
}

TEST_CASE("a pipeline is written and read: the same stages, without a search for the cut") {
  const trained_net t = gpt();
  for (const char* mesh : {"pipe=2", "data=2,pipe=2"})
    for (const pipeline_options& o :
         {pipeline_options{},
          pipeline_options{.microbatches = 2, .schedule = pipeline_schedule::gpipe},
          pipeline_options{.microbatches = 4, .chunks = 2}}) {
      const pipeline_plan p = make_pipeline(t.step, parse_mesh(mesh), o);
      const std::string json = plan_to_json(t.step, p);
      const pipeline_plan q = pipeline_from_json(t.step, json);
      CHECK(plan_to_json(t.step, q) == json);
      CHECK(q.stage == p.stage);
      CHECK(q.owner == p.owner);
      CHECK(q.seconds == p.seconds);
      check_losses(t, q);
    }
  // Where the file is cut elsewhere, so is the pipeline.
  const pipeline_plan p = make_pipeline(t.step, parse_mesh("pipe=2"));
  auto j = nlohmann::ordered_json::parse(plan_to_json(t.step, p));
  const int all = p.cut[0] + p.cut[1];
  for (int first : {1, all / 4, all - 1}) {
    j["stages"][0]["operations"] = first;
    j["stages"][1]["operations"] = all - first;
    const pipeline_plan q = pipeline_from_json(t.step, j.dump());
    CHECK(q.cut == list<int>{first, all - first});
    CHECK(q.seconds >= 0.98 * p.seconds);
    check_losses(t, q);
  }
}

TEST_CASE("a file that is no pipeline of this graph is refused in a sentence") {
  const trained_net t = gpt();
  const auto plan = nlohmann::ordered_json::parse(
      plan_to_json(t.step, make_pipeline(t.step, parse_mesh("data=2,pipe=2"))));
  const auto refusal = [](const graph& g, const std::string& json) {
    try {
      pipeline_from_json(g, json);
    } catch (const error& e) { return std::string(e.what()); }
    return std::string("none");
  };
  const auto with = [&](const char* where, const auto& what) {
    auto j = plan;
    j[nlohmann::ordered_json::json_pointer(where)] = what;
    return refusal(t.step, j.dump());
  };
  CHECK(refusal(t.step, plan.dump()) == "none");
  CHECK(refusal(t.step, "{").starts_with("this is no plan: "));
  CHECK(refusal(lenet().step, plan.dump()).starts_with("this plan is of another graph: "));
  CHECK(refusal(t.step, plan_to_json(t.step, plan_for(t.step, parse_mesh("data=2"),
                                                      {.mode = mode::data}))) ==
        "this is a plan of mode data, and no pipeline; plan_from_json reads it");
  CHECK_THROWS_WITH_AS(plan_from_json(t.step, plan.dump()),
                       "this is the plan of a pipeline, which pipeline_from_json reads",
                       file_error);
  CHECK(with("/mesh/axes/0/size", 0) == "this mesh has an axis data of 0 ranks");
  CHECK(with("/axis", "stage") ==
        "this plan has stages along an axis stage, which its mesh data=2,pipe=2 does not have");
  CHECK(with("/axis", "data") ==
        "mode pipeline: stages are along the axis data of the mesh data=2,pipe=2, and samples "
        "along data; nothing is along pipe");
  CHECK(with("/schedule", "zigzag") == "schedule zigzag: there are gpipe and 1f1b");
  CHECK(with("/chunks", -1) == "this plan has -1 as chunks");
  CHECK(with("/microbatches", 1e9) == "this plan has 1000000000 as microbatches");
  CHECK(with("/microbatches", 3) ==
        "mode pipeline: the argument x i32[8,16] is not divided evenly by 3 microbatches on 2 "
        "ranks of the axis data");
  CHECK(with("/stages/0/operations", 0) == "this plan has 0 as operations");
  CHECK(with("/mesh/axes/1/size", 3)
            .starts_with(
                "mode pipeline: the cut into stages is that of another graph: this one has "));
  CHECK(with("/stages/1/operations", 1)
            .starts_with(
                "mode pipeline: the cut into stages is that of another graph: this one has "));
  CHECK(with("/nodes/0/op", "sin").starts_with("this plan is of another graph: node 0 is sin "));
  CHECK(with("/nodes/0/results/0/0", 7).find(" cannot lie as ") != std::string::npos);
  CHECK(with("/nodes/0/results/0/0", 99) ==
        "this plan has 99 where a dimension or a loop is meant");
}

TEST_CASE("a plan is for ranks of its mesh") {
  const trained_net t = lenet();
  const pipeline_plan p = make_pipeline(t.step, parse_mesh("pipe=2"));
  CHECK_THROWS_WITH_AS(thread_ranks(parse_mesh("pipe=3")).run([&](int r, const communicator& c) {
    pipeline_program(t.step, p, r, c);
  }),
                       "the plan is for the mesh pipe=2, but here 3 ranks are along its axis pipe",
                       model_error);
}

TEST_CASE("messages of one tag come in their order, and a wrong size is refused") {
  parallel::detail::mailbox box;
  double a = 1, b = 2, c = 3, got = 0;
  const auto number = [](double& x) {
    return tensor_ref{reinterpret_cast<std::byte*>(&x), {dtype::f64, {}}};
  };
  box.put(5, number(a));
  box.put(6, number(b));
  box.put(5, number(c));
  std::int64_t seen = -1;
  CHECK(box.take(6, number(got), seen));
  CHECK(got == 2);
  for (double expected : {1.0, 3.0}) {
    seen = -1;
    CHECK(box.take(5, number(got), seen));
    CHECK(got == expected);
  }
  seen = -1;
  CHECK_FALSE(box.take(5, number(got), seen));
  box.put(5, number(a));
  std::array<double, 2> two{};
  CHECK_THROWS_WITH_AS(
      box.take(5, {reinterpret_cast<std::byte*>(two.data()), {dtype::f64, {2}}}, seen),
      "receive: a message has 8 bytes, but f64[2] is expected; all ranks have to run the same plan",
      error);
}

TEST_CASE("a stage that does not come is named, and all stop") {
  const trained_net t = small<tied_net>();
  const pipeline_plan p = make_pipeline(t.step, parse_mesh("pipe=3"));
  for (int lost = 0; lost < 3; ++lost) {
    thread_ranks ranks(p.mesh, 0.4);
    std::atomic<bool> noticed{false};
    std::string said;
    try {
      ranks.run([&](int r, const communicator& c) {
        pipeline_program run(t.step, p, r, c);
        give(run, t);
        run();
        for (int i = 0; r == lost && i < 10'000 && !noticed; ++i)
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        try {
          run();
        } catch (const error&) {
          noticed = true;
          throw;
        }
      });
    } catch (const error& e) { said = e.what(); }
    CHECK(said == "rank " + std::to_string(lost) +
                      " has not come to a collective operation for 0.4 s; the others stop");
  }
}

}  // namespace cella::test
