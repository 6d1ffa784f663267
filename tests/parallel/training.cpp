// Training steps on ranks that share nothing: the same losses as on one device, in every mode.
#include <doctest/doctest.h>

#include <cella/optim/kfac.hpp>
#include <cella/parallel/divide.hpp>
#include <cella/parallel/plan_json.hpp>
#include <cella/parallel/plan_text.hpp>
#include <cella/parallel/rank_program.hpp>
#include <cella/parallel/thread_ranks.hpp>
#include <sstream>

#include "trained_on_ranks.hpp"

using namespace cella;
using namespace cella::test;

using namespace cella::parallel;

namespace {

/// Dense layers as Megatron-LM cuts them: columns of the first, rows of the second.
const strategy lenet_tensor{
    mode::semi_automatic,
    {{"fc1.weight", "model", 0}, {"fc1.bias", "model", 0}, {"fc2.weight", "model", 1}}};
const strategy gpt_tensor{
    mode::semi_automatic,
    {{"*.up.weight", "model", 0}, {"*.up.bias", "model", 0}, {"*.down.weight", "model", 1}}};

/// Attention is cut by heads, too.
const strategy gpt_heads{mode::semi_automatic,
                         {{"*.qkv.*", "model", 0},
                          {"*.attention.out.weight", "model", 1},
                          {"*.up.*", "model", 0},
                          {"*.down.weight", "model", 1}}};

void check_losses(const trained_net& t, const strategy& tensor) {
  const auto expected = losses_on_one_device(t, 4);
  CHECK(expected[3] < expected[0]);
  for (const char* line :
       {"data=1", "data=2", "data=4", "data=3", "data=2,model=2", "data=1,model=2"}) {
    const device_mesh m = parse_mesh(line);
    std::vector<strategy> all{
        {.mode = mode::serial},   {.mode = mode::data},  {.mode = mode::data, .bucket_bytes = 0},
        {.mode = mode::zero1},    {.mode = mode::zero2}, {.mode = mode::zero3},
        {.mode = mode::automatic}};
    if (m.find("model") >= 0) all.push_back(tensor);
    for (const strategy& s : all) {
      INFO(line << " " << mode_name(s.mode));
      const parallel_plan p = plan_for(t.step, m, s);
      const auto found = losses_on_ranks(t, p, 4);
      for (std::size_t k = 0; k < expected.size(); ++k)
        CHECK(found[k] == doctest::Approx(expected[k]).epsilon(1e-5));
      // The plan can be kept and is the same then.
      const parallel_plan q = plan_from_json(t.step, plan_to_json(t.step, p));
      CHECK(q.choices == p.choices);
      CHECK(q.seconds() == doctest::Approx(p.seconds()));
    }
  }
}
std::string fault(const graph& g, const char* line, const strategy& s,
                  const search_options& options = {}) {
  try {
    plan_for(g, parse_mesh(line), s, options);
  } catch (const model_error& e) { return e.what(); }
  return "none";
}

}  // namespace

TEST_CASE("LeNet-5 has the same losses on ranks as on one device, in every mode") {
  check_losses(lenet(), lenet_tensor);
}
TEST_CASE("a small GPT has the same losses on ranks as on one device, in every mode") {
  check_losses(gpt(), gpt_tensor);
}

TEST_CASE("K-FAC's factors are of the samples of all ranks") {
  struct net {
    nn::conv2d<1, 3, 3> first{.stride = 2, .padding = 1};
    nn::dense<48, 12> second{};
    nn::dense<12, 10> last{};
    constexpr var operator()(var x) const {
      return last(relu(second(reshape(relu(first(x)), {-1, 48}))));
    }
  };
  check_losses(
      make_net<net>({dtype::f32, {16, 1, 8, 8}}, {dtype::i32, {16}}, 10,
                    optim::kfac{.damping = 0.1}),
      {mode::semi_automatic, {{"second.weight", "model", 0}, {"second.bias", "model", 0}}});
}

