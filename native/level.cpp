// The x86-64 level of this machine as an exit code, for CMake (HINGE_LEVELS=machine).
int main() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("x86-64-v4")) return 4;
  return __builtin_cpu_supports("x86-64-v3") ? 3 : 1;
}
