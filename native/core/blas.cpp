#include "core/blas.hpp"

#include <mutex>

#include "core/fork.hpp"

namespace hinge::blas {
namespace {

// The mutex is held across a fork, so that in the child it is free and the state it guards is consistent.
std::mutex serial_mutex;
int serial_depth = 0;
int threads_before = 1;
bool serial_after_fork = false;        // BLAS is still on one thread because of threads that the fork did not copy
thread_local int depth_of_thread = 0;  // serial sections this thread is in, counted in serial_depth

// In the child of a fork the other threads, and the serial sections they were in, do not exist.
void drop_other_threads() {
  serial_after_fork = serial_after_fork || (serial_depth > 0 && depth_of_thread == 0);
  serial_depth = depth_of_thread;
  serial_mutex.unlock();
}

[[maybe_unused]] const int serial_survives =
    at_fork([] { serial_mutex.lock(); }, [] { serial_mutex.unlock(); }, drop_other_threads);

int narrow(index_t x) { return static_cast<int>(x); }
template <class T>
T* unconst(const T* p) {
  return const_cast<T*>(p);  // Fortran interfaces take inputs by plain pointer
}

}  // namespace

Table& table() {
  static Table t;
  return t;
}

void gemm(char ta, char tb, index_t m, index_t n, index_t k, double alpha, const double* a, index_t lda,
          const double* b, index_t ldb, double beta, double* c, index_t ldc) {
  int M = narrow(m), N = narrow(n), K = narrow(k), LA = narrow(lda), LB = narrow(ldb), LC = narrow(ldc);
  table().dgemm(&ta, &tb, &M, &N, &K, &alpha, unconst(a), &LA, unconst(b), &LB, &beta, c, &LC);
}

void gemm(char ta, char tb, index_t m, index_t n, index_t k, float alpha, const float* a, index_t lda, const float* b,
          index_t ldb, float beta, float* c, index_t ldc) {
  int M = narrow(m), N = narrow(n), K = narrow(k), LA = narrow(lda), LB = narrow(ldb), LC = narrow(ldc);
  table().sgemm(&ta, &tb, &M, &N, &K, &alpha, unconst(a), &LA, unconst(b), &LB, &beta, c, &LC);
}

void syrk(char uplo, char trans, index_t n, index_t k, double alpha, const double* a, index_t lda, double beta,
          double* c, index_t ldc) {
  int N = narrow(n), K = narrow(k), LA = narrow(lda), LC = narrow(ldc);
  table().dsyrk(&uplo, &trans, &N, &K, &alpha, unconst(a), &LA, &beta, c, &LC);
}

void syrk(char uplo, char trans, index_t n, index_t k, float alpha, const float* a, index_t lda, float beta, float* c,
          index_t ldc) {
  int N = narrow(n), K = narrow(k), LA = narrow(lda), LC = narrow(ldc);
  table().ssyrk(&uplo, &trans, &N, &K, &alpha, unconst(a), &LA, &beta, c, &LC);
}

void trsm(char side, char uplo, char trans, char diag, index_t m, index_t n, double alpha, const double* a, index_t lda,
          double* b, index_t ldb) {
  int M = narrow(m), N = narrow(n), LA = narrow(lda), LB = narrow(ldb);
  table().dtrsm(&side, &uplo, &trans, &diag, &M, &N, &alpha, unconst(a), &LA, b, &LB);
}

void trsv(char uplo, char trans, char diag, index_t n, const double* a, index_t lda, double* x) {
  int N = narrow(n), LA = narrow(lda), one = 1;
  table().dtrsv(&uplo, &trans, &diag, &N, unconst(a), &LA, x, &one);
}

bool potrf(char uplo, index_t n, double* a, index_t lda) {
  int N = narrow(n), LA = narrow(lda), info = 0;
  table().dpotrf(&uplo, &N, a, &LA, &info);
  return info == 0;
}

void potrs(char uplo, index_t n, index_t nrhs, const double* a, index_t lda, double* b, index_t ldb) {
  int N = narrow(n), R = narrow(nrhs), LA = narrow(lda), LB = narrow(ldb), info = 0;
  table().dpotrs(&uplo, &N, &R, unconst(a), &LA, b, &LB, &info);
}

SerialBlas::SerialBlas() {
  if (!table().set_threads) return;
  std::lock_guard lock(serial_mutex);
  ++depth_of_thread;
  if (serial_depth++ == 0) {
    if (!serial_after_fork) threads_before = table().get_threads();
    serial_after_fork = false;
    table().set_threads(1);
  }
}

SerialBlas::~SerialBlas() {
  if (!table().set_threads) return;
  std::lock_guard lock(serial_mutex);
  --depth_of_thread;
  if (--serial_depth == 0) table().set_threads(threads_before);
}

}  // namespace hinge::blas
