// CELLA_PROFILE: times every kernel call of the programs that run. When an executable ends, its
// table goes to standard error, and a trace that chrome://tracing and Perfetto read to a file.
#pragma once

#include <algorithm>
#include <atomic>
#include <cella/backend/cpu/kernel_calls.hpp>
#include <cella/backend/cpu/peak.hpp>
#include <cella/runtime/columns.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

namespace cella {

/// One call of a kernel in a table and in a trace.
struct call_label {
  std::string kernel;  ///< what kind of step, and for calls that only prepare it "(prepares)"
  std::string layout;
  std::string place;  ///< path of the cell, file and line
  double flops{};     ///< floating-point operations
  double bytes{};     ///< of the tensors that it reads and writes
};

/// Times of the calls of one executable, gathered step by step.
class call_profile {
 public:
  using clock = std::chrono::steady_clock;

  /// Where CELLA_PROFILE is not set, null. If it is 1 the trace is written to cella_profile.json,
  /// else to the file that it names; further executables of the process add a number to the name.
  static std::unique_ptr<call_profile> if_wanted(std::vector<call_label> (*labels)(), int threads) {
    const char* const value = std::getenv("CELLA_PROFILE");
    if (!value || !*value || std::string_view(value) == "0") return nullptr;
    static std::atomic<int> count{0};
    const int number = ++count;
    std::string file = std::string_view(value) == "1" ? "cella_profile.json" : value;
    if (number > 1) {
      const std::size_t dot = std::min(file.rfind('.'), file.size());
      file.insert(dot, "_" + std::to_string(number));
    }
    return std::make_unique<call_profile>(labels(), threads, std::move(file));
  }
  call_profile(std::vector<call_label> labels, int threads, std::string trace_file)
      : labels_(std::move(labels)),
        threads_(threads),
        file_(std::move(trace_file)),
        best_(labels_.size(), 1e30),
        total_(labels_.size(), 0.0),
        first_(clock::now()) {}
  call_profile(const call_profile&) = delete;
  call_profile& operator=(const call_profile&) = delete;
  ~call_profile() {
    if (steps_ == 0) return;
    print(std::cerr);
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
  void print(std::ostream& out) const {
    using detail::left, detail::right;
    const double peak = cpu::measured_peak() * threads_;
    double best = 0, total = 0, flops = 0;
    std::size_t widest = 8;
    for (std::size_t i = 0; i < labels_.size(); ++i) {
      best += best_[i];
      total += total_[i];
      flops += labels_[i].flops;
      widest = std::max(widest, labels_[i].kernel.size() + 2);
    }
    out << "profile of " << steps_ << " steps, " << threads_
        << (threads_ == 1 ? " thread" : " threads") << ", multiply-add peak "
        << number(peak * 1e-9, 1) << " GFLOP/s\n"
        << "  #  " << left("kernel", widest) << left("layout", 7)
        << "   min us   mean us   share  GFLOP/s    GB/s    peak  cell and source\n";
    for (std::size_t i = 0; i < labels_.size(); ++i) {
      const call_label& l = labels_[i];
      out << right(std::to_string(i), 3) << "  " << left(l.kernel, widest) << left(l.layout, 7)
          << right(number(best_[i] * 1e6, 2), 9) << right(number(total_[i] / steps_ * 1e6, 2), 10)
          << right(number(100 * total_[i] / total, 1), 7) << "%"
          << rates(l.flops, l.bytes, best_[i], peak) << "  " << l.place << "\n";
    }
    out << "     " << left("sum", widest + 7) << right(number(best * 1e6, 2), 9)
        << right(number(total / steps_ * 1e6, 2), 10) << "  100.0%" << rates(flops, 0, best, peak)
        << "\n";
  }

 private:
  struct event {
    std::size_t call;
    double begin, seconds;
  };
  static constexpr int traced_steps = 10;

  static std::string number(double v, int decimals) {
    std::array<char, 32> s{};
    std::snprintf(s.data(), s.size(), "%.*f", decimals, v);
    return s.data();
  }
  static std::string rates(double flops, double bytes, double seconds, double peak) {
    const auto rate = [](double v) { return v > 0 ? number(v * 1e-9, 2) : std::string(); };
    const std::string share = flops > 0 ? number(100 * flops / seconds / peak, 1) + "%" : "";
    return detail::right(rate(flops / seconds), 9) + detail::right(rate(bytes / seconds), 8) +
           detail::right(share, 8);
  }
  void write_trace() const {
    std::ofstream out(file_);
    out << "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [";
    for (std::size_t k = 0; k < events_.size(); ++k) {
      const event& e = events_[k];
      const call_label& l = labels_[e.call];
      out << (k ? ",\n" : "\n") << "{\"name\": \"" << l.kernel << "\", \"cat\": \"" << l.layout
          << "\", \"ph\": \"X\", \"pid\": 1, \"tid\": 1, \"ts\": " << number(e.begin * 1e6, 3)
          << ", \"dur\": " << number(e.seconds * 1e6, 3) << ", \"args\": {\"call\": " << e.call
          << ", \"place\": \"" << l.place << "\", \"flops\": " << number(l.flops, 0)
          << ", \"bytes\": " << number(l.bytes, 0) << "}}";
    }
    out << "\n]}\n";
    if (!out) std::cerr << "the trace could not be written to " << file_ << "\n";
  }

  std::vector<call_label> labels_;
  int threads_;
  std::string file_;
  std::vector<double> best_, total_;  // seconds
  std::vector<event> events_;
  clock::time_point first_;
  int steps_ = 0;
};

/// The labels of a program's calls. A step of two calls does its arithmetic in the second.
template <class Graph>
std::vector<call_label> labels_of(const Graph& g, std::span<const plan_step> steps,
                                  std::span<const cpu::kernel_call> calls) {
  std::vector<call_label> labels;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const plan_step& s = steps[std::size_t(calls[i].step)];
    const bool prepares = i + 1 < calls.size() && calls[i + 1].step == calls[i].step;
    const node& n = g.nodes[std::size_t(s.anchor)];
    std::string place(g.view(n.cell));
    if (n.line > 0) {
      const std::string_view file(n.file);
      place += (place.empty() ? "" : " ") + std::string(file.substr(file.rfind('/') + 1)) + ":" +
               std::to_string(n.line);
    }
    labels.push_back({std::string(name(s.kind)) + (prepares ? " (prepares)" : ""),
                      s.arrangement == layout::lanes ? "lanes" : "plain", std::move(place),
                      prepares ? 0.0 : double(s.flops), prepares ? 0.0 : double(s.bytes)});
  }
  return labels;
}

}  // namespace cella
