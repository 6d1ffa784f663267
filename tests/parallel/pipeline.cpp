// Training steps as pipelines: the losses and the parameters of one device, whatever the stages.
#include <doctest/doctest.h>

#include <atomic>
#include <cella/nn/layers.hpp>
#include <cella/optim/clip.hpp>
#include <cella/optim/layerwise.hpp>
#include <cella/optim/loss_scale.hpp>
#include <cella/parallel/pipeline_json.hpp>
#include <cella/parallel/pipeline_program.hpp>
#include <cella/parallel/plan_text.hpp>
#include <cella/parallel/thread_ranks.hpp>
#include <cella/transform/control.hpp>
#include <chrono>
#include <sstream>
#include <thread>

#include "trained_net.hpp"

using namespace cella;
using namespace cella::test;

using namespace cella::parallel;

namespace {

constexpr auto gpipe = pipeline_schedule::gpipe,
               one_f_one_b = pipeline_schedule::one_forward_one_backward,
               zero_bubble = pipeline_schedule::zero_bubble;

/// What the rank at a place does: `F1 F2 B1`, and the number of a stage of several.
std::string tasks_text(pipeline_schedule s, int place, int places, int chunks, int microbatches) {
  std::string all;
  for (const pipeline_task& t : tasks_of_place(s, place, places, chunks, microbatches)) {
    const char pass = t.pass == step_phase::forward    ? 'F'
                      : t.pass == step_phase::backward ? 'B'
                                                       : 'W';
    all += (all.empty() ? "" : " ") + std::string(1, pass) + std::to_string(t.microbatch + 1);
    if (chunks > 1) all += "." + std::to_string(t.chunk * places + place);
  }
  return all;
}

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
/// Random numbers, and places of samples, which follow from no input.
struct dropped_net {
  nn::dropout drop{.rate = 0.5};
  nn::dense<6, 6> first{}, last{};
  constexpr var operator()(var x) const {
    const var place = iota(*x.b, {x.element(), x.shape()}, 0);
    return last(relu(first(drop(x) + 0.1 * place)));
  }
};
/// A weight that is read as it is in the first stage, and in the last one as a loop makes it.
struct looped_net {
  nn::dense<6, 6> first{}, between{}, last{};
  constexpr var operator()(var x) const {
    const var w = operand(first.weight).in(*x.b);
    const auto step = [&](var, var s) { return tanh(matmul(s, w)); };
    const var y = relu(between(relu(between(tanh(first(x))))));
    return last(tanh(matmul(y, for_i(2, step, w))));
  }
};
template <class Net, class Optimizer = optim::sgd>
trained_net small(Optimizer optimizer = {.momentum = 0.9}) {
  return make_net<Net>({dtype::f32, {8, 6}}, {dtype::i32, {8}}, 6, optimizer);
}

}  // namespace

TEST_CASE("a pipeline has the losses of one device, whatever its stages and microbatches") {
  for (const trained_net& t : {lenet(), gpt()}) {
    for (const char* mesh : {"pipe=1", "pipe=2", "pipe=3", "pipe=4"})
      for (int microbatches : {1, 2, 4}) check_losses(t, mesh, {.microbatches = microbatches});
    check_losses(t, "pipe=2", {.microbatches = 4, .schedule = gpipe});
    check_losses(t, "pipe=4", {.schedule = gpipe});
    for (const char* mesh : {"pipe=1", "pipe=2", "pipe=3", "pipe=4", "data=2,pipe=2"})
      for (int microbatches : {1, 2, 4})
        check_losses(t, mesh, {.microbatches = microbatches, .schedule = zero_bubble});
    check_losses(t, "data=2,pipe=2", {.microbatches = 2});
    check_losses(t, "model=2,data=2", {});
  }
}

