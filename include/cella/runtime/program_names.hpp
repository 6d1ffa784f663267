// The names of what runs compiled cells, for those who need no more of it.
#pragma once

#include <cella/graph/dtype.hpp>

namespace cella {

template <class Cell, bool Training, dtype Element, class... Arguments>
struct make_graph;
template <class Cell, bool Training, dtype Element, class... Arguments>
struct program;
template <class Program, class Backend = void>  // void: that of the program
class executable;

}  // namespace cella
