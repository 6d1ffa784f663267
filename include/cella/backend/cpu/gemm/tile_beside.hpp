// Register tiles, and what is asked for while they are computed.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/gemm/tile.hpp>
#include <cstdint>

namespace cella::cpu::detail {

/// A tile that asks for what is `next` and for `rows`.
template <tile_form Form, class T>
void multiply_beside(int height, int vectors, const tile_task<T>& task, side_prefetch& next,
                     side_rows& rows) {
  if (is_large_tile<T>(height, vectors)) {
    rows.spread(task.depth);
    side_pair both{rows, next};
    multiply_tile<Form>(height, task, both);
  } else {
    rows.ask(rows.steps);
    multiply_tile<tile_form::strided>(height, vectors, task);
  }
}

/// A tile that asks for A as it goes.
template <class T>
void multiply_ahead(int height, int vectors, const tile_task<T>& task, side_rows& rows) {
  rows.ask(rows.steps);
  if (is_large_tile<T>(height, vectors)) {
    side_ahead ahead{task.a, task.a_column};
    multiply_tile<tile_form::by_columns>(height, task, ahead);
  } else {
    multiply_tile<tile_form::strided>(height, vectors, task);
  }
}

/// The same of pairs, of which there are tiles of more than half the rows only: a smaller one is
/// cut out of one, in `room` for a whole tile, where it stays if C lies there.
template <class T>
void multiply_pairs(int height, int vectors, const tile_task<T>& task, side_prefetch& next,
                    side_rows& rows, T* room) {
  constexpr int L = lanes<T>, columns = register_tile<T>::columns;
  if (is_large_tile<T>(height, vectors)) {
    rows.spread(task.depth);
    side_pair both{rows, next};
    multiply_tile<tile_form::pairs>(height, task, both);
    return;
  }
  rows.ask(rows.steps);
  tile_task<T> larger = task;
  larger.c = room;
  larger.c_row = columns;
  larger.last = L;
  larger.accumulate = false;
  side_prefetch nothing;
  side_rows no_rows;
  side_pair neither{no_rows, nothing};
  multiply_tile<tile_form::pairs>(std::max(height, register_tile<T>::rows / 2 + 1), larger,
                                  neither);
  if (task.c != room)
    store_part(room, columns, height, (vectors - 1) * L + task.last, task.c, task.c_row,
               task.accumulate);
}

}  // namespace cella::cpu::detail
