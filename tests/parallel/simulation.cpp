// The simulator, held against closed forms, against the plans' own times, and against what has been
// published of Megatron-LM and of GSPMD.
#include <doctest/doctest.h>

#include <cella/parallel/make_pipeline.hpp>
#include <cella/parallel/plan_svg.hpp>
#include <cella/parallel/timeline.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

#include "trained_net.hpp"

using namespace cella;
using namespace cella::parallel;

using namespace cella::test;

namespace {

constexpr auto gpipe = pipeline_schedule::gpipe,
               one_f_one_b = pipeline_schedule::one_forward_one_backward,
               zero_bubble = pipeline_schedule::zero_bubble;

step_item computing(double seconds) {
  return {.kind = item_kind::compute, .seconds = seconds, .label = "c"};
}
step_item moving(const device_mesh& m, int axis, move_kind kind, double bytes) {
  const move_cost c = cost_of(kind, bytes, m[axis], m.each);
  return {.kind = item_kind::move,
          .seconds = c.seconds,
          .bytes = c.bytes,
          .mesh_axis = axis,
          .label = move_name(kind)};
}
/// Stages that take 1 s forward and 2 s backward, whose messages take no time.
simulated_step equal_stages(int stages, int microbatches, pipeline_schedule s, int chunks = 1) {
  simulated_step step;
  step.mesh = parse_mesh("pipe=" + std::to_string(stages));
  step.axis = 0;
  step.schedule = s;
  step.microbatches = microbatches;
  step.chunks = chunks;
  for (int i = 0; i < stages * chunks; ++i)
    step.stages.push_back({.forward = {computing(1.0 / chunks)},
                           .backward = {computing(2.0 / chunks)},
                           .kept_bytes = 10,
                           .parameter_bytes = 100});
  return step;
}

// ---- What Megatron-LM was published to reach.

/// A GPT of Narayanan et al. 2021, table 1: texts of 2048 words out of 51,200.
struct published {
  int heads, width, layers, tensor, pipeline, devices, batch;
  double teraflops;  ///< of a device
};
/// What a device and its links are: a layer's products are done at `rate`, and what stands between
/// them is read and written at `memory`; sums go over `near` links, all else over `far` ones.
struct cluster {
  double rate, memory, near_link, far_link;
};
constexpr double words = 51200;

/// One microbatch of `texts` texts in fp16; activations are computed again, as in the papers.
simulated_step megatron(const published& p, const cluster& c, int texts, int microbatches,
                        double text, int chunks) {
  const int data = p.devices / (p.tensor * p.pipeline);
  simulated_step step;
  step.mesh = parse_mesh("data=" + std::to_string(data) + ",pipe=" + std::to_string(p.pipeline) +
                         ",model=" + std::to_string(p.tensor));
  for (int a = 0; a < 3; ++a)
    step.mesh.axes[std::size_t(a)].bytes_per_second = a == 2 ? c.near_link : c.far_link;
  step.axis = 1;
  step.microbatches = microbatches;
  step.chunks = chunks;
  const double h = p.width, tokens = texts * text, parameters = 12.0 * p.layers * h * h + words * h;
  // Of a word and layer: products; two norms, two sums with dropout, GELU, and weights of
  // attention, which are written and read five times.
  const double products = (24 * h * h + 4 * text * h) / p.tensor;
  const double traffic = 2 * (h * (10 + 8.0 / p.tensor) + 5 * p.heads * text / p.tensor);
  const step_item forward = computing(tokens * (products / c.rate + traffic / c.memory));
  const step_item sum = moving(step.mesh, 2, move_kind::all_reduce, 2 * h * tokens);
  for (int s = 0; s < p.pipeline * chunks; ++s) {
    simulated_stage one;
    for (int l = 0; l < p.layers / (p.pipeline * chunks); ++l) {
      for (int k = 0; k < 4; ++k) (k == 0 ? one.forward : one.backward).push_back(forward);
      if (p.tensor > 1)
        for (int k = 0; k < 6; ++k) (k < 2 ? one.forward : one.backward).push_back(sum);
    }
    if (s == p.pipeline * chunks - 1)
      for (int k = 0; k < 3; ++k)
        (k == 0 ? one.forward : one.backward)
            .push_back(computing(tokens * 2 * h * words / p.tensor / c.rate));
    one.forward_bytes = one.backward_bytes = 2 * h * tokens / p.tensor;  // scattered and gathered
    if (data > 1 && s < p.pipeline)
      one.update.push_back(
          moving(step.mesh, 0, move_kind::all_reduce, 2 * parameters / (p.tensor * p.pipeline)));
    step.stages.push_back(one);
  }
  return step;
}
/// With the arithmetic that the papers count.
double teraflops(const published& p, double seconds, double text) {
  const double h = p.width, l = p.layers;
  return 96 * p.batch * text * l * h * h * (1 + text / (6 * h) + words / (16 * l * h)) / seconds /
         p.devices * 1e-12;
}
/// The rate of products with which `seconds_at(rate)` is what was published.
template <class F>
double given_rate(double seconds, F seconds_at) {
  double low = 1e13, high = 1e15;
  for (int i = 0; i < 60; ++i)
    (seconds_at((low + high) / 2) > seconds ? low : high) = (low + high) / 2;
  return low;
}

// ---- What GSPMD was published to reach.

/// A language model that GSPMD (Xu et al. 2021) divides over both axes of x times y cores: weights
/// along both, activations by texts along x and by their width along y. As published with its code,
/// github.com/tensorflow/lingvo, lingvo/tasks/lm/params/synthetic_packed_input.py.
struct language_model {
  std::string_view name;
  int x, y, words, texts, layers, width, hidden, heads;
  bool gated;               ///< GELU is multiplied by another product
  double words_per_second;  ///< as published
};
/// A core of a TPU v3, half a chip: 123 TFLOP/s and 900 GB/s of a chip, whose four links have 656
/// Gbit/s each way (Jouppi et al. 2020, "A Domain-Specific Supercomputer for Training Deep Neural
/// Networks"). Rings along y go through both cores of each chip and have the links of one direction
/// of the torus for themselves, two ways; along x each core has a ring of its own.
constexpr double tpu_memory = 450e9, along_x = 82e9, along_y = 164e9;

/// A step in bf16, with weights of attention in f32. Activations are computed again, and weights
/// gathered for that are those of the backward pass.
simulated_step gspmd(const language_model& n, double rate) {
  simulated_step step;
  step.mesh = parse_mesh("x=" + std::to_string(n.x) + ",y=" + std::to_string(n.y));
  step.mesh.axes[0].bytes_per_second = along_x;
  step.mesh.axes[1].bytes_per_second = along_y;
  const double m = n.width, h = n.hidden, products = n.gated ? 3 : 2, head = 128;
  const double all = n.heads * head, weights = 4 * m * all + products * m * h;
  const double own = double(n.texts) * n.words / n.x / n.y;  // as if a core had them alone
  // Of a word and layer: two norms and two sums, GELU, and weights of attention.
  const double traffic = 2 * (10 * m + products * h) + 4 * 5.0 * n.heads * n.words;
  const step_item forward =
      computing(own * ((2 * weights + 4 * n.words * all) / rate + traffic / tpu_memory));
  const double activations = 2 * m * own;  // of a core
  const step_item gather_weights =
      moving(step.mesh, 0, move_kind::all_gather, 2 * weights / n.x / n.y);
  const step_item sum_weights = moving(step.mesh, 0, move_kind::reduce_scatter, 2 * weights / n.y);
  const step_item gather = moving(step.mesh, 1, move_kind::all_gather, activations);
  const step_item scatter = moving(step.mesh, 1, move_kind::reduce_scatter, activations * n.y);
  simulated_stage one;
  for (int l = 0; l < n.layers; ++l)
    for (int pass = 0; pass < 3; ++pass) {  // forward, again, backward
      list<step_item>& items = pass == 0 ? one.forward : one.backward;
      if (pass < 2) items.push_back(gather_weights);
      for (int k = 0; k < 2; ++k) {  // attention, and what is behind it
        items.push_back(gather);
        items.push_back(scatter);
      }
      items.push_back(forward);
      if (pass == 2) {
        items.push_back(forward);
        items.push_back(sum_weights);
      }
    }
  one.backward.push_back(computing(own * 6 * m * 32000 / rate));  // the vocabulary's
  step.stages.push_back(one);
  return step;
}

}  // namespace

