// One workload as a program of its own: what a user compiles who trains or runs that network.
// `compile_time.py` measures its compilation and its size.
//
// -DCELLA_WORKLOAD=lenet32 -DCELLA_WORKLOAD_SOURCE='"lenet32.cpp"' -DCELLA_WORKLOAD_WITHOUT_PROFILE
#include CELLA_WORKLOAD_SOURCE

#include <cstdio>

int main() {
  const auto start = cella::benchmark::clock::now();
  std::printf("third step after %g s\n",
              cella::benchmark::CELLA_WORKLOAD.measure(1, start).seconds_to_third_step);
}
