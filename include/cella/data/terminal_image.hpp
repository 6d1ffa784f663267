// Small grey images in a terminal, side by side, each with a caption.
#pragma once

#include <algorithm>
#include <cella/data/tensor.hpp>
#include <cella/data/terminal.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cella::data {

/// An image [H,W] or [1,H,W] with what stands below it.
struct captioned_image {
  tensor_view<const float> pixels;
  std::string caption;
};

/// The images as text: two pixels per character as half blocks where the terminal has colours and
/// Unicode, else one character per two pixels from a ramp of ASCII. Each image is scaled from its
/// darkest to its brightest pixel. A row holds as many images as the terminal is wide; an image
/// that is wider alone is cut, and so is a caption. Throws `error` for other extents.
std::string draw_images(std::span<const captioned_image> images, const terminal& on);

/// Draws on a stream that leads to standard output.
inline void print_images(std::ostream& out, std::span<const captioned_image> images,
                         const terminal& on = detect_terminal()) {
  out << draw_images(images, on);
}

/// The rows of a batch [N,H,W] or [N,1,H,W], with one caption for each image that is to be shown.
inline void print_images(std::ostream& out, tensor_view<const float> batch,
                         std::span<const std::string> captions,
                         const terminal& on = detect_terminal()) {
  if (batch.extents().rank < 3 || captions.size() > static_cast<std::size_t>(batch.extents()[0])) {
    throw error(text("print_images: the images have extents ")
                << batch.extents() << ", but [N,H,W] with N of at least " << captions.size()
                << " is needed; give one image for each caption.");
  }
  std::vector<captioned_image> images;
  for (std::size_t i = 0; i < captions.size(); ++i) {
    images.push_back({batch.row(static_cast<std::int64_t>(i)), captions[i]});
  }
  print_images(out, images, on);
}

/// "7", or "3 (true 5)" for a wrong prediction.
inline std::string prediction_caption(int predicted, int truth) {
  return predicted == truth ? std::to_string(predicted)
                            : std::to_string(predicted) + " (true " + std::to_string(truth) + ")";
}

namespace detail {

/// An image as levels from 0 to 255.
class grey_image {
 public:
  explicit grey_image(tensor_view<const float> pixels) : pixels_(pixels) {
    const shape& s = pixels.extents();
    if (!(s.rank == 2 || (s.rank == 3 && s[0] == 1))) {
      throw error(text("draw_images: an image has extents ")
                  << s << ", but [H,W] or [1,H,W] is needed; give one grey image at a time.");
    }
    height = s[s.rank - 2];
    width = s[s.rank - 1];
    bool first = true;
    for (float x : pixels) {
      if (!std::isfinite(x)) continue;
      low_ = first ? x : std::min(low_, x);
      high_ = first ? x : std::max(high_, x);
      first = false;
    }
  }

  int level(int y, int x) const {
    if (y >= height || x >= width) return 0;
    const float v = pixels_[static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
                            static_cast<std::size_t>(x)];
    if (!std::isfinite(v) || high_ <= low_) return 0;
    return static_cast<int>(std::lround(255 * ((v - low_) / (high_ - low_))));
  }

  int height{};
  int width{};

 private:
  tensor_view<const float> pixels_;
  float low_{};
  float high_{};
};

/// Upper pixel in the foreground, lower pixel in the background of one upper half block.
class half_block_line {
 public:
  explicit half_block_line(colours depth) : depth_(depth) {}

  void put(std::string& line, int upper, int lower) {
    set(line, "38", upper, foreground_);
    set(line, "48", lower, background_);
    line += "\u2580";
  }
  void reset(std::string& line) {
    line += "\x1b[0m";
    foreground_ = background_ = -1;
  }

 private:
  void set(std::string& line, const char* which, int level, int& current) const {
    // The palette's greys 232 to 255 are 8, 18, ... 238.
    const int colour = depth_ == colours::full ? level : 232 + std::clamp((level - 3) / 10, 0, 23);
    if (colour == current) return;
    current = colour;
    const std::string c = std::to_string(colour);
    line += std::string("\x1b[") + which +
            (depth_ == colours::full ? ";2;" + c + ";" + c + ";" + c : ";5;" + c) + "m";
  }

  colours depth_;
  int foreground_{-1};
  int background_{-1};
};

/// The first `width` characters of a UTF-8 string, centred.
inline std::string centred(std::string_view caption, int width) {
  std::string cut;
  int length = 0;
  for (char c : caption) {
    const bool begins_character = (static_cast<unsigned char>(c) & 0xc0) != 0x80;
    if (begins_character && length == width) break;
    length += begins_character;
    cut += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  const auto left = static_cast<std::size_t>((width - length) / 2);
  return std::string(left, ' ') + cut +
         std::string(static_cast<std::size_t>(width - length) - left, ' ');
}

}  // namespace detail

inline std::string draw_images(std::span<const captioned_image> images, const terminal& on) {
  const bool blocks = on.depth != colours::none && on.unicode;
  constexpr std::string_view ramp = " .:-=+*#%@";
  constexpr int gap = 2;
  const int room = std::max(on.width, 1);

  std::vector<detail::grey_image> greys;
  for (const auto& image : images) greys.emplace_back(image.pixels);
  const auto columns_of = [&](std::size_t i) {
    const auto caption = static_cast<int>(std::min<std::size_t>(images[i].caption.size(), 10000));
    return std::min(room, std::max(greys[i].width, caption));
  };

  std::string result;
  const auto end_line = [&] {
    while (!result.empty() && result.back() == ' ') result.pop_back();
    result += '\n';
  };
  for (std::size_t first = 0, last = 0; first < greys.size(); first = last) {
    int used = 0;
    int lines = 0;
    for (; last < greys.size(); ++last) {
      const int more = columns_of(last) + (last > first ? gap : 0);
      if (last > first && used + more > room) break;
      used += more;
      lines = std::max(lines, (greys[last].height + 1) / 2);
    }
    for (int line = 0; line < lines; ++line) {
      for (std::size_t i = first; i < last; ++i) {
        const auto& grey = greys[i];
        const int shown = std::min(grey.width, room);
        const int left = (columns_of(i) - shown) / 2;
        result.append(static_cast<std::size_t>(left + (i > first ? gap : 0)), ' ');
        detail::half_block_line pen(on.depth);
        for (int x = 0; x < shown; ++x) {
          const int upper = grey.level(2 * line, x);
          const int lower = grey.level(2 * line + 1, x);
          if (blocks) {
            pen.put(result, upper, lower);
          } else {
            const auto step = static_cast<std::size_t>(upper + lower) * (ramp.size() - 1);
            result += ramp[(step + 255) / 510];
          }
        }
        if (blocks) pen.reset(result);
        result.append(static_cast<std::size_t>(columns_of(i) - shown - left), ' ');
      }
      end_line();
    }
    for (std::size_t i = first; i < last; ++i) {
      if (i > first) result.append(gap, ' ');
      result += detail::centred(images[i].caption, columns_of(i));
    }
    end_line();
  }
  return result;
}

}  // namespace cella::data