TEST_CASE("collective operations take what a ring takes, for any number of ranks") {
  for (int n : {2, 3, 8, 64, 4096}) {
    simulated_step step;
    step.mesh = parse_mesh("data=" + std::to_string(n));
    step.mesh.axes[0].latency = 1e-6;
    step.mesh.axes[0].bytes_per_second = 1e9;
    step.stages.push_back({});
    step.stages[0].update = {computing(1e-3), moving(step.mesh, 0, move_kind::all_reduce, 4e6)};
    const double ring = 2.0 * (n - 1) * (1e-6 + 4e6 / n / 1e9);
    const simulation s = simulate(step);
    CHECK(s.seconds == doctest::Approx(1e-3 + ring));
    CHECK(s.exposed_seconds == doctest::Approx(ring));
    // All ranks wait for the one that is three times slower.
    const simulation slow = simulate(step, {.stragglers = {{n - 1, 3}}});
    CHECK(slow.seconds == doctest::Approx(3e-3 + ring));
    CHECK(slow.exposed_seconds == doctest::Approx(ring + 2e-3 * (n - 1) / n));
  }
}

TEST_CASE("a sum that is under way costs what is left of it") {
  simulated_step step;
  step.mesh = parse_mesh("data=2");
  step.stages.push_back({});
  const auto seconds = [&](double sum, double overlap) {
    step_item start{
        .kind = item_kind::start, .seconds = sum, .mesh_axis = 0, .ticket = 1, .overlap = overlap};
    step_item finish{.kind = item_kind::finish, .mesh_axis = 0, .ticket = 1};
    step.stages[0].update = {computing(1), start, computing(2), finish, computing(3)};
    return simulate(step).seconds;
  };
  CHECK(seconds(1.5, 1) == doctest::Approx(6));
  CHECK(seconds(2.5, 1) == doctest::Approx(6.5));
  CHECK(seconds(2.5, 0) == doctest::Approx(8.5));
  CHECK(seconds(2, 0.5) == doctest::Approx(7));
}

