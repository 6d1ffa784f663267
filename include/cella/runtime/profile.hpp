// CELLA_PROFILE: times every kernel call of the programs that run. When an executable ends, its
// table goes to standard error, and a trace that chrome://tracing and Perfetto read to a file.
#pragma once

#include <algorithm>
#include <atomic>
#include <cella/runtime/call_labels.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace cella {

/// Times of the calls of one executable, gathered step by step.
class call_profile {
 public:
  using clock = std::chrono::steady_clock;

  /// Where CELLA_PROFILE is not set, null. If it is 1 the trace is written to cella_profile.json,
  /// else to the file that it names; further executables of the process add a number to the name.
  /// `labels()`: of the calls, asked for if there is a profile.
  template <class Labels>
  [[gnu::cold]] static std::unique_ptr<call_profile> if_wanted(Labels labels, double (*peak)(),
                                                               int threads) {
    std::string file = wanted_file();
    if (file.empty()) return nullptr;
    return std::make_unique<call_profile>(labels(), peak, threads, std::move(file));
  }
  /// `peak`: floating-point operations per second that one thread can do at most.
  call_profile(std::vector<call_label> labels, double (*peak)(), int threads,
               std::string trace_file)
      : labels_(std::move(labels)),
        peak_(peak),
        threads_(threads),
        file_(std::move(trace_file)),
        best_(labels_.size(), 1e30),
        total_(labels_.size(), 0.0),
        first_(clock::now()) {}
  call_profile(const call_profile&) = delete;
  call_profile& operator=(const call_profile&) = delete;
  [[gnu::cold]] ~call_profile() {
    if (steps_ == 0) return;
    print(stderr);
    write_trace();
  }

  /// Runs the calls of a step, `run(k)` for each, and notes their times.
  template <class F>
  void time_all(std::size_t calls, F run) {
    ++steps_;
    for (std::size_t k = 0; k < calls; ++k) {
      const auto before = clock::now();
      run(k);
      const std::chrono::duration<double> took = clock::now() - before;
      best_[k] = std::min(best_[k], took.count());
      total_[k] += took.count();
      if (steps_ <= traced_steps)
        events_.push_back(
            {k, std::chrono::duration<double>(before - first_).count(), took.count()});
    }
  }

  /// One row for each call: its fastest and mean time, its share of a step, and what the fastest
  /// comes to.
  [[gnu::cold]] void print(std::FILE* out) const {
    const double peak = peak_() * threads_;
    double best = 0, total = 0, flops = 0;
    int widest = 8;
    for (std::size_t i = 0; i < labels_.size(); ++i) {
      best += best_[i];
      total += total_[i];
      flops += labels_[i].flops;
      widest = std::max(widest, int(labels_[i].kernel.size()) + 2);
    }
    std::fprintf(out, "profile of %d steps, %d %s, multiply-add peak %.1f GFLOP/s\n", steps_,
                 threads_, threads_ == 1 ? "thread" : "threads", peak * 1e-9);
    std::fprintf(out, "  #  %-*slayout    min us   mean us   share  GFLOP/s    GB/s    peak  %s\n",
                 widest, "kernel", "cell and source");
    for (std::size_t i = 0; i < labels_.size(); ++i) {
      const call_label& l = labels_[i];
      std::fprintf(out, "%3zu  %-*s%-7s%10.2f%10.2f%7.1f%%", i, widest, l.kernel.c_str(),
                   l.layout.data(), best_[i] * 1e6, total_[i] / steps_ * 1e6,
                   100 * total_[i] / total);
      print_rates(out, l.flops, l.bytes, best_[i], peak);
      std::fprintf(out, "  %s\n", l.place.c_str());
    }
    std::fprintf(out, "     %-*s%10.2f%10.2f  100.0%%", widest + 7, "sum", best * 1e6,
                 total / steps_ * 1e6);
    print_rates(out, flops, 0, best, peak);
    std::fputs("\n", out);
  }

 private:
  struct event {
    std::size_t call;
    double begin, seconds;
  };
  static constexpr int traced_steps = 10;

  /// Empty where CELLA_PROFILE is not set. One count for all executables of the process.
  [[gnu::cold]] static std::string wanted_file() {
    const char* const value = std::getenv("CELLA_PROFILE");
    if (!value || !*value || std::string_view(value) == "0") return {};
    static std::atomic<int> count{0};
    const int number = ++count;
    std::string file = std::string_view(value) == "1" ? "cella_profile.json" : value;
    if (number > 1) {
      const std::size_t dot = std::min(file.rfind('.'), file.size());
      std::string numbered(file, 0, dot);
      numbered.append("_").append(std::to_string(number)).append(file, dot);
      file = std::move(numbered);
    }
    return file;
  }

  /// GFLOP/s, GB/s and share of the peak; blank where nothing is counted.
  [[gnu::cold]] static void print_rates(std::FILE* out, double flops, double bytes, double seconds,
                                        double peak) {
    const auto rate = [&](int width, double amount, double per, const char* unit) {
      if (amount > 0)
        std::fprintf(out, "%*.*f%s", width, *unit ? 1 : 2, amount / per, unit);
      else
        std::fprintf(out, "%*s%s", width, "", *unit ? " " : "");
    };
    rate(9, flops, seconds * 1e9, "");
    rate(8, bytes, seconds * 1e9, "");
    rate(7, 100 * flops, seconds * peak, "%");
  }
  [[gnu::cold]] void write_trace() const {
    std::FILE* const out = std::fopen(file_.c_str(), "w");
    if (!out) return complain();
    std::fputs("{\"displayTimeUnit\": \"ms\", \"traceEvents\": [", out);
    for (std::size_t k = 0; k < events_.size(); ++k) {
      const event& e = events_[k];
      const call_label& l = labels_[e.call];
      std::fprintf(out,
                   "%s\n{\"name\": \"%s\", \"cat\": \"%s\", \"ph\": \"X\", \"pid\": 1, \"tid\": 1, "
                   "\"ts\": %.3f, \"dur\": %.3f, \"args\": {\"call\": %zu, \"place\": \"%s\", "
                   "\"flops\": %.0f, \"bytes\": %.0f}}",
                   k ? "," : "", l.kernel.c_str(), l.layout.data(), e.begin * 1e6, e.seconds * 1e6,
                   e.call, l.place.c_str(), l.flops, l.bytes);
    }
    std::fputs("\n]}\n", out);
    const bool failed = std::ferror(out) != 0;
    if (std::fclose(out) != 0 || failed) complain();
  }
  void complain() const {
    std::fprintf(stderr, "the trace could not be written to %s\n", file_.c_str());
  }

  std::vector<call_label> labels_;
  double (*peak_)();
  int threads_;
  std::string file_;
  std::vector<double> best_, total_;  // seconds
  std::vector<event> events_;
  clock::time_point first_;
  int steps_ = 0;
};

}  // namespace cella
