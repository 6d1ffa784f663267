// From the form of a matrix product in a graph to the product that gemm takes.
#pragma once

#include <cella/backend/cpu/gemm.hpp>
#include <cella/passes/product_form.hpp>

namespace cella::cpu {

template <class T>
constexpr product<T> product_of(const product_form& f, const T* left, const T* right) {
  product<T> p;
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
  return p;
}

}  // namespace cella::cpu