TEST_CASE("pipelines wait (p - 1) / (v m + p - 1) of the step, and keep what their schedule says") {
  for (int p : {1, 2, 4, 16})
    for (int m : {1, 2, 8, 64})
      for (auto s : {gpipe, one_f_one_b}) {
        const simulation one = simulate(equal_stages(p, m, s));
        CHECK(one.seconds == doctest::Approx(3.0 * (m + p - 1)));
        CHECK(one.bubble == doctest::Approx(double(p - 1) / (m + p - 1)));
        CHECK(one.bytes_on_device == 100 + 10 * (s == gpipe ? m : std::min(p, m)));
      }
  for (int p : {2, 4, 8})
    for (int v : {2, 3})
      for (int m : {p, 4 * p}) {
        const simulation one = simulate(equal_stages(p, m, one_f_one_b, v));
        CHECK(one.seconds == doctest::Approx(3.0 * m + 3.0 * (p - 1) / v));
        CHECK(one.bubble == doctest::Approx(double(p - 1) / (v * m + p - 1)));
      }
  // A stage of half the speed: two stages before it once, one behind it once, two backwards.
  const simulation slow = simulate(equal_stages(4, 64, one_f_one_b), {.stragglers = {{2, 2}}});
  CHECK(slow.seconds == doctest::Approx(2 * 3 * 64 + 2 + 1 + 4));
}

