// LeNet-5 from data to a fine-tuned network: trained, evaluated, saved, loaded into a new model,
// asked for a few digits, and fine-tuned to digits of another style.
//
//   lenet5                 trains on generated digits, which need no file
//   lenet5 --data DIR      trains on MNIST: the four IDX files in DIR, with or without .gz
//   lenet5 --resume FILE   goes on with what Ctrl-C saved
//   lenet5 --help          shows the other options
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cella/data/digits.hpp>
#include <cella/data/mnist.hpp>
#include <cella/data/terminal_image.hpp>
#include <cella/interop/file.hpp>
#include <cella/nn/layers.hpp>
#include <cella/ops/activation.hpp>
#include <cella/ops/pooling.hpp>
#include <cella/train/callbacks.hpp>
#include <cella/train/model.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

using namespace cella;

/// LeCun et al. 1998, with ReLU and max pooling: digits [N,1,28,28] -> logits [N,10].
struct LeNet5 {
  nn::conv2d<1, 6, 5> conv1{.padding = 2};
  nn::conv2d<6, 16, 5> conv2;
  nn::dense<400, 120> fc1;
  nn::dense<120, 84> fc2;
  nn::dense<84, 10> fc3;

  constexpr var operator()(var x) const {
    x = max_pool(relu(conv1(x)), 2);
    x = max_pool(relu(conv2(x)), 2);
    x = relu(fc2(relu(fc1(flatten(x)))));
    return fc3(x);
  }
};

template <int Batch>
using lenet = model<LeNet5, image<1, 28, 28>, cross_entropy_loss{}, optim::sgd{.momentum = 0.9},
                    model_options{.batch = Batch}>;

