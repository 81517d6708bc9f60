// What a static libstdc++ compiled for a newer glibc takes from it, for modules that run with older ones
// (old_glibc.cmake).
#include <sys/random.h>

#include <cstdint>
#include <cstdlib>

#pragma GCC visibility push(hidden)
extern "C" {

// libstdc++ skips atomic operations while this is true. False is right for any process.
char __libc_single_threaded = 0;

// The source of std::random_device.
std::uint32_t arc4random() {
  std::uint32_t bits;
  if (getentropy(&bits, sizeof bits) != 0) std::abort();
  return bits;
}
}
#pragma GCC visibility pop