TEST_CASE("attention is cut by heads, where that is asked for and where it is cheapest") {
  const trained_net t = gpt();
  const auto expected = losses_on_one_device(t, 4);
  for (const char* line : {"model=2", "model=4", "data=2,model=2", "model=3"}) {
    for (const strategy& s : {gpt_heads, strategy{.mode = mode::automatic}}) {
      INFO(line << " " << mode_name(s.mode));
      const divided_graph d = divide(t.step, parse_mesh(line), s);
      const auto found = losses_on_ranks(t, d, 4);
      for (std::size_t k = 0; k < expected.size(); ++k)
        CHECK(found[k] == doctest::Approx(expected[k]).epsilon(1e-5));
    }
  }
  // As Megatron-LM does it: of activations four sums for each layer, two forward, two backward; and
  // each rank has its heads of all three weights.
  for (const char* line : {"model=2", "model=4"}) {
    const divided_graph d = divide(t.step, parse_mesh(line), gpt_heads);
    const graph& rank = d.plan.rank.graph;
    int sums = 0;
    for (node_id n : rank.regions[0].nodes) {
      const std::string_view op = rank.nodes[std::size_t(n)].op->name;
      sums += op == "all_reduce" && rank.type(n).rank() == 3;
      CHECK(op != "all_gather");
      CHECK(op != "all_to_all");
    }
    // The last one is in a bucket.
    CHECK(sums == 4 * 2 - 1);
    double part = 0, whole = 0;
    for (std::size_t i = 0; i < d.graph.inputs.size(); ++i) {
      const tensor_type type = d.graph.type(d.graph.input(int(i)));
      if (d.graph.view(d.graph.inputs[i].name).find("qkv.weight") == std::string_view::npos)
        continue;
      whole += double(type.bytes());
      part += double(parallel::part_of(type, d.plan.rank.inputs[i], d.plan.mesh).bytes());
    }
    CHECK(part * d.plan.mesh.ranks() == whole);
  }
  const divided_graph found = divide(t.step, parse_mesh("model=2"), {.mode = mode::automatic});
  CHECK(found.graph.inputs.size() > t.step.inputs.size());
}

TEST_CASE("parameters that are taken apart compute the same") {
  const trained_net t = gpt();
  const divided_graph d{unstack_parameters(t.step), {}};
  CHECK(d.graph.inputs.size() == t.step.inputs.size() + 2 * 2 * 3 * 2);
  divided_graph whole = d;
  whole.plan = plan_for(d.graph, parse_mesh("data=1"), {.mode = mode::serial});
  const auto expected = losses_on_one_device(t, 4), found = losses_on_ranks(t, whole, 4);
  for (std::size_t k = 0; k < 4; ++k) CHECK(found[k] == doctest::Approx(expected[k]).epsilon(1e-5));
  const trained_net images = lenet();
  CHECK(unstack_parameters(images.step).inputs.size() == images.step.inputs.size());
  CHECK(block_of("qkv.weight#2/3").whole == "qkv.weight");
  CHECK(block_of("a#b").count == 1);
}

TEST_CASE("any assignment computes the same") {
  std::mt19937 random(19);
  const device_mesh m = parse_mesh("a=2,b=2");
  for (const trained_net& t : {lenet(), gpt()}) {
    const auto expected = losses_on_one_device(t, 2);
    for (int i = 0; i < 6; ++i) {
      parallel_plan p{m, {}, replicate(t.step), i % 2 ? 1000 : 0, {}};
      for (node_id n : t.step.regions[0].nodes) {
        if (t.step.nodes[std::size_t(n)].op == &info_of<constant_op>) continue;
        const auto all = choices_of(t.step, n, m, ~0u);
        p.choices[std::size_t(n)] = all[random() % all.size()];
      }
      p.rank = partition(t.step, m, p.choices);
      REQUIRE(p.rank.fault.empty());
      const auto found = losses_on_ranks(t, p, 2);
      for (std::size_t k = 0; k < expected.size(); ++k)
        CHECK(found[k] == doctest::Approx(expected[k]).epsilon(1e-5));
    }
  }
}

