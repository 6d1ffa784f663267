// What the terminal behind a stream can do: is it one, how wide is it, which colours has it.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#if __has_include(<sys/ioctl.h>) && __has_include(<unistd.h>)
#include <sys/ioctl.h>
#include <unistd.h>
#define CELLA_HAS_POSIX_TERMINAL 1
#endif

namespace cella::data {

/// Which colours a terminal shows: none, those of a palette of 256, or 24 bits.
enum class colours { none, palette, full };

/// Capabilities of a terminal; the defaults are those of a file or a pipe.
struct terminal {
  /// Whether somebody looks at it, so that lines may be redrawn.
  bool interactive = false;
  colours depth = colours::none;
  /// Whether it shows UTF-8.
  bool unicode = false;
  /// Columns.
  int width = 80;
};

namespace detail {
inline std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}
}  // namespace detail

/// Asks the system about a standard stream. `NO_COLOR` (https://no-color.org) turns colours off,
/// `COLORTERM` (truecolor, 24bit) and `TERM` (...-256color) turn them on.
inline terminal detect_terminal([[maybe_unused]] std::FILE* stream = stdout) {
  using detail::environment;
  terminal t;
  const std::string_view columns = environment("COLUMNS");
  if (const int n = std::atoi(columns.data()); n > 0 && n < 10000) t.width = n;
#ifdef CELLA_HAS_POSIX_TERMINAL
  const int file = fileno(stream);
  if (!isatty(file)) return t;
  const std::string_view term = environment("TERM");
  t.interactive = !term.empty() && term != "dumb";
  winsize size{};
  if (ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) t.width = size.ws_col;
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string_view locale = environment(name);
    if (locale.empty()) continue;
    for (const char* form : {"UTF-8", "utf-8", "UTF8", "utf8"}) {
      t.unicode |= locale.find(form) != std::string_view::npos;
    }
    break;
  }
  if (t.interactive && environment("NO_COLOR").empty()) {
    const std::string_view colour = environment("COLORTERM");
    if (colour == "truecolor" || colour == "24bit") {
      t.depth = colours::full;
    } else if (term.find("256color") != std::string_view::npos) {
      t.depth = colours::palette;
    }
  }
#endif
  return t;
}

}  // namespace cella::data

#undef CELLA_HAS_POSIX_TERMINAL
