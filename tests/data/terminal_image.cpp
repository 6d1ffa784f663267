#include <doctest/doctest.h>

#include <cella/data/terminal_image.hpp>
#include <sstream>
#include <string>
#include <vector>

using namespace cella;
using namespace cella::data;

namespace {

constexpr terminal plain{};
constexpr terminal rich{.interactive = true, .depth = colours::full, .unicode = true};

std::vector<captioned_image> images_of(const std::vector<float>& values, int height, int width,
                                       const std::vector<std::string>& captions) {
  std::vector<captioned_image> images;
  for (const auto& c : captions) images.push_back({{values.data(), {height, width}}, c});
  return images;
}

const std::vector<float> square{0, 1, 0, 1, 1, 0, 1, 0};  // [4,2]

std::size_t occurrences(const std::string& s, const std::string& part) {
  std::size_t n = 0;
  for (auto at = s.find(part); at != s.npos; at = s.find(part, at + part.size())) ++n;
  return n;
}

}  // namespace

TEST_CASE("without colours an image is a ramp of ASCII, one character for two pixels") {
  CHECK(draw_images(images_of(square, 4, 2, {"7"}), plain) == " @\n@\n7\n");
  const std::vector<float> grey{-1, 3, 1, -1, 3, 1};  // darkest to brightest: half and full
  CHECK(draw_images(images_of(grey, 2, 3, {"x"}), plain) == " @+\n x\n");
}

TEST_CASE("with 24-bit colours two pixels share a half block") {
  CHECK(draw_images(images_of({0, 1, 1, 1}, 2, 2, {"x"}), rich) ==
        "\x1b[38;2;0;0;0m\x1b[48;2;255;255;255m\u2580\x1b[38;2;255;255;255m\u2580\x1b[0m\nx\n");
}

TEST_CASE("with 256 colours the greys of the palette are used") {
  auto t = rich;
  t.depth = colours::palette;
  const auto drawn = draw_images(images_of({0, 1}, 2, 1, {""}), t);
  CHECK(drawn == "\x1b[38;5;232m\x1b[48;5;255m\u2580\x1b[0m\n\n");
}

TEST_CASE("colours without Unicode fall back to ASCII") {
  auto t = rich;
  t.unicode = false;
  CHECK(draw_images(images_of(square, 4, 2, {"7"}), t) == " @\n@\n7\n");
}

TEST_CASE("images stand side by side as long as the width allows") {
  auto t = plain;
  t.width = 6;  // two images of 2 columns and a gap of 2
  CHECK(draw_images(images_of(square, 4, 2, {"a", "b", "c"}), t) ==
        " @   @\n@   @\na   b\n @\n@\nc\n");
}

TEST_CASE("a caption is centred, widens its image and is cut at the terminal's edge") {
  auto t = plain;
  CHECK(draw_images(images_of(square, 4, 2, {"3 (t 5)"}), t) == "   @\n  @\n3 (t 5)\n");
  t.width = 4;
  CHECK(draw_images(images_of(square, 4, 2, {"3 (t 5)"}), t) == "  @\n @\n3 (t\n");
  CHECK(prediction_caption(3, 5) == "3 (true 5)");
  CHECK(prediction_caption(7, 7) == "7");
}

TEST_CASE("no line is wider than the terminal") {
  std::vector<float> values(28 * 28);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = float(i % 29);
  for (int width : {1, 5, 27, 28, 57, 58, 80}) {
    auto t = plain;
    t.width = width;
    std::istringstream lines(draw_images(
        images_of(values, 28, 28, {"0", "1 (true 2)", "a caption that is longer than 28 pixels"}),
        t));
    std::size_t count = 0;
    for (std::string line; std::getline(lines, line); ++count) {
      CHECK(line.size() <= std::size_t(width));
    }
    CHECK(count == (width == 58 ? 30u : width == 80 ? 30u : 45u));
  }
}

TEST_CASE("every coloured line resets the colours") {
  const auto drawn = draw_images(images_of(square, 4, 2, {"a", "b"}), rich);
  CHECK(occurrences(drawn, "\x1b[0m") == 4);
}

TEST_CASE("flat images and numbers that are none are black") {
  CHECK(draw_images(images_of({5, 5, 5, 5}, 2, 2, {"x"}), plain) == "\nx\n");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(draw_images(images_of({nan, 0, nan, 1}, 2, 2, {"x"}), plain) == " +\nx\n");
}

TEST_CASE("a batch of images with channel axis is printed, and odd extents are refused") {
  const std::vector<float> two{0, 1, 0, 1};
  std::ostringstream out;
  print_images(out, tensor_view<const float>(two.data(), {2, 1, 2, 1}),
               std::vector<std::string>{"a", "b"}, plain);
  CHECK(out.str() == "+  +\na  b\n");
  CHECK_THROWS_AS(print_images(out, tensor_view<const float>(two.data(), {2, 2}),
                               std::vector<std::string>{"a"}, plain),
                  error);
  CHECK_THROWS_AS(print_images(out, tensor_view<const float>(two.data(), {1, 2, 1}),
                               std::vector<std::string>{"a", "b"}, plain),
                  error);
  CHECK_THROWS_AS(draw_images(std::vector<captioned_image>{{{two.data(), {2, 2, 1}}, "x"}}, plain),
                  error);
}