TEST_CASE("ranks with several stages have the losses of one device") {
  for (const trained_net& t : {lenet(), gpt()}) {
    for (const char* mesh : {"pipe=1", "pipe=2", "pipe=4"})
      for (int chunks : {2, 3}) {
        check_losses(t, mesh, {.microbatches = 4, .chunks = chunks});
        check_losses(t, mesh, {.microbatches = 4, .schedule = gpipe, .chunks = chunks});
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
    for (int microbatches : {1, 2, 4})
      for (auto schedule : {one_f_one_b, zero_bubble})
        check_losses(t, mesh, {.microbatches = microbatches, .schedule = schedule});
    check_losses(t, mesh, {.microbatches = 4, .chunks = 2});
  }
}

TEST_CASE("a weight of two stages lies in one of them, and what needs all samples has them") {
  for (const char* mesh : {"pipe=2", "pipe=3"}) {
    check_losses(small<tied_net>(), mesh, {.microbatches = 2});
    check_losses(small<tied_net>(), mesh, {.microbatches = 1});
    check_losses(small<tied_net>(), mesh, {.microbatches = 4, .schedule = zero_bubble});
    check_losses(small<normed_net>(), mesh, {});
    check_losses(small<normed_net>(), mesh, {.schedule = zero_bubble});
  }
  const trained_net t = small<normed_net>();
  const pipeline_plan p = make_pipeline(t.step, parse_mesh("pipe=2"));
  CHECK(p.microbatches() == 1);
  CHECK(p.needs_whole_batch);
}

TEST_CASE("each microbatch has its own part of what its samples do not decide") {
  for (const char* mesh : {"pipe=2", "pipe=3", "data=2,pipe=2"})
    for (int microbatches : {1, 2, 4})
      for (auto schedule : {gpipe, one_f_one_b, zero_bubble})
        check_losses(small<dropped_net>(), mesh,
                     {.microbatches = microbatches, .schedule = schedule});
  check_losses(small<dropped_net>(), "pipe=2", {.microbatches = 4, .chunks = 2});
}

TEST_CASE("an update in another stage than a part of its gradient computes what it needs of it") {
  constexpr optim::sgd rule{.momentum = 0.9};
  for (const char* mesh : {"pipe=2", "pipe=3", "data=2,pipe=3"})
    for (auto schedule : {gpipe, one_f_one_b, zero_bubble}) {
      const pipeline_options o{.microbatches = 2, .schedule = schedule};
      check_losses(small<tied_net>(optim::adam{}), mesh, o);
      check_losses(small<tied_net>(optim::lamb{}), mesh, o);
      check_losses(small<tied_net>(optim::dynamic_loss_scale(rule)), mesh, o);
      check_losses(small<tied_net>(optim::clip_by_global_norm(0.05, rule)), mesh, o);
    }
  check_losses(small<tied_net>(optim::lamb{}), "pipe=2", {.chunks = 2});
}

TEST_CASE("several results of one node are no number that stages exchange") {
  for (const char* mesh : {"pipe=2", "pipe=3", "data=2,pipe=2"})
    for (auto schedule : {gpipe, one_f_one_b, zero_bubble})
      check_losses(small<looped_net>(), mesh, {.microbatches = 2, .schedule = schedule});
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

TEST_CASE("the schedules are those of GPipe, 1F1B and ZB-H1") {
  CHECK(tasks_text(gpipe, 1, 2, 1, 3) == "F1 F2 F3 B1 B2 B3");
  CHECK(tasks_text(one_f_one_b, 0, 3, 1, 4) == "F1 F2 F3 B1 F4 B2 B3 B4");
  CHECK(tasks_text(one_f_one_b, 2, 3, 1, 4) == "F1 B1 F2 B2 F3 B3 F4 B4");
  CHECK(tasks_text(one_f_one_b, 1, 2, 2, 2) == "F1.1 F2.1 F1.3 B1.3 F2.3 B2.3 B1.1 B2.1");
  // Qi et al. 2023, figure 3, with the first and the last of its four stages.
  CHECK(tasks_text(zero_bubble, 0, 4, 1, 8) ==
        "F1 F2 F3 F4 B1 W1 F5 B2 W2 F6 B3 W3 F7 B4 W4 F8 B5 W5 B6 W6 B7 W7 B8 W8");
  CHECK(tasks_text(zero_bubble, 3, 4, 1, 8) ==
        "F1 B1 F2 B2 F3 B3 F4 B4 W1 F5 B5 W2 F6 B6 W3 F7 B7 W4 F8 B8 W5 W6 W7 W8");
  const trained_net t = gpt();
  device_mesh m = parse_mesh("pipe=2");
  m.axes[0].latency = 0;
  m.axes[0].bytes_per_second = 1e15;
  const auto bubble = [&](int microbatches, pipeline_schedule s) {
    return make_pipeline(t.step, m, {.microbatches = microbatches, .schedule = s}).bubble;
  };
  // (stages - 1) / (microbatches + stages - 1) where all stages take as long, more elsewhere.
  for (auto s : {gpipe, one_f_one_b}) {
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
  std::ostringstream out;
  print_plan(out, half);
  CHECK(out.str().starts_with(
      "mesh pipe=2, mode pipeline along pipe, 1f1b, stages of a rank: 2, microbatches: 4; "));
  out.str("");
  print_plan(out, few);
  CHECK(out.str().starts_with("mesh pipe=2, mode pipeline along pipe, 1f1b, microbatches: 4; "));
}

TEST_CASE("gradients of parameters are apart in the schedule zero-bubble, and fill the bubble") {
  // How much of the bubble is left; layers of LeNet-5 are no equal stages.
  const std::pair<trained_net, double> nets[] = {{lenet(), 0.95}, {gpt(), 0.75}};
  for (const auto& [t, left] : nets) {
    device_mesh m = parse_mesh("pipe=3");
    m.axes[0].latency = 0;
    m.axes[0].bytes_per_second = 1e15;
    const pipeline_plan one = make_pipeline(t.step, m, {.microbatches = 8}),
                        two =
                            make_pipeline(t.step, m, {.microbatches = 8, .schedule = zero_bubble});
    CHECK(two.cut == one.cut);
    CHECK(two.seconds < one.seconds);
    CHECK(two.bubble < left * one.bubble);
    CHECK(one.stages[0].weights_seconds == 0);
    for (int s = 0; s < 3; ++s) {
      const pipeline_stage &a = one.stages[std::size_t(s)], &b = two.stages[std::size_t(s)];
      // The same work in two passes, of which the first stage owes nobody the one.
      CHECK(b.backward_seconds + b.weights_seconds == doctest::Approx(a.backward_seconds));
      CHECK((b.backward_seconds > 0) == (s > 0));
      CHECK(b.weights_seconds > 0);
      CHECK(b.forward_seconds == a.forward_seconds);
      CHECK(a.kept == 3 - s);
      CHECK(b.kept == 3);
      CHECK(b.weights_bytes > 0);
      CHECK(b.most_kept_bytes >= a.most_kept_bytes);
      CHECK(b.most_kept_bytes <= 3 * (b.kept_bytes + b.weights_bytes));
    }
    // What crosses to an earlier stage, and all that it follows from, is not apart.
    const graph& g = two.piece.graph;
    int apart = 0;
    for (node_id n : g.regions[0].nodes)
      for (node_id o : g.operands(n)) {
        if (two.phase[std::size_t(o)] != step_phase::weights) continue;
        ++apart;
        CHECK(two.phase[std::size_t(n)] != step_phase::backward);
        if (two.phase[std::size_t(n)] == step_phase::weights)
          CHECK(two.stage[std::size_t(n)] == two.stage[std::size_t(o)]);
      }
    CHECK(apart > 5);
    std::ostringstream out;
    print_plan(out, two);
    CHECK(out.str().starts_with(
        "mesh pipe=3, mode pipeline along pipe, zero-bubble, microbatches: 8; "));
    CHECK(out.str().find("forward  backward   weights  bytes received") != std::string::npos);
  }
}

TEST_CASE("a stage whose new state others need has its backward pass in one") {
  builder b;
  const tensor_type t{dtype::f32, {2}};
  const node_id x = b.input(t, input_role::slot, "x"), y = b.input(t, input_role::argument, "y");
  const auto sum = [&](node_id l, node_id r) { return b.emit(bound<add_op>(), {l, r}); };
  const node_id gradient = sum(x, y), updated = sum(x, gradient), reads_old = sum(x, x),
                reads_new = sum(updated, y);
  const std::array<node_id, 3> outputs{updated, reads_old, reads_new};
  const auto phases = [&](bool is_state) {
    pipeline_plan p;
    p.mesh = parse_mesh("pipe=2");
    p.piece.graph = b.g;
    p.piece.graph.outputs = {{is_state ? 0 : -1, {}}, {-1, {}}, {-1, {}}};
    p.phase.assign(b.g.nodes.size(), step_phase::backward);
    p.stage.assign(b.g.nodes.size(), 1);
    p.stage[std::size_t(reads_new)] = 0;
    for (node_id n : {x, y}) p.phase[std::size_t(n)] = step_phase::anywhere;
    parallel::detail::split_backward(p);
    list<step_phase> found;
    for (node_id n : {gradient, updated, reads_old, reads_new})
      found.push_back(p.phase[std::size_t(n)]);
    return found;
  };
  b.end(outputs);
  constexpr auto now = step_phase::backward, later = step_phase::weights;
  CHECK(phases(false) == list<step_phase>{now, now, later, later});
  CHECK(phases(true) == list<step_phase>{now, now, now, later});
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
  CHECK(fault(t.step, "pipe=2", {.schedule = zero_bubble, .chunks = 2}) ==
        "mode pipeline: in the schedule zero-bubble each rank has one stage, not 2; take one, or "
        "1f1b");
  CHECK(fault(t.step, "pipe=2", {.axis = "stage"}) ==
        "mode pipeline: the mesh pipe=2 has no axis called stage");
  CHECK(fault(small<tied_net>().step, "pipe=40", {}).starts_with("mode pipeline: 40 stages, but "));
  CHECK(fault(small<normed_net>().step, "pipe=2", {.microbatches = 2}) ==
        "mode pipeline: norm needs all samples at once, so that the batch is not divided into "
        "microbatches; take one, or another mode");
}

TEST_CASE("a pipeline is written and read: the same stages, without a search for the cut") {
  const trained_net t = gpt();
  const pipeline_options all_options[] = {{},
                                          {.microbatches = 2, .schedule = gpipe},
                                          {.microbatches = 4, .schedule = zero_bubble},
                                          {.microbatches = 4, .chunks = 2}};
  for (const char* mesh : {"pipe=2", "data=2,pipe=2"})
    for (const pipeline_options& o : all_options) {
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
  CHECK(with("/schedule", "zigzag") == "schedule zigzag: there are gpipe, 1f1b and zero-bubble");
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