namespace {

/// The options of the command line.
struct settings {
  std::string data;
  bool eager = false;
  std::optional<std::int64_t> epochs;
  std::optional<std::int64_t> samples;
  int batch = 32;
  std::uint64_t seed = 1;
  std::optional<double> learning_rate;
  std::string save = "lenet5.safetensors";
  bool save_given = false;
  std::string load;
  std::string resume;
  std::optional<int> threads;
  std::string json;
};

using digit_set = data::tensor_dataset<float, std::int32_t>;

struct digit_parts {
  digit_set train;
  digit_set test;
};

// ---- what training does not get over

/// A callback of fit, which by itself stops at numbers that are not finite. Guessing costs
/// ln 10 = 2.3, and what is far above it does not come back either.
struct watch {
  void on_batch_end(const train::fit_state& s) const {
    if (s.loss > 1000)
      throw train::divergence("the loss is hopeless", s.step, s.loss, s.learning_rate);
  }
};

// ---- text

std::string grouped(std::int64_t n) {
  std::string s = std::to_string(n);
  for (std::size_t i = s.size(); i > 3; i -= 3) s.insert(i - 3, ",");
  return s;
}
std::string percent(double fraction) {
  char s[16];
  std::snprintf(s, sizeof s, "%.2f %%", 100 * fraction);
  return s;
}
std::string seconds(double t) {
  char s[32];
  std::snprintf(s, sizeof s, "%.1f s", t);
  return s;
}
const char* name_of(execution mode) { return mode == execution::eager ? "eager" : "graph"; }

// ---- data

/// Batches as training sees them: in another order in every epoch, and each digit a little
/// different. A thread makes them ahead. `paper` is the grey outside of the image, from 0 to 1.
auto augmented(const digit_set& digits, std::int64_t batch, std::uint64_t seed, float paper = 0) {
  return digits.shuffle(seed)
      .map<0>(data::random_affine{.degrees = 10,
                                  .scale = 0.1f,
                                  .shear = 0.15f,
                                  .shift = 1.5f,
                                  .fill = data::mnist_scaling.of(paper)},
              seed)
      .batch(batch)
      .prefetch(4);
}

digit_parts read_digits(const settings& s, std::int64_t train_count) {
  if (s.data.empty()) {
    return {data::digits(train_count, 1).to_memory(), data::digits(4000, 2).to_memory()};
  }
  const auto train = data::read_mnist(s.data, data::part::train);
  const auto test = data::read_mnist(s.data, data::part::test);
  const auto row = train.shapes()[0];
  if (row != shape{1, 28, 28} || test.shapes()[0] != row) {
    throw file_error(text("the images in ") << interop::in_quotes(s.data) << " are " << row
                                            << ", but LeNet-5 takes [1,28,28]; give MNIST's files");
  }
  if (train.size() == 0 || test.size() == 0) {
    throw file_error(interop::in_quotes(s.data, 4096) + " holds " + std::to_string(train.size()) +
                     " digits for training and " + std::to_string(test.size()) +
                     " for testing; both are needed: fetch the files again");
  }
  if (train.size() <= train_count) return {train, test};
  return {train.shuffle(s.seed, data::reshuffle::never).take(train_count).to_memory(), test};
}

/// Dark digits on white paper, which a net that was trained on white on black hardly recognizes.
digit_set dark_digits(std::int64_t count, std::uint64_t seed) {
  const auto invert = [](data::image_view image) {
    for (float& x : image) x = data::mnist_scaling.of(1 - x);
  };
  return data::digits(count, seed, {.scaling = {}}).map<0>(invert).to_memory();
}

// ---- showing

/// The first digits of a data set, and some that the model gets wrong.
template <class Model>
void show(Model& m, const digit_set& digits) {
  const auto on = data::detect_terminal();
  const auto images = digits.column<0>();
  const auto truth = digits.column<1>();
  const auto looked_at = std::min<std::int64_t>(digits.size(), 1000);
  const auto found = m.predict(images.data(), looked_at).classes();
  const auto columns = std::size_t(std::clamp((on.width + 2) / 30, 1, 6));

  std::vector<data::captioned_image> shown;
  const auto add = [&](std::size_t i) {
    shown.push_back({images.row(std::int64_t(i)), data::prediction_caption(found[i], truth[i])});
  };
  for (std::size_t i = 0; i < std::min(columns, found.size()); ++i) add(i);
  for (std::size_t i = columns; i < found.size() && shown.size() < 2 * columns; ++i) {
    if (found[i] != truth[i]) add(i);
  }
  if (on.interactive) {
    std::cout << "its first digits, and some that it gets wrong:\n\n";
    data::print_images(std::cout, shown, on);
    std::cout << '\n';
  } else {
    std::cout << "predicted:";
    for (const auto& image : shown) std::cout << "  " << image.caption;
    std::cout << '\n';
  }
}

// ---- the run

/// Files are written when the work is done: better to know before it that they cannot be.
void check_writable(const std::string& file) {
  std::error_code fault;
  const auto path = std::filesystem::absolute(file, fault);
  if (file.empty() || std::filesystem::is_directory(path, fault)) {
    throw file_error(interop::in_quotes(file, 4096) +
                     " names no file but a folder; give a file name");
  }
  if (::access(path.parent_path().c_str(), W_OK) != 0) {
    throw file_error(interop::in_quotes(file, 4096) + " cannot be written: " +
                     std::error_code(errno, std::generic_category()).message() +
                     "; check the folder and its permissions");
  }
}

struct outcome {
  double accuracy{};
  double loss{};
  double seconds{};
  std::int64_t epochs{};
  std::int64_t train_samples{};
  std::int64_t test_samples{};
  std::int64_t parameters{};
  execution mode{};
  std::optional<double> dark_before{}, dark_after{};
};

void write_json(const settings& s, const outcome& o) {
  nlohmann::ordered_json j{
      {"test_accuracy", o.accuracy},    {"test_loss", o.loss}, {"parameters", o.parameters},
      {"seconds", o.seconds},           {"epochs", o.epochs},  {"train_samples", o.train_samples},
      {"test_samples", o.test_samples}, {"batch", s.batch},    {"seed", s.seed},
      {"mode", name_of(o.mode)}};
  if (o.dark_before) j["dark_accuracy_before"] = *o.dark_before;
  if (o.dark_after) j["dark_accuracy_after"] = *o.dark_after;
  interop::write_atomically(s.json,
                            [&](interop::output_file& file) { file.write(j.dump(2) + "\n"); });
}

template <class Model>
train::scores score(Model& m, const digit_set& digits) {
  return m.evaluate(digits, metrics::accuracy{}, metrics::loss{});
}

/// Teaches a trained net another style with a few hundred digits. What looks at the picture learns;
/// the last two layers, which know the digits, stay as they are.
template <class Model>
void fine_tune(Model& m, const settings& s, outcome& o, train::stop_on_interrupt& ctrl_c) {
  const auto train = dark_digits(std::min<std::int64_t>(800, o.train_samples), 3);
  const auto test = dark_digits(1000, 4);
  const std::int64_t epochs = o.mode == execution::eager ? 3 : 12;
  o.dark_before = score(m, test)["accuracy"];
  std::cout << "fine-tuning on " << train.size()
            << " dark digits on white paper; fc2 and fc3 stay as they are\n";
  m.fit(augmented(train, Model::batch_size, s.seed, 1),
        {.epochs = epochs,
         .learning_rate = optim::cosine{.first = 0.01 * double(Model::batch_size) / 32,
                                        .length = optim::epochs(double(epochs))},
         .freeze = {"fc2.*", "fc3.*"}},
        watch{}, ctrl_c);
  if (ctrl_c.interrupted) return;
  o.dark_after = score(m, test)["accuracy"];
  std::cout << "accuracy on " << grouped(test.size())
            << " other dark digits: " << percent(*o.dark_before) << " before, "
            << percent(*o.dark_after) << " after\n";
}

/// So many that training takes seconds, not minutes.
std::int64_t default_epochs(const settings& s, bool eager, std::int64_t samples) {
  if (eager) return 3;
  if (s.data.empty()) return 6;
  return std::clamp<std::int64_t>(480000 / samples, 8, 30);
}

/// Keeps all that training needs to go on, and says how.
template <class Model>
int save_interrupted(Model& m, const settings& s) {
  const auto file = std::filesystem::path(s.save).replace_extension(".resume.safetensors").string();
  m.save(file, {.optimizer = true});
  std::cout << "interrupted after step " << m.steps()
            << "; go on with the same options and --resume " << file << '\n';
  return 130;
}

template <int Batch>
int run(const settings& s) {
  const run_options how{.seed = s.seed,
                        .mode = s.eager ? std::optional(execution::eager) : std::nullopt,
                        .threads = s.threads};
  lenet<Batch> m(how);
  if (!s.load.empty()) m.load(s.load);
  if (!s.resume.empty()) m.load(s.resume, {.optimizer = true});
  const bool eager = m.mode() == execution::eager;
  const std::int64_t most = s.samples.value_or(eager ? 2000 : s.data.empty() ? 20000 : 60000);
  const bool saves = s.save_given || s.epochs != 0;
  if (saves) check_writable(s.save);
  if (!s.json.empty()) check_writable(s.json);

  const auto digits = read_digits(s, most);
  const std::int64_t epochs = s.epochs.value_or(default_epochs(s, eager, digits.train.size()));
  outcome o{.epochs = epochs,
            .train_samples = digits.train.size(),
            .test_samples = digits.test.size(),
            .parameters = m.parameters().trainable_count(),
            .mode = m.mode()};
  std::cout << "LeNet-5: " << grouped(o.parameters) << " parameters, " << name_of(o.mode)
            << " mode, batches of " << Batch << "\n"
            << (s.data.empty() ? "generated digits" : s.data) << ": " << grouped(o.train_samples)
            << " for training, " << grouped(o.test_samples) << " for testing\n";
  if (eager && epochs > 0 && !(s.epochs && s.samples)) {
    std::cout << "Eager mode computes node by node and is slower, so that it trains less unless "
                 "--samples and --epochs say how much.\n";
  }

  train::stop_on_interrupt ctrl_c;
  if (epochs > 0) {
    std::cout << '\n';
    const double rate = s.learning_rate.value_or(0.02 * Batch / 32);
    if (m.epochs() > epochs) {
      throw error(interop::in_quotes(s.resume) + " has made " + std::to_string(m.epochs()) +
                  " epochs already; give more --epochs");
    }
    const auto history = m.fit(
        augmented(digits.train, Batch, s.seed),
        {.epochs = epochs - m.epochs(),
         .learning_rate = optim::cosine{.first = rate, .length = optim::epochs(double(epochs))}},
        metrics::accuracy{}, watch{}, ctrl_c, train::progress_bar{});
    for (const auto& epoch : history) o.seconds += epoch.seconds;
  }
  if (ctrl_c.interrupted) return save_interrupted(m, s);

  const auto scores = score(m, digits.test);
  o.accuracy = scores["accuracy"];
  o.loss = scores["loss"];
  std::cout << "test accuracy " << percent(o.accuracy);
  if (epochs > 0) std::cout << " after " << seconds(o.seconds) << " of training";
  std::cout << '\n';

  if (saves) {
    m.save(s.save);
    std::cout << "saved in " << s.save << '\n';
  }
  if (epochs > 0) {
    lenet<Batch> second(how);
    second.load(s.save);
    std::cout << "loaded into a new model: test accuracy "
              << percent(score(second, digits.test)["accuracy"]) << '\n';
    show(second, digits.test);
    fine_tune(second, s, o, ctrl_c);
    if (ctrl_c.interrupted) return save_interrupted(m, s);  // and fine-tuning begins anew
  } else {
    show(m, digits.test);
  }
  if (!s.json.empty()) write_json(s, o);
  return 0;
}

/// Reads the command line; a status to exit with if there is nothing to run.
std::optional<int> parse(int argc, char** argv, settings& s) {
  CLI::App app("Trains LeNet-5 to read digits, saves it, loads it again and fine-tunes it.");
  const CLI::Validator rate(
      [](const std::string& value) {
        const double r = std::strtod(value.c_str(), nullptr);
        return r > 0 && r <= 1000 ? "" : value + " is not above 0 and at most 1000";
      },
      "", "rate");
  app.add_option("--data", s.data,
                 "Folder with MNIST's IDX files, with or without .gz; without it "
                 "digits are generated")
      ->type_name("DIR");
  app.add_flag("--eager", s.eager, "Compute node by node, without the compiled programs");
  app.add_option("--epochs", s.epochs, "Passes over the training digits; 0 only evaluates")
      ->type_name("N")
      ->check(CLI::Range(0, 100000));
  app.add_option("--samples", s.samples, "Train on so many digits at most")
      ->type_name("N")
      ->check(CLI::Range(1, 1000000));
  app.add_option("--batch", s.batch,
                 "Digits per training step: 32 or 64, the sizes that this "
                 "program is compiled for")
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::IsMember({32, 64}));
  app.add_option("--seed", s.seed, "Of first weights, order and augmentation")
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app.add_option("--lr", s.learning_rate, "First learning rate of a cosine schedule")
      ->type_name("RATE")
      ->check(rate);
  const auto* save = app.add_option("--save", s.save, "Where to save the weights")
                         ->type_name("FILE")
                         ->capture_default_str();
  app.add_option("--load", s.load, "Begin with the weights in this file")->type_name("FILE");
  app.add_option("--resume", s.resume, "Go on with what Ctrl-C saved, with the same options")
      ->type_name("FILE")
      ->excludes("--load");
  app.add_option("--threads", s.threads,
                 "Threads of the compiled programs; 0: one for each core. Without it what "
                 "CELLA_THREADS says, or 1")
      ->type_name("N")
      ->check(CLI::Range(0, most_threads));
  app.add_option("--json", s.json, "Write the figures of this run here")->type_name("FILE");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) { return app.exit(e) == 0 ? 0 : 2; }
  s.save_given = save->count() > 0;
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  settings s;
  if (const auto status = parse(argc, argv, s)) return *status;
  try {
    return s.batch == 32 ? run<32>(s) : run<64>(s);
  } catch (const train::diverged& e) {
    std::cerr << "lenet5: " << e.what() << "; choose a smaller --lr\n";
    return 2;
  } catch (const std::exception& e) {
    std::cerr << "lenet5: " << e.what() << '\n';
    return 2;
  }
}