TEST_CASE("zero-bubble stages wait for (p - 1) (F + B - W), and keep what the first of 1F1B does") {
  // F, B and W: equal, as of wide layers, and others for which the paper counts.
  const std::array<double, 3> times[] = {{1, 1, 1}, {2, 2, 1}, {1, 1.5, 1}, {3, 2, 0.5}};
  for (const auto& [f, b, w] : times)
    for (int p : {1, 2, 3, 4, 8, 16})
      for (int m : {p, 2 * p, 4 * p + 1}) {
        simulated_step step = equal_stages(p, m, zero_bubble),
                       before = equal_stages(p, m, one_f_one_b);
        for (simulated_stage& s : step.stages) {
          s.forward = {computing(f)};
          s.backward = {computing(b)};
          s.weights = {computing(w)};
          s.weights_bytes = s.kept_bytes;
        }
        for (simulated_stage& s : before.stages) {
          s.forward = {computing(f)};
          s.backward = {computing(b + w)};
        }
        INFO(p << " stages, " << m << " microbatches: " << f << " " << b << " " << w);
        const simulation two = simulate(step), one = simulate(before);
        CHECK(two.seconds == doctest::Approx(m * (f + b + w) + (p - 1) * (f + b - w)));
        CHECK(one.seconds == doctest::Approx(m * (f + b + w) + (p - 1) * (f + b + w)));
        CHECK(two.bubble == doctest::Approx((p - 1) * (f + b - w) / two.seconds));
        CHECK(two.bytes_on_device == one.bytes_on_device);
      }
}

TEST_CASE("a step that cannot be is refused in a sentence") {
  CHECK_THROWS_WITH_AS(simulate(equal_stages(4, 6, one_f_one_b, 2)),
                       "simulate: with chunks, 4 stages take as many microbatches at a time, and 6 "
                       "is no multiple of that",
                       error);
  CHECK_THROWS_WITH_AS(simulate(equal_stages(4, 8, zero_bubble, 2)),
                       "simulate: in the schedule zero-bubble a stage has one chunk, not 2", error);
  simulated_step step = equal_stages(2, 4, one_f_one_b, 2);
  step.stages.resize(3);
  CHECK_THROWS_WITH_AS(simulate(step),
                       "simulate: 2 stages of 2 chunks need as many pieces of the net as both "
                       "together, not 3",
                       error);
}

TEST_CASE("a plan takes what its costs say, and sums that go on meanwhile are counted once") {
  for (const trained_net& t : {lenet(), gpt()})
    for (mode how : {mode::data, mode::zero1, mode::automatic}) {
      device_mesh m = parse_mesh("data=2");
      m.axes[0].overlap = how == mode::data ? 0.5 : 1;
      m.axes[0].measured[std::size_t(move_kind::all_reduce)] = {1e9, 1e-5};
      const parallel_plan p = plan_for(t.step, m, {.mode = how});
      const simulation s = simulate(p);
      CHECK(s.seconds == doctest::Approx(p.seconds()));
      CHECK(s.bytes_on_device == p.bytes_on_device);
      double moving_seconds = 0;
      for (const cell_cost& c : p.costs()) moving_seconds += c.move_seconds;
      CHECK(s.exposed_seconds == doctest::Approx(moving_seconds));
      CHECK(simulate(p, {.compute_factor = 2}).seconds >
            p.seconds() + 0.9 * (p.seconds() - moving_seconds));
    }
}

TEST_CASE("the search divides where the links that were measured are worth it") {
  const trained_net t = lenet();
  device_mesh m = parse_mesh("data=2");
  const auto moved = [&](double bytes_per_second) {
    for (int k = 0; k < move_kinds; ++k)
      m.axes[0].measured[std::size_t(k)] = {bytes_per_second, 1e-9};
    double bytes = 0;
    for (const cell_cost& c : plan_for(t.step, m, {.mode = mode::automatic}).costs())
      bytes += c.moved_bytes;
    return bytes;
  };
  CHECK(moved(1e4) == 0);
  CHECK(moved(1e11) > 1e4);
}

