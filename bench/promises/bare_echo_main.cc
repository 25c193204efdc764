// gpusched-bare-echo ENDPOINT: the bare echo as a process, as the daemon is one.
#include "promises/bare_echo.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  return gpusched::bench::ServeBareEcho(argv[1]);
}
