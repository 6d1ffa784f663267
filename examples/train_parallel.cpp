// Trains a net on ranks that share nothing but a transport: threads of this process, or processes
// that mpirun has started. The losses are the same for every mesh and every mode.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cella/interop/file.hpp>
#include <cella/models/gpt.hpp>
#include <cella/models/lenet.hpp>
#include <cella/models/resnet.hpp>
#include <cella/models/switch_gpt.hpp>
#include <cella/parallel/divide.hpp>
#include <cella/parallel/lone_rank.hpp>
#include <cella/parallel/pipeline_json.hpp>
#include <cella/parallel/pipeline_program.hpp>
#include <cella/parallel/plan_svg.hpp>
#include <cella/parallel/rank_program.hpp>
#include <cella/parallel/run_ranks.hpp>
#include <cella/parallel/sharded_checkpoint.hpp>
#include <cella/parallel/timed_communicator.hpp>
#include <cella/parallel/timeline.hpp>
#include <cella/runtime/compiled_once.hpp>
#include <cella/train/step.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

using namespace cella;
using namespace cella::parallel;

namespace {

constexpr std::string_view text_to_learn =
    "the inner room of a temple is its cella; the cells of a net are rooms, too. what a cell "
    "computes is written once, and the compiler reads it. each rank of a mesh has a part of the "
    "samples, or a part of the weights, and what it lacks the others send. a sum over all ranks "
    "is the sum over all samples, so the losses are the same on one rank and on many. ";

/// Images of noise over a bright square, whose place is the class. One batch is the same for any
/// number of ranks, of which each takes its part.
template <int Samples, int Channels, int Size>
struct image_task {
  static constexpr tensor_type x{dtype::f32, {Samples, Channels, Size, Size}},
      y{dtype::i32, {Samples}};
  using loss = cross_entropy_loss;
  static constexpr double learning_rate = 0.02;
  static constexpr auto optimizer = optim::sgd{.momentum = 0.9};
  static void batch(std::mt19937& random, float* image, std::int32_t* label) {
    std::uniform_real_distribution<float> noise(0, 0.3f);
    for (int i = 0; i < Samples; ++i) {
      label[i] = std::int32_t(random() % 10);
      for (int k = 0; k < Channels * Size * Size; ++k) {
        const bool bright =
            k / Size % Size * 4 / Size == label[i] / 4 && k % Size * 4 / Size == label[i] % 4;
        *image++ = noise(random) + (bright ? 0.7f : 0);
      }
    }
  }
};
struct lenet_task : image_task<32, 1, 28> {
  using net = models::lenet5;
  static strategy tensor() {
    return {mode::semi_automatic,
            {{"fc1.weight", "model", 0}, {"fc1.bias", "model", 0}, {"fc2.weight", "model", 1}}};
  }
};
/// The two convolutions of a block as dense layers are: output channels of the first with their
/// norm, input channels of the second.
struct resnet_task : image_task<16, 3, 16> {
  using net = models::resnet20<10>;
  static strategy tensor() {
    return {mode::semi_automatic,
            {{"layer*.conv1.weight", "model", 0},
             {"layer*.bn1.*", "model", 0},
             {"layer*.conv2.weight", "model", 1}}};
  }
};

template <int Samples, int Places>
struct text_task {
  static constexpr int samples = Samples, places = Places;
  static constexpr tensor_type x{dtype::i32, {samples, places}}, y{dtype::i32, {samples * places}};
  static constexpr double learning_rate = 0.002;
  static constexpr auto optimizer = optim::adam{};
  /// Each rank has some of the places of each text, along the axis `sequence`, or along that of the
  /// samples; keys and values go round a ring, or are gathered.
  static strategy sequence(const device_mesh& m, attention_kind attention) {
    const bool is_own = m.find("sequence") >= 0;
    strategy s{mode::semi_automatic, {{"x", is_own ? "sequence" : "data", 1}}};
    s.attention = attention;
    if (is_own && m.find("data") >= 0) s.tensors.push_back({"x", "data", 0});
    return s;
  }
  /// Stretches of the text, which is repeated for long ones, and what follows each letter.
  static void batch(std::mt19937& random, std::int32_t* word, std::int32_t* next) {
    constexpr std::size_t letters = text_to_learn.size(), read = places + 1;
    const auto code = [](std::size_t i) {
      const char c = text_to_learn[i % letters];
      return c >= 'a' && c <= 'z' ? c - 'a' : c == ' ' ? 26 : c == '.' ? 27 : c == ',' ? 28 : 29;
    };
    for (int i = 0; i < samples; ++i) {
      const std::size_t first = random() % (letters > read ? letters - read : letters);
      for (int k = 0; k < places; ++k) {
        word[places * i + k] = code(first + std::size_t(k));
        next[places * i + k] = code(first + std::size_t(k) + 1);
      }
    }
  }
};

template <int Samples, int Places>
struct gpt_of_texts : text_task<Samples, Places> {
  using loss = cross_entropy_loss;
  /// The logits of all places, one behind the other, as the loss takes them.
  struct net {
    models::gpt<32, 64, 4, 2, Places> gpt{};
    constexpr var operator()(var words) const { return reshape(gpt(words), {-1, 32}); }
  };
  /// As Megatron-LM cuts them: the heads of attention, columns of the first dense layer, and rows
  /// of those that follow.
  static strategy tensor() {
    return {mode::semi_automatic,
            {{"*.qkv.*", "model", 0},
             {"*.attention.out.weight", "model", 1},
             {"*.up.*", "model", 0},
             {"*.down.weight", "model", 1}}};
  }
};
using gpt_task = gpt_of_texts<8, 32>;
using long_gpt_task = gpt_of_texts<1, 512>;
struct moe_task : text_task<8, 32> {
  struct net {
    models::switch_gpt<32, 32, 4, 2, places, 4> gpt{};
    constexpr nn::mixed operator()(var words) const {
      const nn::mixed y = gpt(words);
      return {reshape(y.value, {-1, 32}), y.imbalance};
    }
  };
  struct loss {
    constexpr var operator()(nn::mixed y, var next) const {
      return softmax_cross_entropy(y.value, next) + 0.01 * y.imbalance;
    }
  };
  static strategy tensor() {
    return {mode::semi_automatic,
            {{"*.qkv.*", "model", 0},
             {"*.attention.out.weight", "model", 1},
             {"*.experts.up", "model", 2},
             {"*.experts.up_bias", "model", 2},
             {"*.experts.down", "model", 1}}};
  }
  /// Each rank has some of the experts, and words go to them: along the axis `expert`, or along
  /// that of the samples.
  static strategy expert(const device_mesh& m) {
    const char* const axis = m.find("expert") >= 0 ? "expert" : "data";
    return {mode::semi_automatic,
            {{"*.experts.up", axis, 0},
             {"*.experts.up_bias", axis, 0},
             {"*.experts.down", axis, 0},
             {"*.experts.down_bias", axis, 0}}};
  }
};

struct settings {
  std::string net = "lenet", mesh = "data=2", mode = "data", json, plan, save, load, topology,
              drawing, timeline, trace, given_plan, schedule = "1f1b", precision = "f32",
              attention = "cheapest";
  int steps = 20, done = 0, microbatches = 0, chunks = 1, calibrate = 0, save_every = 0;
  unsigned seed = 1;
  bool threads = false;
  double timeout = 60;