TEST_CASE("Megatron-LM on 32 to 3072 devices is predicted from the smallest net") {
  // Narayanan et al. 2021, table 1.
  const published table[] = {
      {24, 2304, 24, 1, 1, 32, 512, 137},        {32, 3072, 30, 2, 1, 64, 512, 138},
      {32, 4096, 36, 4, 1, 128, 512, 142},       {48, 6144, 40, 8, 1, 256, 1024, 135},
      {64, 8192, 48, 8, 2, 512, 1536, 138},      {80, 10240, 60, 8, 4, 1024, 1792, 140},
      {96, 12288, 80, 8, 8, 1536, 2304, 148},    {128, 16384, 96, 8, 16, 1920, 2160, 155},
      {128, 20480, 105, 8, 35, 2520, 2520, 163}, {160, 25600, 128, 8, 64, 3072, 3072, 163}};
  // An A100 of 80 GB: 2.04 TB/s; NVLink 300 GB/s and InfiniBand 25 GB/s for each device, one way.
  const auto reached = [&](const published& p, double rate) {
    const int microbatches = p.batch / (p.devices / (p.tensor * p.pipeline));
    const simulated_step s = megatron(p, {rate, 2.04e12, 300e9, 25e9}, 1, microbatches, 2048, 1);
    return teraflops(p, simulate(s).seconds, 2048);
  };
  const double rate = given_rate(-137, [&](double r) { return -reached(table[0], r); });
  for (const published& p : table) {
    const double found = reached(p, rate);
    MESSAGE(p.devices << " devices: " << p.teraflops << " TFLOP/s published, " << found);
    CHECK(std::abs(found / p.teraflops - 1) < 0.15);
  }
}

TEST_CASE("Megatron-LM on one to eight devices is predicted from one") {
  // "MegatronLM's Supercharged V1.0" (2020), table 1: milliseconds of a step with a batch of 8
  // texts of 1024 words on a DGX-2H. A V100: 0.9 TB/s; NVLink 150 GB/s one way.
  struct row {
    published net;
    double milliseconds;
  };
  const row table[] = {{{15, 1920, 24, 1, 1, 1, 8, 62.4}, 1288},
                       {{18, 2304, 30, 2, 1, 2, 8, 0}, 1242},
                       {{24, 3072, 36, 4, 1, 4, 8, 0}, 1357},
                       {{32, 4096, 42, 8, 1, 8, 8, 0}, 1508}};
  const auto seconds = [&](const published& p, double rate) {
    return simulate(megatron(p, {rate, 0.9e12, 150e9, 12e9}, 8, 1, 1024, 1)).seconds;
  };
  const double rate = given_rate(1.288, [&](double r) { return seconds(table[0].net, r); });
  CHECK(teraflops(table[0].net, 1.288, 1024) == doctest::Approx(62.4).epsilon(0.01));
  for (const row& r : table) {
    const double found = 1e3 * seconds(r.net, rate);
    MESSAGE(r.net.devices << " devices: " << r.milliseconds << " ms published, " << found);
    CHECK(std::abs(found / r.milliseconds - 1) < 0.15);
  }
}

TEST_CASE("GSPMD on 128 to 2048 cores is predicted from the fewest") {
  const language_model table[] = {
      {"DenseLm128B8x8", 8, 16, 1024, 16, 64, 8192, 65536, 128, true, 3700},
      {"DenseLm128B16x16", 16, 32, 1024, 128, 64, 8192, 65536, 128, true, 18000},
      {"DenseLm128B32x32", 32, 64, 1024, 512, 64, 8192, 65536, 128, true, 62000},
      {"DenseLm1T16x16", 16, 32, 512, 16, 128, 16384, 131072, 256, true, 1400},
      {"DenseLm12kWide41BAdam16x16", 16, 32, 2048, 256, 24, 12288, 49152, 96, false, 53800},
      {"DenseLm12kWide162BAdam16x16", 16, 32, 2048, 64, 96, 12288, 49152, 96, false, 12500},
      {"DenseLm175B32x32", 64, 32, 2048, 1024, 96, 12288, 49152, 96, false, 51530}};
  const auto reached = [](const language_model& n, double rate) {
    return n.texts * n.words / simulate(gspmd(n, rate)).seconds;
  };
  const double rate = given_rate(-3700, [&](double r) { return -reached(table[0], r); });
  CHECK(rate < 123e12 / 2);
  for (const language_model& n : table) {
    const double found = reached(n, rate);
    MESSAGE(n.name << ": " << n.words_per_second << " words a second published, " << found);
    CHECK(std::abs(found / n.words_per_second - 1) < 0.15);
  }
}

