// A graph that exists at run time only, planned when it is loaded and run on the kernels of
// compiled programs: what `executable` is for a graph that the compiler does not see.
#pragma once

#include <cella/backend/host/threads.hpp>
#include <cella/graph/graph.hpp>
#include <cella/graph/op_info.hpp>
#include <cstddef>
#include <iosfwd>
#include <memory>

namespace cella {

/// Runs the main region of a graph, whose inputs lie row-major in memory that the caller binds.
/// Calls allocate nothing, but for what loops of unknown length keep and for the levels of a
/// recursion, whose memory grows on first use. Serves one thread at a time. CELLA_DEBUG=nan and
/// CELLA_PROFILE say of it what they say of compiled programs; they are read when it is made.
///
/// The kernels take half a minute to compile, so that they are not in this header: link
/// `cella::kernels`, which is made of kernels.cpp.
class loaded_program {
 public:
  /// `g` has been through the passes. Its parameters are of type `element`, f32 or f64. `threads`
  /// may be null: then everything runs on the calling thread. Throws `error` with what `refusal`
  /// says.
  loaded_program(const graph& g, dtype element, thread_pool* threads = nullptr);
  loaded_program(loaded_program&&) noexcept;
  loaded_program& operator=(loaded_program&&) noexcept;
  ~loaded_program();

  /// Why a graph cannot be planned at run time; empty if it can. Elementwise operations of the
  /// user's own are left to compiled programs and the interpreter.
  static text refusal(const graph& g, dtype element);

  /// Where the main region's input `i` lies from now on, row-major; an input that the graph updates
  /// has its new value there after a call.
  void bind(int i, std::byte* at);
  /// To be called when parameters or states have other values than in the last call: what follows
  /// from them alone (packed weights) is made again. A graph that updates inputs keeps nothing, and
  /// what is bound to another place is noticed.
  void prepare_again();
  void operator()();
  /// Result `k` of the last call, row-major; valid until the next. Outputs that update an input are
  /// not among the results.
  tensor_ref result(int k) const;

  /// Prints the graph, the steps and the memory, as `explain` does for programs; `width` columns.
  void explain(std::ostream& out, std::size_t width = 100) const;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace cella
