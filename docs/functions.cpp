// Writes docs/functions.md: the errors of every function of one argument. Fails where one is larger
// than it may be.
//
// usage: functions FILE [numbers of each type]
#include <fstream>
#include <iomanip>
#include <iostream>
#include <string>
#include <support/function_errors.hpp>

namespace {

using namespace cella;
using namespace cella::test;

bool too_large = false;

template <class T>
void write(std::ostream& out, const worst_error<T>& e) {
  out << std::setprecision(3) << e.units << " | " << std::setprecision(7) << e.at << " | ";
  too_large |= !(e.units <= most_units);
}
template <class Op, class T>
void write_row(std::ostream& out, const std::vector<T>& x) {
  const function_errors<T> e = errors_of_function<Op, T>(x);
  out << "| `" << Op::name << "` | " << name(dtype_of<T>) << " | ";
  write(out, e.vector);
  write(out, e.scalar);
  constexpr units counted = units_of_errors<Op>;
  out << (counted == units::of_result ? "result"
          : counted == units::of_one  ? "1"
                                      : "operand")
      << " |\n";
}
void write_page(std::ostream& out, std::size_t count) {
  const auto single = numbers_of_whole_range<float>(count);
  const auto twice = numbers_of_whole_range<double>(count);
  out << "# How exact functions are\n\n"
         "Largest errors found, in units in the last place, on the machine that wrote this page; "
         "`ctest -R backend_cpu` checks that none\nis above "
      << most_units
      << " wherever it runs, special values included. What is exact is computed by MPFR (package "
         "`libmpfr-dev`), or in\n`long double` where tests are built without it. Written by\n\n"
         "```sh\ncmake --build build/release --target functions\n```\n\n"
         "Compiled programs compute vectors; eager mode, and a single number in a register, "
         "scalars. "
         "Small tensors in the registers of loops\nmay lie in vectors that are narrower than the "
         "processor's: those run on the SIMD library's functions and are not measured here.\n"
         "Denormal numbers count as zero in all of them, and results below the smallest normal "
         "number may be zero. The last column says whose\nlast place is counted in: both forms of "
         "gelu are right in the places of x, not in all digits of results that are nearly 0, and "
         "their\nslopes in those of 1.\n\n"
         "| function | type | vector | at | scalar | at | places of |\n"
         "| --- | --- | ---: | ---: | ---: | ---: | --- |\n";
  all_operations::for_each([&]<class Op>() {
    if constexpr (is_function<Op>) {
      write_row<Op>(out, single);
      write_row<Op>(out, twice);
    }
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::cerr << "usage: functions FILE [numbers of each type]\n";
    return 2;
  }
  std::ofstream out(argv[1]);
  write_page(out, argc == 3 ? std::stoul(argv[2]) : 100'000);
  out.close();
  if (!out) {
    std::cerr << argv[1] << " could not be written\n";
    return 1;
  }
  if (too_large) std::cerr << "an error is larger than " << most_units << " units\n";
  return too_large;
}