TEST_CASE("timelines are well formed, and no rank does two things at once") {
  const trained_net t = gpt();
  const pipeline_plan pipe =
      make_pipeline(t.step, parse_mesh("data=2,pipe=2"), {.microbatches = 2});
  const pipeline_plan apart =
      make_pipeline(t.step, parse_mesh("pipe=2"), {.microbatches = 2, .schedule = zero_bubble});
  const parallel_plan data = plan_for(t.step, parse_mesh("data=3"), {.mode = mode::data});
  const std::pair<simulation, std::size_t> all[] = {
      {simulate(pipe, {.drawn_ranks = 8}), 2},  // one for each stage
      {simulate(apart, {.drawn_ranks = 8}), 2},
      {simulate(data, {.stragglers = {{1, 1.5}}, .drawn_ranks = 8}), 3}};
  for (const auto& [s, ranks] : all) {
    CHECK(s.events.size() > 4);
    std::ostringstream trace, picture;
    write_chrome_trace(trace, s);
    const auto j = nlohmann::json::parse(trace.str());
    std::map<int, double> end;
    std::size_t stretches = 0;
    for (const auto& e : j.at("traceEvents")) {
      if (e.at("ph") == "M") continue;
      CHECK(e.at("ph") == "X");
      CHECK(e.at("pid") == 0);
      double& before = end[e.at("tid").get<int>()];
      CHECK(e.at("ts").get<double>() >= before - 0.01);
      before = e.at("ts").get<double>() + e.at("dur").get<double>();
      CHECK(before <= 1e6 * s.seconds + 0.01);
      ++stretches;
    }
    CHECK(stretches == s.events.size());
    CHECK(end.size() == ranks);
    write_timeline_svg(picture, s);
    CHECK(picture.str().starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
    CHECK(picture.str().ends_with("</svg>\n"));
    const bool has_weights = trace.str().find("\"cat\": \"weights\"") != std::string::npos;
    CHECK(has_weights == (&s == &all[1].first));
  }
}

TEST_CASE("the drawing of a plan has the rows of the printed one") {
  const trained_net t = lenet();
  const parallel_plan p = plan_for(t.step, parse_mesh("data=2"), {.mode = mode::automatic});
  std::ostringstream drawn, printed;
  write_plan_svg(drawn, t.step, p);
  print_plan(printed, t.step, p);
  for (const cell_cost& c : p.costs()) {
    const std::string layout = parallel::detail::cell_layout(t.step, p, c.cell);
    std::string escaped;
    for (char one : layout) escaped += one == '>' ? std::string("&gt;") : std::string(1, one);
    CHECK(drawn.str().find(">" + escaped + "</text>") != std::string::npos);
    CHECK(printed.str().find(layout) != std::string::npos);
  }
  CHECK(drawn.str().find(printed.str().substr(0, printed.str().find('\n'))) != std::string::npos);
  std::ostringstream stages;
  write_plan_svg(stages, make_pipeline(t.step, parse_mesh("pipe=2")));
  CHECK(stages.str().find(">stage 1</text>") != std::string::npos);
  CHECK(stages.str().find("weights: ") == std::string::npos);
  write_plan_svg(stages, make_pipeline(t.step, parse_mesh("pipe=2"), {.schedule = zero_bubble}));
  CHECK(stages.str().find("weights: ") != std::string::npos);
}