  /// Of parameters and images.
  dtype element() const { return precision == "f64" ? dtype::f64 : dtype::f32; }
};

struct outcome {
  std::vector<double> losses, milliseconds;
  double communication_seconds{};
  double alone_seconds{};     ///< of a step without the other ranks, measured; 0: it was not
  double compute_factor = 1;  ///< that by the model of costs
};

double median(std::vector<double> all) {
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

/// What a net reads: images of the precision of its parameters, or words.
template <class Task>
tensor_type type_of_x(const settings& s) {
  return {Task::x.element == dtype::f32 ? s.element() : Task::x.element, Task::x.shape};
}

/// Batches, the same for any number of ranks.
template <class Task>
class batches {
  using number = std::conditional_t<Task::x.element == dtype::f32, float, std::int32_t>;

 public:
  explicit batches(const settings& s) : random_(s.seed), type_(type_of_x<Task>(s)) {}
  void next() {
    Task::batch(random_, x_.data(), y_.data());
    if (type_.element == dtype::f64) wide_.assign(x_.begin(), x_.end());
  }
  template <class Step>
  void give(Step& step) {
    const auto bytes = [](auto& v) { return reinterpret_cast<std::byte*>(v.data()); };
    step.set(step.find("x"), {wide_.empty() ? bytes(x_) : bytes(wide_), type_});
    step.set(step.find("y"), {bytes(y_), Task::y});
  }

 private:
  std::mt19937 random_;
  tensor_type type_;
  std::vector<number> x_ = std::vector<number>(std::size_t(Task::x.size()));
  std::vector<double> wide_;
  std::vector<std::int32_t> y_ = std::vector<std::int32_t>(std::size_t(Task::y.size()));
};

template <class Step>
double milliseconds_of(Step& step) {
  const auto begin = std::chrono::steady_clock::now();
  step();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

template <class Plan>
using program_of =
    std::conditional_t<std::is_same_v<Plan, pipeline_plan>, pipeline_program, rank_program>;

/// Measures what this rank computes in a step, without the others: by what factor the model of
/// costs is wrong there. All ranks do so at the same time, as they train.
template <class Task, class Plan>
void calibrate(const graph& g, const Plan& p, const settings& s, int rank, outcome& o) {
  const communicator alone = lone_rank(p.mesh, rank);
  program_of<Plan> step(g, p, rank, alone, s.element());
  typename Task::net net;
  step.load(parameter_store(net, s.seed, s.element()));
  step.scalar("learning_rate", 0);
  step.scalar("step", 1);
  batches<Task> data(s);
  data.next();
  data.give(step);
  std::vector<double> milliseconds;
  for (int k = 0; k < s.calibrate; ++k) milliseconds.push_back(milliseconds_of(step));
  o.alone_seconds = 1e-3 * median(milliseconds);
  o.compute_factor = o.alone_seconds / computing_seconds(step_of(p), rank);
}

/// `net.json` -> `net-20.json`
std::string numbered(const std::string& path, int steps) {
  std::filesystem::path p(path);
  p.replace_filename(p.stem().string() + "-" + std::to_string(steps) + p.extension().string());
  return p.string();
}

/// What one rank does.
template <class Task, class Plan>
outcome train(const graph& g, const Plan& p, const settings& s, int rank, const communicator& c) {
  outcome o;
  if (s.calibrate) calibrate<Task>(g, p, s, rank, o);
  const timed_communicator timed(c);
  program_of<Plan> step(g, p, rank, timed.get(), s.element());
  typename Task::net net;
  if (s.load.empty())
    step.load(parameter_store(net, s.seed, s.element()));
  else
    load_shards(step, s.load);
  step.scalar("learning_rate", Task::learning_rate);
  batches<Task> data(s);
  for (int k = 0; k < s.done + s.steps; ++k) {
    data.next();
    if (k < s.done) continue;  // the same batches in the same order, wherever training goes on
    data.give(step);
    step.scalar("step", k + 1);
    o.milliseconds.push_back(milliseconds_of(step));
    o.losses.push_back(read_element(step.result(0), 0));
    if (s.save_every && (k + 1) % s.save_every == 0) save_shards(step, numbered(s.save, k + 1));
  }
  o.communication_seconds = timed.seconds();
  if (!s.save.empty()) save_shards(step, s.save);
  return o;
}

attention_kind attention_called(const std::string& name) {
  return name == "ring"       ? attention_kind::ring
         : name == "gathered" ? attention_kind::gathered
                              : attention_kind::cheapest;
}

template <class Task>
strategy strategy_of(const settings& s, const device_mesh& m) {
  const std::string& name = s.mode;
  if (name == "tensor") return Task::tensor();
  if (name == "expert") {
    if constexpr (requires { Task::expert(m); })
      return Task::expert(m);
    else
      throw error("mode expert: this net has no experts; take --net moe");
  }
  if (name == "sequence") {
    if constexpr (requires { Task::sequence(m, attention_kind::ring); })
      return Task::sequence(m, attention_called(s.attention));
    else
      throw error(
          "mode sequence: the samples of this net are no sequences; take --net gpt, long_gpt or "
          "moe");
  }
  for (mode one :
       {mode::serial, mode::data, mode::zero1, mode::zero2, mode::zero3, mode::automatic})
    if (name == mode_name(one)) return {.mode = one};
  throw error("mode " + name +
              ": there are serial, data, zero1, zero2, zero3, tensor, sequence, expert, "
              "pipeline and automatic");
}

void write(const std::string& path, const std::string& what) {
  if (!path.empty() && !(std::ofstream(path) << what))
    throw file_error("cannot write \"" + path + "\"");
}
template <class F>
std::string written(F f) {
  std::ostringstream out;
  f(out);
  return out.str();
}

void report(const settings& s, const simulation& predicted, const outcome& o) {
  write(s.timeline, written([&](std::ostream& out) { write_timeline_svg(out, predicted); }));
  write(s.trace, written([&](std::ostream& out) { write_chrome_trace(out, predicted); }));
  nlohmann::ordered_json j{{"losses", o.losses},
                           {"median_ms", median(o.milliseconds)},
                           {"predicted_ms", 1e3 * predicted.seconds},
                           {"exposed_communication_ms", 1e3 * o.communication_seconds / s.steps},
                           {"predicted_exposed_ms", 1e3 * predicted.exposed_seconds},
                           {"bytes_on_device", predicted.bytes_on_device}};
  if (s.calibrate) j["alone_ms"] = 1e3 * o.alone_seconds;
  std::cout << "loss " << o.losses.front() << " -> " << o.losses.back() << ", "
            << median(o.milliseconds) << " ms a step, predicted " << 1e3 * predicted.seconds
            << "\n";
  write(s.json, j.dump(1) + "\n");
}

/// Prints the plan and what came of it.
template <class Plan>
void say(const settings& s, const graph& g, const Plan& p, const outcome& o) {
  if constexpr (std::is_same_v<Plan, pipeline_plan>) {
    print_plan(std::cout, p);
    write(s.drawing, written([&](std::ostream& out) { write_plan_svg(out, p); }));
  } else {
    print_plan(std::cout, g, p);
    write(s.drawing, written([&](std::ostream& out) { write_plan_svg(out, g, p); }));
  }
  write(s.plan, s.plan.empty() ? std::string() : plan_to_json(g, p));
  report(s, simulate(p, {.compute_factor = o.compute_factor, .drawn_ranks = 64}), o);
}

template <class Task, class Plan>
void train_on_ranks(const graph& g, const Plan& p, const settings& s) {
  const auto rank = [&](int r, const communicator& c) {
    const outcome o = train<Task>(g, p, s, r, c);
    if (r == 0) say(s, g, p, o);
  };
  run_ranks(p.mesh, s.threads, rank, s.timeout);
}

/// The stages of a pipeline have whole microbatches; samples are divided along the axis `data`
/// only.
template <class Task>
void run_pipeline(const graph& g, const device_mesh& m, const settings& s) {
  const graph divided = m.find("data") >= 0 ? share_statistics(g) : g;
  train_on_ranks<Task>(divided,
                       make_pipeline(divided, m,
                                     {.microbatches = s.microbatches,
                                      .schedule = schedule_called(s.schedule),
                                      .chunks = s.chunks}),
                       s);
}

template <class Task>
void run_given(const graph& g, const device_mesh& m, const settings& s) {
  if (s.mode == "pipeline")
    throw error("mode pipeline finds its stages at once; --given-plan is for the others");
  const std::vector<std::byte> file = interop::read_file(s.given_plan, 1 << 30);
  const std::string_view json(reinterpret_cast<const char*>(file.data()), file.size());
  const divided_graph d = divided_from_json(g, m, strategy_of<Task>(s, m), json);
  train_on_ranks<Task>(d.graph, d.plan, s);
}

template <class Task>
void run(const settings& s) {
  training_step<typename Task::net, typename Task::loss,
                std::remove_const_t<decltype(Task::optimizer)>>
      step{{}, {}, Task::optimizer};
  const std::array types{type_of_x<Task>(s), Task::y};
  device_mesh m = parse_mesh(s.mesh);
  if (!s.topology.empty()) m = with_topology(m, load_topology(s.topology));
  const graph g =
      compiled_once::optimize(trace(step, types, {.training = true, .precision = s.element()}));
  if (!s.given_plan.empty()) return run_given<Task>(g, m, s);
  if (s.mode == "pipeline") return run_pipeline<Task>(g, m, s);
  const divided_graph d = divide(g, m, strategy_of<Task>(s, m));
  train_on_ranks<Task>(d.graph, d.plan, s);
}

}  // namespace

int main(int argc, char** argv) {
  settings s;
  CLI::App app("Trains a net on the ranks of a mesh.");
  app.add_option("--net", s.net, "lenet, resnet20, gpt, long_gpt or moe")->capture_default_str();
  app.add_option("--mesh", s.mesh, "axes and sizes, such as data=2,model=2")->capture_default_str();
  app.add_option(
         "--mode", s.mode,
         "serial, data, zero1, zero2, zero3, tensor, sequence, expert, pipeline or automatic")
      ->capture_default_str();
  app.add_option("--attention", s.attention,
                 "in mode sequence: ring, gathered (keys and values), or cheapest by the model")
      ->check(CLI::IsMember({"cheapest", "gathered", "ring"}))
      ->capture_default_str();
  app.add_option("--steps", s.steps)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--seed", s.seed)->capture_default_str();
  app.add_option("--microbatches", s.microbatches, "of a pipeline; 0: two for each stage at most")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--schedule", s.schedule, "of a pipeline: gpipe, 1f1b or zero-bubble")
      ->check(CLI::IsMember({"gpipe", "1f1b", "zero-bubble"}))
      ->capture_default_str();
  app.add_option("--chunks", s.chunks, "of a pipeline, how many stages each rank has")
      ->capture_default_str();
  app.add_option("--precision", s.precision, "of parameters: f32 or f64")
      ->check(CLI::IsMember({"f32", "f64"}))
      ->capture_default_str();
  app.add_option("--json", s.json, "file for losses and times");
  app.add_option("--plan", s.plan, "file for the plan");
  app.add_option("--drawing", s.drawing, "file for the plan as SVG");
  app.add_option("--timeline", s.timeline, "file for the predicted step as SVG");
  app.add_option("--trace", s.trace, "file for the predicted step as Chrome's trace");
  app.add_option("--topology", s.topology, "what cella-measure-mesh has written of the machine");
  app.add_option("--given-plan", s.given_plan,
                 "what --plan has written for the same net, mesh and mode: nothing is searched")
      ->excludes("--topology");
  app.add_option("--calibrate", s.calibrate,
                 "steps by which a rank is measured alone first, for the prediction")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--save", s.save, "index of the checkpoint that is written at the end");
  app.add_option("--save-every", s.save_every,
                 "steps after which another one is written, with their number in its name")
      ->check(CLI::NonNegativeNumber)
      ->needs("--save");
  app.add_option("--load", s.load, "index of the checkpoint that training goes on from");
  app.add_option("--done", s.done, "steps that the checkpoint has behind it")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--timeout", s.timeout, "seconds that ranks wait for one that does not come")
      ->capture_default_str();
  app.add_flag("--threads-as-ranks", s.threads, "ranks are threads of this process, not of MPI");
  CLI11_PARSE(app, argc, argv);
  try {
    if (s.net == "lenet")
      run<lenet_task>(s);
    else if (s.net == "gpt")
      run<gpt_task>(s);
    else if (s.net == "long_gpt")
      run<long_gpt_task>(s);
    else if (s.net == "resnet20")
      run<resnet_task>(s);
    else if (s.net == "moe")
      run<moe_task>(s);
    else
      throw error("net " + s.net + ": there are lenet, resnet20, gpt, long_gpt and moe");
  } catch (const std::exception& e) {
    std::cerr << "train_parallel: " << e.what() << "\n";
    return 1;
  }
}
