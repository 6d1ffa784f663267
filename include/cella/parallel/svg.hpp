// Drawings of rectangles and words, as SVG.
#pragma once

#include <cstdio>
#include <ostream>
#include <string>
#include <string_view>

namespace cella::parallel::detail {

/// One drawing. It has its end when `end` is called.
class svg {
 public:
  svg(std::ostream& out, double width, double height) : out_(out) {
    out_ << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << number(width) << "\" height=\""
         << number(height) << "\" font-family=\"sans-serif\" font-size=\"12\">\n";
    box(0, 0, width, height, "#ffffff");
  }
  void box(double x, double y, double width, double height, std::string_view colour,
           std::string_view title = {}) {
    out_ << "<rect x=\"" << number(x) << "\" y=\"" << number(y) << "\" width=\"" << number(width)
         << "\" height=\"" << number(height) << "\" fill=\"" << colour << "\"";
    if (title.empty())
      out_ << "/>\n";
    else
      out_ << "><title>" << escaped(title) << "</title></rect>\n";
  }
  enum class from : unsigned char { left, middle, right };
  void words(double x, double y, std::string_view what, from where = from::left,
             std::string_view colour = "#202020") {
    constexpr std::string_view anchors[] = {"start", "middle", "end"};
    out_ << "<text x=\"" << number(x) << "\" y=\"" << number(y) << "\" fill=\"" << colour
         << "\" text-anchor=\"" << anchors[int(where)] << "\">" << escaped(what) << "</text>\n";
  }
  void end() { out_ << "</svg>\n"; }

  /// About how wide words are.
  static double width_of(std::string_view words) { return 6.7 * double(words.size()); }

 private:
  static std::string number(double v) {
    char s[32];
    std::snprintf(s, sizeof s, "%.2f", v);
    return s;
  }
  static std::string escaped(std::string_view words) {
    std::string s;
    for (char c : words) {
      if (c == '<')
        s += "&lt;";
      else if (c == '>')
        s += "&gt;";
      else if (c == '&')
        s += "&amp;";
      else
        s += c;
    }
    return s;
  }

  std::ostream& out_;
};

}  // namespace cella::parallel::detail
