// From the form of a matrix product in a graph to the product that gemm takes.
#pragma once

#include <cella/backend/cpu/gemm/gemm.hpp>
#include <cella/ops/product_form.hpp>

namespace cella::cpu {

/// Computed in T, of operands that are stored as S.
template <class T, class S>
constexpr product<T, S> product_of(const product_form& f, const S* left, const S* right) {
  product<T, S> p;
  p.rows = int(f.rows);
  p.columns = int(f.columns);
  p.depth = int(f.depth);
  p.a = {f.exchanged ? right : left, f.a_row, f.a_depth};
  p.b = {f.exchanged ? left : right, f.b_depth, f.b_column};
  p.c_row = f.c_row;
  p.batch = int(f.batch);
  p.a_batch = f.a_batch;
  p.b_batch = f.b_batch;
  p.c_batch = f.c_batch;
  p.outer = int(f.outer);
  p.a_outer = f.a_outer;
  p.b_outer = f.b_outer;
  p.c_outer = f.c_outer;
  return p;
}

}  // namespace cella::cpu
