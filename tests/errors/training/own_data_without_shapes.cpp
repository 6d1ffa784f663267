// expect: countdown is no data set yet: it needs data::sample_shapes<2> shapes() const, the
// expect: extents of each column of a sample
// expect-lines: 40
// A data set of one's own does not say how large its samples are.
#include <cella/data.hpp>

using namespace cella;

struct countdown : data::composable<countdown> {
  using sample = data::sample<float, std::int32_t>;
  std::int64_t size() const { return 5; }
  void read(data::position at, const sample& out) const {
    out.column<0>()[0] = float(at.index);
    out.column<1>()[0] = 1;
  }
};

int main() {
  for (auto& b : countdown{}.shuffle(1).batch(2).epoch(0)) (void)b;
}
