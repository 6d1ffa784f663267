// A simulated step as a picture: an SVG drawing, and a trace that Perfetto and Chrome open.
#pragma once

#include <cella/parallel/plan_text.hpp>
#include <cella/parallel/simulation.hpp>
#include <cella/parallel/svg.hpp>

namespace cella::parallel {

/// Writes the events of a step (`simulation_options::drawn_ranks`) in Chrome's trace format: a
/// thread for each rank, times in microseconds.
inline void write_chrome_trace(std::ostream& out, const simulation& s);

/// Draws them: a row for each rank, time to the right. Passes have the number of their microbatch.
inline void write_timeline_svg(std::ostream& out, const simulation& s);

// ------------------------------------------------------------------------------------------------

namespace detail {

/// What a stretch of time is for.
inline std::string_view purpose(const step_event& e) {
  if (e.kind == item_kind::wait) return "wait";
  if (e.kind != item_kind::compute) return "exchange";
  return e.phase == step_phase::forward    ? "forward"
         : e.phase == step_phase::backward ? "backward"
         : e.phase == step_phase::weights  ? "weights"
                                           : "step";
}
inline std::string_view colour_of(std::string_view purpose) {
  return purpose == "wait"       ? "#eeeeee"
         : purpose == "exchange" ? "#e45756"
         : purpose == "forward"  ? "#4c78a8"
         : purpose == "backward" ? "#72b7b2"
         : purpose == "weights"  ? "#54a24b"
                                 : "#f2a33a";
}
/// The ranks that have events, in the order of their first.
inline std::vector<int> ranks_of_events(const simulation& s) {
  std::vector<int> ranks;
  for (const step_event& e : s.events)
    if (std::find(ranks.begin(), ranks.end(), e.rank) == ranks.end()) ranks.push_back(e.rank);
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}
/// The passes of microbatches: their events put together.
inline std::vector<step_event> passes_of(const simulation& s) {
  std::vector<step_event> passes;
  for (const step_event& e : s.events) {
    if (e.microbatch < 0 || e.kind == item_kind::wait) continue;
    const auto same = std::find_if(passes.begin(), passes.end(), [&](const step_event& p) {
      return p.rank == e.rank && p.phase == e.phase && p.microbatch == e.microbatch &&
             p.begin + p.seconds >= e.begin - 1e-12;
    });
    if (same == passes.end())
      passes.push_back(e);
    else
      same->seconds = e.begin + e.seconds - same->begin;
  }
  return passes;
}
inline std::string in_json(std::string_view words) {
  std::string s;
  for (char c : words) {
    if (c == '"' || c == '\\') s += '\\';
    s += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return s;
}
/// A step between marks of a scale: 1, 2 or 5 times a power of ten, ten marks at most.
inline double step_of_scale(double whole) {
  double step = 1e-9;
  for (int i = 0; whole / step > 10 && i < 60; ++i) step *= i % 3 == 1 ? 2.5 : 2;
  return step;
}

}  // namespace detail

inline void write_chrome_trace(std::ostream& out, const simulation& s) {
  out << "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n"
         "{\"ph\": \"M\", \"pid\": 0, \"name\": \"process_name\", \"args\": {\"name\": \"a step, "
         "as "
         "predicted\"}}";
  for (int r : detail::ranks_of_events(s))
    out << ",\n{\"ph\": \"M\", \"pid\": 0, \"tid\": " << r
        << ", \"name\": \"thread_name\", \"args\": {\"name\": \"rank " << r << "\"}}";
  for (const step_event& e : s.events) {
    char times[80];
    std::snprintf(times, sizeof times, "\"ts\": %.3f, \"dur\": %.3f", 1e6 * e.begin,
                  1e6 * e.seconds);
    out << ",\n{\"ph\": \"X\", \"pid\": 0, \"tid\": " << e.rank << ", " << times << ", \"name\": \""
        << detail::in_json(e.label) << "\", \"cat\": \"" << detail::purpose(e) << "\"";
    if (e.microbatch >= 0) out << ", \"args\": {\"microbatch\": " << e.microbatch << "}";
    out << "}";
  }
  out << "\n]}\n";
}

inline void write_timeline_svg(std::ostream& out, const simulation& s) {
  using detail::svg;
  const std::vector<int> ranks = detail::ranks_of_events(s);
  constexpr double left = 70, wide = 1000, row = 26, top = 66;
  const double whole = s.seconds > 0 ? s.seconds : 1;
  const double bottom = top + row * double(ranks.size());
  svg picture(out, left + wide + 50, bottom + 34);
  char share[64];
  std::snprintf(share, sizeof share, "waiting for stages %.1f %%, exchanging %.1f %%",
                100 * s.bubble, 100 * s.exposed_seconds / whole);
  picture.words(left, 20,
                "a step of " + detail::milliseconds_text(s.seconds) + ": " + share + "; " +
                    cella::detail::grouped(std::int64_t(s.bytes_on_device)) + " bytes on a device");
  double x = left;
  for (const char* what : {"forward", "backward", "weights", "step", "exchange", "wait"}) {
    picture.box(x, 34, 14, 14, detail::colour_of(what));
    picture.words(x + 20, 46, what);
    x += 110;
  }
  for (std::size_t i = 0; i < ranks.size(); ++i)
    picture.words(left - 8, top + row * double(i) + 17, "rank " + std::to_string(ranks[i]),
                  svg::from::right);
  for (const step_event& e : s.events) {
    const auto i = std::lower_bound(ranks.begin(), ranks.end(), e.rank) - ranks.begin();
    const double at = left + wide * e.begin / whole, width = wide * e.seconds / whole,
                 y = top + row * double(i);
    const std::string name =
        std::string(e.label) +
        (e.microbatch < 0 ? "" : ", microbatch " + std::to_string(e.microbatch));
    picture.box(at, y + 2, std::max(width - 0.4, 0.15), row - 4,
                detail::colour_of(detail::purpose(e)),
                name + ": " + detail::milliseconds_text(e.seconds));
    if (e.kind == item_kind::compute && e.microbatch < 0 && svg::width_of(e.label) < width - 4)
      picture.words(at + width / 2, y + 17, e.label, svg::from::middle, "#ffffff");
  }
  for (const step_event& pass : detail::passes_of(s)) {
    const auto i = std::lower_bound(ranks.begin(), ranks.end(), pass.rank) - ranks.begin();
    const std::string shown = std::to_string(pass.microbatch);
    const double width = wide * pass.seconds / whole;
    if (svg::width_of(shown) < width)
      picture.words(left + wide * pass.begin / whole + width / 2, top + row * double(i) + 17, shown,
                    svg::from::middle, "#ffffff");
  }
  const double step = detail::step_of_scale(whole);
  for (double t = 0; t <= whole * 1.0001; t += step) {
    const double at = left + wide * t / whole;
    picture.box(at, bottom, 1, 6, "#808080");
    picture.words(at, bottom + 20, detail::milliseconds_text(t), svg::from::middle);
  }
  picture.end();
}

}  // namespace cella::parallel
