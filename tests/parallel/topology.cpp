// What is measured of a mesh: speeds that fit the times, the file they stand in, and what uses
// them.
#include <doctest/doctest.h>

#include <cella/parallel/measure_mesh.hpp>
#include <cella/parallel/thread_ranks.hpp>
#include <cella/parallel/topology.hpp>
#include <cstdio>
#include <filesystem>

#include "known_mesh.hpp"
#include "support/command.hpp"

using namespace cella;
using namespace cella::parallel;
using cella::test::known_mesh;

namespace {

template <class F>
std::string sentence(F f) {
  try {
    f();
  } catch (const error& e) { return e.what(); }
  return "none";
}

}  // namespace

TEST_CASE("speeds are those that made the times") {
  for (int ranks : {2, 3, 16})
    for (int k = int(move_kind::all_gather); k < move_kinds; ++k) {
      mesh_axis a{"data", ranks, 7e9, 3e-6};
      std::vector<timed_move> times;
      for (double bytes = 1024; bytes < 1e7; bytes *= 4)
        times.push_back({bytes, cost_of(move_kind(k), bytes, a, {}).seconds});
      const link_speed s = fitted_speed(move_kind(k), ranks, times);
      CHECK(s.bytes_per_second == doctest::Approx(7e9).epsilon(1e-6));
      CHECK(s.latency == doctest::Approx(3e-6).epsilon(1e-6));
    }
}

TEST_CASE("a measured collective operation costs what it took, the others what messages take") {
  mesh_axis a{"data", 4, 10e9, 5e-6};
  const double messages = cost_of(move_kind::all_reduce, 4e6, a, {}).seconds;
  CHECK(messages == doctest::Approx(6 * 5e-6 + 6e6 / 10e9));
  a.measured[std::size_t(move_kind::all_reduce)] = {2e9, 1e-6};
  CHECK(cost_of(move_kind::all_reduce, 4e6, a, {}).seconds == doctest::Approx(6e-6 + 6e6 / 2e9));
  CHECK(cost_of(move_kind::all_gather, 4e6, a, {}).seconds ==
        doctest::Approx(3 * 5e-6 + 12e6 / 10e9));
}

TEST_CASE("ranks measure their axes") {
  const device_mesh m = parse_mesh("data=2,model=1");
  thread_ranks ranks(m);
  ranks.run([&](int r, const communicator& c) {
    const device_mesh found = measure_axes(m, c, {.most_bytes = 1 << 16, .rounds = 3});
    const double least = smallest_of_ranks(m, c, r + 2.0);
    if (r > 0) return;
    CHECK(least == 2);
    // Between a slow network and the fastest cache.
    for (int k = int(move_kind::all_gather); k < move_kinds; ++k) {
      const link_speed s = found[0].speed(move_kind(k));
      CHECK(s.bytes_per_second > 1e6);
      CHECK(s.bytes_per_second <= 1e13);
      CHECK(s.latency < 0.1);
    }
    CHECK(found[0].bytes_per_second > 1e6);
    CHECK(found[0].overlap >= 0);
    CHECK(found[0].overlap <= 1);
    CHECK(found[1].latency == m[1].latency);
  });
}

TEST_CASE("a topology is written and read") {
  const device_mesh m = known_mesh();
  const std::string path =
      (std::filesystem::temp_directory_path() / "cella_topology.json").string();
  save_topology(m, path);
  const device_mesh n = load_topology(path);
  CHECK_FALSE(std::filesystem::exists(path + ".new"));
  std::remove(path.c_str());
  CHECK(topology_to_json(n) == topology_to_json(m));
  CHECK(n[0].overlap == 0.25);
  CHECK(n[1].started.bytes_per_second == 2e9);
  CHECK(n[0].speed(move_kind::all_reduce).latency == 4e-6);
  CHECK(n[0].speed(move_kind::all_gather).latency == 2.5e-6);
  CHECK(n.each.flops_per_second == 112e9);

  const device_mesh larger = with_topology(parse_mesh("model=8"), n);
  CHECK(larger.ranks() == 8);
  CHECK(larger[0].speed(move_kind::all_to_all).bytes_per_second == 3e9);
  CHECK(larger.each.memory_bytes == 12e9);
  CHECK(sentence([&] { with_topology(parse_mesh("pipe=2"), n); }) ==
        "topology: nothing is known of the axis pipe of the mesh pipe=2, only of data=4,model=2; "
        "measure "
        "a mesh that has it with cella-measure-mesh");
}

TEST_CASE("a header has a name and numbers of C++") {
  CHECK(topology_name("a/machine.hpp") == "topology_of_machine");
  CHECK(topology_name("2 old-boxes.hpp") == "topology_of_2_old_boxes");
  device_mesh m = known_mesh();
  m.axes[0].name = axis_name("a\"b");
  m.each.memory_bytes = 0x1p64;
  const std::string header = topology_to_header(m, "machine");
  CHECK(header.find("m.axes[0] = {.name = \"a\\\"b\", .size = 4};") != header.npos);
  CHECK(header.find("m.each.memory_bytes = 18446744073709551616.0;") != header.npos);
}

TEST_CASE("a file that is no topology is refused in a sentence") {
  const std::string json = topology_to_json(known_mesh());
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string s = json;
    const std::size_t at = s.find(from);
    REQUIRE(at != s.npos);
    s.replace(at, from.size(), to);
    return sentence([&] { topology_from_json(s); });
  };
  CHECK(with("\"size\": 4", "\"size\": 0") == "this mesh has an axis data of 0 ranks");
  CHECK(with("\"name\": \"model\"", "\"name\": \"data\"") == "this mesh has two axes called data");
  CHECK(with("2.5e-06", "-1") == "this mesh has -1 as latency");
  CHECK(with("0.25", "1.5") == "this mesh has 1.5 as overlap");
  CHECK(with("\"flops_per_second\": 112000000000.0", "\"flops_per_second\": 0") ==
        "this mesh has 0 as flops_per_second");
  CHECK(with("\"latency\"", "\"delay\"").starts_with("this is no topology: "));
  CHECK(sentence([] { topology_from_json("{\"axes\": []}"); }) == "this mesh has no axes");
  CHECK(sentence([] { topology_from_json("data=2"); }).starts_with("this is no topology: "));
  const std::string cause = ": there is no such file or folder; check the path";
  CHECK(sentence([] { load_topology("no such file"); }) == "cannot read \"no such file\"" + cause);
  CHECK(sentence([] { save_topology(known_mesh(), "/no such folder/t.json"); }) ==
        "cannot write \"/no such folder/t.json\"" + cause);
}

#ifdef CELLA_MEASURE_MESH_PROGRAM
TEST_CASE("cella-measure-mesh writes a topology, and says what it does not understand") {
  const auto path = std::filesystem::temp_directory_path() / "cella_measured.json";
  const std::string program = CELLA_MEASURE_MESH_PROGRAM;
  const auto [status, said] = cella::test::run_command(
      "'" + program + "' --threads-as-ranks --mesh data=2 --output '" + path.string() + "'");
  REQUIRE_MESSAGE(status == 0, said);
  CHECK(said.find("all_to_all") != said.npos);
  const device_mesh m = load_topology(path.string());
  std::filesystem::remove(path);
  CHECK(m[0].started.bytes_per_second > 0);
  CHECK(m.each.flops_per_second > 1e8);
  CHECK(m.each.memory_bytes > 1e7);
  CHECK(cella::test::run_command("'" + program + "' --axis data=2").status == 2);
}
#endif
