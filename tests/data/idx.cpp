#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cella/data/idx.hpp>
#include <cella/data/mnist.hpp>
#include <cella/graph/random.hpp>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string>
#include <support/memory_limit.hpp>
#include <vector>

using namespace cella;
using namespace cella::data;

namespace {

std::string big_endian(std::uint32_t v) {
  return {char(v >> 24 & 255), char(v >> 16 & 255), char(v >> 8 & 255), char(v & 255)};
}

/// An IDX file with this header and payload, right or wrong.
std::string file_of(std::uint32_t magic, const std::vector<std::uint32_t>& extents,
                    const std::string& payload) {
  std::string bytes = big_endian(magic);
  for (auto e : extents) bytes += big_endian(e);
  return bytes + payload;
}

std::string gzip(const std::string& bytes) {
  z_stream z{};
  REQUIRE(deflateInit2(&z, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(deflateBound(&z, static_cast<uLong>(bytes.size())) + 64, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  z.avail_in = static_cast<uInt>(bytes.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&z, Z_FINISH) == Z_STREAM_END);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

idx_array parse(const std::string& bytes) {
  std::istringstream in(bytes);
  return parse_idx(in, bytes.size(), "digits.idx");
}

std::string message_of(const std::string& bytes) {
  try {
    parse(bytes);
  } catch (const file_error& e) { return e.what(); }
  return "accepted";
}

bool contains(const std::string& s, const char* part) { return s.find(part) != std::string::npos; }

const std::string six_bytes{1, 2, 3, 4, 5, char(255)};
const std::string good = file_of(0x0802, {2, 3}, six_bytes);

/// A directory that goes away with the test.
struct temporary_directory {
  std::filesystem::path path = std::filesystem::temp_directory_path() /
                               ("cella_idx_" + std::to_string(std::uintptr_t(this)));
  temporary_directory() { std::filesystem::create_directory(path); }
  ~temporary_directory() { std::filesystem::remove_all(path); }
  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path / name, std::ios::binary) << bytes;
  }
};

}  // namespace

TEST_CASE("an array of bytes is read, plain and compressed") {
  for (const auto& bytes : {good, gzip(good)}) {
    const auto a = parse(bytes);
    CHECK(a.extents == shape{2, 3});
    CHECK(a.as<std::uint8_t>() == std::vector<std::uint8_t>{1, 2, 3, 4, 5, 255});
    CHECK(a.as<float>() == std::vector<float>{1, 2, 3, 4, 5, 255});
  }
}

TEST_CASE("all element types of the format are read from big-endian") {
  CHECK(parse(file_of(0x0901, {2}, {char(0xff), 3})).as<std::int8_t>() ==
        std::vector<std::int8_t>{-1, 3});
  CHECK(parse(file_of(0x0b01, {2}, {char(0xff), char(0xfe), 1, 2})).as<std::int16_t>() ==
        std::vector<std::int16_t>{-2, 258});
  CHECK(parse(file_of(0x0c01, {1}, {1, 2, 3, 4})).as<std::int32_t>() ==
        std::vector<std::int32_t>{0x01020304});
  CHECK(parse(file_of(0x0d01, {1}, {0x3f, char(0x80), 0, 0})).as<float>() == std::vector<float>{1});
  CHECK(parse(file_of(0x0e01, {1}, {char(0xc0), 4, 0, 0, 0, 0, 0, 0})).as<double>() ==
        std::vector<double>{-2.5});
}

TEST_CASE("values are not squeezed into a type that cannot hold them") {
  const auto doubles = parse(file_of(0x0e01, {0}, ""));
  CHECK_THROWS_AS(doubles.as<float>(), error);
  CHECK_THROWS_AS(parse(file_of(0x0c01, {0}, "")).as<float>(), error);
  CHECK_THROWS_AS(parse(file_of(0x0901, {0}, "")).as<std::uint8_t>(), error);
  CHECK(parse(file_of(0x0c01, {0}, "")).as<double>().empty());
}

TEST_CASE("what is missing or is no file is refused by name and by what it is") {
  const temporary_directory dir;
  const auto refusal = [&](const char* name) {
    const auto path = dir.path / name;
    try {
      read_idx(path);
    } catch (const file_error& e) {
      CHECK(contains(e.what(), ("cannot read \"" + path.string() + "\": ").c_str()));
      return std::string(e.what());
    }
    return std::string("accepted");
  };
  CHECK(contains(refusal("absent"), "there is no such file"));
  std::filesystem::create_directory(dir.path / "folder");
  CHECK(contains(refusal("folder"), "it is a directory; name a file"));
  // A reader that opened it would wait for its writer.
  REQUIRE(::mkfifo((dir.path / "pipe").c_str(), 0600) == 0);
  CHECK(contains(refusal("pipe"), "it is not a regular file"));
  dir.write("cut", good.substr(0, 17));
  CHECK_THROWS_WITH_AS(read_idx(dir.path / "cut"), doctest::Contains("the file has only 17"),
                       file_error);
  dir.write("good", good);
  CHECK(read_idx(dir.path / "good").extents == shape{2, 3});
}

TEST_CASE("a cut file is refused with the figures, wherever it is cut") {
  for (std::size_t n = 0; n < good.size(); ++n) {
    CAPTURE(n);
    CHECK(contains(message_of(good.substr(0, n)), "digits.idx: the "));
  }
  CHECK(message_of(good.substr(0, 17)) ==
        "digits.idx: the header promises [2,3], that is 6 bytes, but the file has only 17; fetch "
        "the file again.");
  const auto packed = gzip(good);
  for (std::size_t n = 0; n < packed.size(); ++n) {
    CAPTURE(n);
    CHECK(message_of(packed.substr(0, n)) != "accepted");
  }
  CHECK(contains(message_of(packed.substr(0, packed.size() - 3)), "the gzip stream is cut"));
  CHECK(contains(message_of(gzip(good.substr(0, 17))), "there are only 5"));
}

TEST_CASE("bytes behind the array are refused") {
  CHECK(contains(message_of(good + "x"), "more bytes follow"));
  CHECK(contains(message_of(gzip(good + "x")), "more bytes follow"));
  CHECK(contains(message_of(gzip(good) + "x"), "bytes after the gzip stream"));
}

TEST_CASE("a compressed file may have several members") {
  const auto a = parse(gzip(good.substr(0, 13)) + gzip(good.substr(13)));
  CHECK(a.as<std::uint8_t>() == std::vector<std::uint8_t>{1, 2, 3, 4, 5, 255});
}

TEST_CASE("a wrong magic, rank or element type is refused") {
  CHECK(contains(message_of("PNG and more bytes"), "which no IDX file has"));
  CHECK(contains(message_of(file_of(0x0a01, {1}, "x")), "which no IDX file has"));
  CHECK(contains(message_of(file_of(0x0801'0801, {1}, "x")), "which no IDX file has"));
  CHECK(contains(message_of(file_of(0x0800, {}, "x")), "0 axes"));
  CHECK(contains(message_of(file_of(0x0809, std::vector<std::uint32_t>(9, 1), "x")), "9 axes"));
}

TEST_CASE("sizes that overflow or that the file cannot hold are refused before allocation") {
  const std::vector<std::vector<std::uint32_t>> hostile{{0xffffffff},
                                                        {0x80000000},
                                                        {0x7fffffff},
                                                        {0x7fffffff, 0x7fffffff, 0x7fffffff},
                                                        {0x10000, 0x10000, 0x10000, 0x10000},
                                                        {0x7fffffff, 0x7fffffff, 0x7fffffff, 0}};
  for (const auto& extents : hostile) {
    const auto magic = 0x0800u | static_cast<std::uint32_t>(extents.size());
    const auto bytes = file_of(magic, extents, "abc");
    CHECK(contains(message_of(bytes), "fetch "));
    CHECK(contains(message_of(gzip(bytes)), "fetch "));
  }
}

TEST_CASE(
    "a small file that unpacks to more than the limit is refused, unless the limit is raised") {
  const auto packed = gzip(file_of(0x0801, {1u << 20}, std::string(1u << 20, 'x')));
  REQUIRE(packed.size() < 2000);
  const auto parse_within = [&](std::uint64_t limit) {
    std::istringstream in(packed);
    return parse_idx(in, packed.size(), "bomb.gz", {.max_unpacked_bytes = limit});
  };
  CHECK_THROWS_WITH_AS(parse_within((1u << 20) - 1),
                       "bomb.gz: the header promises [1048576], that is 1048576 bytes, but at most "
                       "1048575 may be unpacked; raise max_unpacked_bytes if you trust the file.",
                       file_error);
  CHECK(parse_within(1u << 20).extents == shape{1 << 20});
  // The limit is for what a file does not show: a plain file has its size.
  const temporary_directory dir;
  dir.write("plain", good);
  CHECK(read_idx(dir.path / "plain", {.max_unpacked_bytes = 1}).extents == shape{2, 3});
}

TEST_CASE("a file of two megabytes that unpacks to two gigabytes is refused by default") {
  const temporary_directory dir;
  const auto path = dir.path / "bomb.gz";
  const std::string part = gzip(std::string(1u << 24, '\0'));
  std::string bytes = gzip(file_of(0x0802, {128, 1u << 24}, ""));
  for (int i = 0; i < 128; ++i) bytes += part;
  REQUIRE(bytes.size() < 3u << 20);
  dir.write("bomb.gz", bytes);
  CHECK_THROWS_WITH_AS(read_idx(path), doctest::Contains("at most 1073741824 may be unpacked"),
                       file_error);
}

TEST_CASE("too little memory is an error that names the file and the bytes") {
  if (!test::memory_can_be_limited) return;
  const temporary_directory dir;
  constexpr std::uint32_t extent = 4096;
  const std::string images = file_of(0x0803, {1, extent, extent}, "");
  const std::string pixels(extent * extent, '\0');
  dir.write("train-images-idx3-ubyte", images + pixels);
  dir.write("train-labels-idx1-ubyte", file_of(0x0801, {1}, {7}));
  dir.write("packed", gzip(images + pixels));
  const auto refusal = [&](const char* name, std::size_t megabytes, const auto& read) {
    const auto said = test::refusal_with_memory(megabytes << 20, read);
    CHECK(
        contains(said, ("cannot read \"" + (dir.path / name).string() + "\": no memory").c_str()));
    return said;
  };
  for (const char* name : {"train-images-idx3-ubyte", "packed"}) {
    CHECK(contains(refusal(name, 12, [&] { read_idx(dir.path / name); }), "for 16777216 bytes"));
  }
  // Enough for the file, but not for its images as floats.
  const auto read_all = [&] { read_mnist(dir.path, part::train); };
  CHECK(contains(refusal("train-images-idx3-ubyte", 60, read_all), "for 67108864 bytes"));
}

TEST_CASE("a corrupted compressed file is refused") {
  auto packed = gzip(good);
  packed[packed.size() - 6] = char(packed[packed.size() - 6] ^ 1);  // a byte of the checksum
  CHECK(contains(message_of(packed), "corrupted (incorrect data check)"));
  packed = gzip(good);
  packed[11] = char(packed[11] ^ 0xff);
  CHECK(message_of(packed) != "accepted");
}

TEST_CASE("two thousand damaged files are read or refused, never worse") {
  std::string payload(2000, '\0');
  std::iota(payload.begin(), payload.end(), char(0));
  const std::string plain = file_of(0x0b03, {10, 10, 10}, payload);
  const std::string packed = gzip(plain);
  int accepted = 0;
  int refused = 0;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    generator random(2026, i);
    std::string bytes = i % 2 ? plain : packed;
    for (auto changes = random.below(4) + 1; changes > 0; --changes) {
      // Half of the damage goes to the headers.
      const auto end = static_cast<std::uint32_t>(random.below(2) ? 24 : bytes.size());
      const auto place = random.below(std::min(end, static_cast<std::uint32_t>(bytes.size())));
      switch (random.below(5)) {
        case 0:
          bytes[place] = char(random.below(256));
          break;
        case 1:
          bytes[place] = char(bytes[place] ^ (1 << random.below(8)));
          break;
        case 2:
          bytes.resize(place + 1);
          break;
        case 3:
          bytes.insert(place, 1 + random.below(9), char(random.below(256)));
          break;
        default:
          bytes.erase(place, 1 + random.below(9));
          break;
      }
      if (bytes.empty()) bytes = "x";
    }
    try {
      const auto a = parse(bytes);
      const auto count = std::visit([](const auto& v) { return v.size(); }, a.values);
      CHECK(static_cast<std::int64_t>(count) == a.extents.size());
      ++accepted;
    } catch (const file_error& e) {
      CHECK(contains(e.what(), "digits.idx: "));
      ++refused;
    }
  }
  CHECK(accepted > 20);
  CHECK(refused > 1000);
}

TEST_CASE("read_mnist finds the files with and without .gz, and scales the images") {
  const temporary_directory dir;
  std::string pixels(2 * 28 * 28, '\0');
  pixels[0] = char(255);
  pixels[28 * 28 + 1] = char(51);
  dir.write("t10k-images-idx3-ubyte", file_of(0x0803, {2, 28, 28}, pixels));
  dir.write("t10k-labels-idx1-ubyte.gz", gzip(file_of(0x0801, {2}, {7, 3})));
  const auto d = read_mnist(dir.path, part::test);
  CHECK(d.column<0>().extents() == shape{2, 1, 28, 28});
  CHECK(d.column<0>()[0] == doctest::Approx((1 - 0.1307) / 0.3081));
  CHECK(d.column<0>()[1] == doctest::Approx(-0.1307 / 0.3081));
  CHECK(d.column<0>()[28 * 28 + 1] == doctest::Approx((0.2 - 0.1307) / 0.3081));
  CHECK(d.column<1>()[0] == 7);
  CHECK(d.column<1>()[1] == 3);
  const auto raw = read_mnist(dir.path, part::test, {.scaling = {}});
  CHECK(raw.column<0>()[0] == 1);
  CHECK_THROWS_WITH_AS(read_mnist(dir.path, part::train), doctest::Contains("neither"), file_error);
}

TEST_CASE("read_mnist takes the file beside what only has its name, and says what is no file") {
  const temporary_directory dir;
  const auto plain = dir.path / "train-images-idx3-ubyte";
  std::filesystem::create_directory(plain);
  dir.write("train-labels-idx1-ubyte", file_of(0x0801, {2}, {7, 3}));
  CHECK_THROWS_WITH_AS(read_mnist(dir.path, part::train), doctest::Contains("it is a directory"),
                       file_error);
  dir.write("train-images-idx3-ubyte.gz", gzip(file_of(0x0803, {2, 2, 2}, std::string(8, 'x'))));
  CHECK(read_mnist(dir.path, part::train).size() == 2);
  std::filesystem::remove(plain);
  REQUIRE(::mkfifo(plain.c_str(), 0600) == 0);
  CHECK(read_mnist(dir.path, part::train).size() == 2);
}

TEST_CASE("read_mnist passes its limit on and refuses a scaling by nothing") {
  const temporary_directory dir;
  dir.write("train-images-idx3-ubyte.gz", gzip(file_of(0x0803, {2, 2, 2}, std::string(8, 'x'))));
  dir.write("train-labels-idx1-ubyte", file_of(0x0801, {2}, {7, 3}));
  CHECK_THROWS_WITH_AS(read_mnist(dir.path, part::train, {.max_unpacked_bytes = 7}),
                       doctest::Contains("at most 7 may be unpacked"), file_error);
  CHECK(read_mnist(dir.path, part::train, {.max_unpacked_bytes = 8}).size() == 2);
  CHECK_THROWS_WITH_AS(read_mnist(dir.path, part::train, {.scaling = {.deviation = 0}}),
                       doctest::Contains("the deviation is 0"), error);
}

TEST_CASE("read_mnist refuses files that do not belong together") {
  const temporary_directory dir;
  const std::string images = file_of(0x0803, {2, 2, 2}, std::string(8, 'x'));
  dir.write("train-images-idx3-ubyte", images);
  dir.write("train-labels-idx1-ubyte", file_of(0x0801, {3}, {1, 2, 3}));
  CHECK_THROWS_WITH_AS(read_mnist(dir.path, part::train),
                       doctest::Contains("2 images need as many labels"), file_error);
  dir.write("train-labels-idx1-ubyte", file_of(0x0801, {2}, {1, 10}));
  CHECK_THROWS_WITH_AS(read_mnist(dir.path, part::train), doctest::Contains("label 1 is 10"),
                       file_error);
  CHECK(read_mnist(dir.path, part::train, {.classes = 11}).size() == 2);
  dir.write("train-images-idx3-ubyte", file_of(0x0801, {2}, {1, 2}));
  CHECK_THROWS_WITH_AS(read_mnist(dir.path, part::train), doctest::Contains("u8 [N,H,W]"),
                       file_error);
}