TEST_CASE("data parallel moves each gradient once round, and ZeRO stage 1 divides the momenta") {
  const trained_net t = lenet();
  const parallel_plan data = plan_for(t.step, parse_mesh("data=2"), {.mode = mode::data});
  double moved = 0;
  for (const cell_cost& c : data.costs()) moved += c.moved_bytes;
  // 2 (n - 1) / n of 61,706 gradients; the loss; half of the predictions.
  CHECK(moved == 4 * 61'706 + 4 + 4 * 80);
  const auto count = [](const parallel_plan& p, std::string_view op) {
    int n = 0;
    for (node_id i : p.rank.graph.regions[0].nodes)
      n += p.rank.graph.nodes[std::size_t(i)].op->name == op;
    return n;
  };
  // Ten gradients are one message; smaller buckets are on their way earlier.
  CHECK(count(data, "start_all_reduce") == 1);
  CHECK(count(data, "all_reduce") == 1);
  const parallel_plan small =
      plan_for(t.step, parse_mesh("data=2"), {.mode = mode::data, .bucket_bytes = 40'000});
  CHECK(count(small, "start_all_reduce") == 3);
  CHECK(count(small, "finish_all_reduce") == 3);
  const parallel_plan zero =
      plan_for(t.step, parse_mesh("data=2"), {.mode = mode::zero1, .whole_bytes = 0});
  std::int64_t whole = 0, part = 0;
  for (std::size_t i = 0; i < t.step.inputs.size(); ++i) {
    if (t.step.inputs[i].role != input_role::slot) continue;
    const tensor_type slot = t.step.type(t.step.input(int(i)));
    whole += slot.bytes();
    part += parallel::part_of(slot, zero.rank.inputs[i], zero.mesh).bytes();
  }
  CHECK(whole == 4 * 61'706);
  CHECK(2 * part == whole);
}

TEST_CASE("ZeRO stage 2 divides gradients, and stage 3 the parameters of which cells need one") {
  const trained_net t = gpt();
  const auto collectives = [&](const parallel_plan& p, std::string_view op) {
    std::vector<std::int64_t> bytes;
    const graph& g = p.rank.graph;
    for (node_id n : g.regions[0].nodes)
      if (g.nodes[std::size_t(n)].op->name == op) bytes.push_back(g.type(n).bytes());
    return bytes;
  };
  const auto part = [&](const parallel_plan& p, input_role role) {
    double whole = 0, own = 0;
    for (std::size_t i = 0; i < t.step.inputs.size(); ++i) {
      if (t.step.inputs[i].role != role) continue;
      const tensor_type type = t.step.type(t.step.input(int(i)));
      whole += double(type.bytes());
      own += double(parallel::part_of(type, p.rank.inputs[i], p.mesh).bytes());
    }
    return own / whole;
  };
  const auto plan = [&](mode how, std::int64_t whole_bytes) {
    return plan_for(t.step, parse_mesh("data=4"), {.mode = how, .whole_bytes = whole_bytes});
  };
  const parallel_plan two = plan(mode::zero2, 0), three = plan(mode::zero3, 0);
  CHECK(part(two, input_role::parameter) == 1);
  CHECK(part(two, input_role::slot) == 0.25);
  CHECK(part(three, input_role::parameter) == 0.25);
  CHECK(part(three, input_role::slot) == 0.25);
  // No gradient is summed up as a whole: what is reduced is the loss.
  for (const parallel_plan* p : {&two, &three})
    for (std::int64_t bytes : collectives(*p, "all_reduce")) CHECK(bytes == 4);
  // The four large weights are gathered forward and backward; the predictions have the same size.
  int weights = 0;
  for (std::int64_t bytes : collectives(three, "all_gather")) weights += bytes == 4 * 128 * 32;
  CHECK(weights == 2 * 4 + 1);
  // Biases and norms are not worth a message: their gradients are summed up in one.
  const parallel_plan large = plan(mode::zero3, 4096);
  for (std::size_t i = 0; i < t.step.inputs.size(); ++i) {
    const input_role role = t.step.inputs[i].role;
    const std::int64_t bytes = t.step.type(t.step.input(int(i))).bytes();
    if (role == input_role::parameter || role == input_role::slot)
      CHECK((large.rank.inputs[i][0] >= 0) == (bytes >= 4096));
  }
  CHECK(part(large, input_role::parameter) < 0.3);
  CHECK(collectives(large, "start_all_reduce").size() == 1);
  for (std::int64_t bytes : collectives(large, "reduce_scatter")) CHECK(bytes >= 4096 / 4);
  int narrow = 0;
  for (std::int64_t bytes : collectives(large, "all_gather")) narrow += bytes < 4096;
  CHECK(narrow == 0);
}

TEST_CASE("parameters are gathered from their parts") {
  const trained_net t = lenet();
  models::lenet5 net;
  const parameter_store expected(net, 3);
  const parallel_plan p = plan_for(t.step, parse_mesh("data=2,model=2"), lenet_tensor);
  thread_ranks ranks(p.mesh);
  ranks.run([&](int r, const communicator& c) {
    rank_program run(t.step, p, r, c);
    run.load(expected);
    CHECK(run.part(run.find("fc1.weight")).type.shape == shape{60, 400});
    models::lenet5 other;
    parameter_store found(other, 4);
    run.save(found);
    CHECK(same_numbers(expected, found));
  });
}

TEST_CASE("an operation is computed in the parts that are stated") {
  const trained_net t = lenet();
  const strategy s{mode::automatic, {}, {{"fc1", "matmul", {{4, 1}, {1, 1}}}}};
  const parallel_plan p = plan_for(t.step, parse_mesh("data=4"), s);
  for (node_id n : t.step.regions[0].nodes) {
    const node& x = t.step.nodes[std::size_t(n)];
    if (x.op->name != "matmul" || t.step.view(x.cell) != "fc1") continue;
    const node_part part = cut_node(t.step, n, p.choices[std::size_t(n)].cut, p.mesh);
    CHECK(part.operands[0][0] == 0);
    CHECK(part.operands[1][0] == replicated);
    break;
  }
}

TEST_CASE("the plan is printed with a row for each cell") {
  const trained_net t = lenet();
  const parallel_plan p = plan_for(t.step, parse_mesh("data=2,model=2"), lenet_tensor);
  std::ostringstream out;
  print_plan(out, t.step, p);
  const std::string s = out.str();
  CHECK(s.starts_with("mesh data=2,model=2, mode tensor: "));
  for (const char* row : {"weight [120/model,400]  bias [120/model]  -> [16/data,120/model]",
                          "weight [84,120/model]  bias [84]", "conv1 ", "(step)", "sum "})
    CHECK(s.find(row) != s.npos);
}

TEST_CASE("what a strategy or a plan cannot be is one sentence") {
  const trained_net t = lenet();
  CHECK(fault(t.step, "data=32", {.mode = mode::data}) ==
        "mode data: the argument x f32[16,1,28,28] is less than a sample for each of the 32 ranks "
        "of the axis data; take a larger batch or fewer ranks");
  CHECK(fault(t.step, "model=2", {.mode = mode::zero1}) ==
        "mode zero1: the mesh model=2 has no axis called data, along which samples are divided");
  CHECK(fault(t.step, "data=2", lenet_tensor) ==
        "strategy: fc1.weight is to be cut along the axis model, which the mesh data=2 does not "
        "have");
  CHECK(fault(t.step, "data=16", {mode::automatic, {{"fc3.weight", "data", 0}}}) ==
        "strategy: fc3.weight [10,84] cannot be cut into 16 parts along dimension 0 (mesh axis "
        "data)");
  CHECK(fault(t.step, "data=4", {mode::automatic, {{"fc9.weight", "data", 0}}}) ==
        "strategy: there is no parameter, state or argument fc9.weight");
  CHECK(fault(t.step, "data=4", {mode::automatic, {}, {{"fc9", "matmul", {{4, 1}, {1, 1}}}}}) ==
        "strategy: no cell fc9 has an operation matmul");
  CHECK(fault(t.step, "data=4", {mode::automatic, {}, {{"fc3", "matmul", {{1, 1}, {3, 1}}}}}) ==
        "strategy: matmul of fc3 cannot be computed in parts {[1,1],[3,1]} of its operands "
        "f32[16,84] f32[10,84] on the mesh data=4");
  const trained_net words = gpt();
  CHECK_THROWS_WITH_AS(divide(words.step, parse_mesh("model=64"), gpt_heads),
                       "strategy: net.blocks.0.attention.qkv.weight#0/3 [32,32] cannot be cut into "
                       "64 parts along dimension 0 (mesh axis model)",
                       model_error);
  const std::string memory =
      fault(t.step, "data=2", {.mode = mode::automatic}, {.memory_bytes = 1000});
  CHECK(memory.starts_with("on the mesh data=2 a rank needs "));
  CHECK(memory.ends_with(
      " bytes at least, but has 1000; take more ranks, a smaller batch, or mode zero3"));
  const parallel_plan roomy = plan_for(t.step, parse_mesh("data=2"), {.mode = mode::automatic});
  const double limit = 0.95 * roomy.bytes_on_device;
  const parallel_plan tight =
      plan_for(t.step, parse_mesh("data=2"), {.mode = mode::automatic}, {.memory_bytes = limit});
  CHECK(tight.bytes_on_device <= limit);

  std::string json = plan_to_json(t.step, roomy);
  const auto refusal = [&](const graph& g, const std::string& text) {
    try {
      plan_from_json(g, text);
    } catch (const error& e) { return std::string(e.what()); }
    return std::string("none");
  };
  CHECK(refusal(t.step, "{").starts_with("this is no plan: "));
  CHECK(refusal(gpt().step, json).starts_with("this plan is of another graph: "));
  const std::size_t at = json.find("\"size\": 2");
  json.replace(at, 9, "\"size\": 0");
  CHECK(refusal(t.step, json) == "this mesh has an axis data of 0 ranks");
}
