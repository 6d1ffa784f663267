// expect: countdown is no data set yet: it needs void read(data::position at, const sample& out)
// expect: const, which may be called by several threads
// expect-lines: 40
// A data set of one's own is read by a number.
#include <cella/data.hpp>

using namespace cella;

struct countdown : data::composable<countdown> {
  using sample = data::sample<float>;
  std::int64_t size() const { return 5; }
  data::sample_shapes<1> shapes() const { return {shape{1}}; }
  void read(int at, const sample& out) const { out.column<0>()[0] = float(at); }
};

int main() {
  for (auto& b : countdown{}.batch(2).epoch(0)) (void)b;
}
