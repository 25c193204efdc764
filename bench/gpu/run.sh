#!/usr/bin/env bash
# Measures on a machine with a GPU what can only be measured there: one command, under four minutes.
#
#   bench/gpu/run.sh [--keep]
#
# It needs nvcc, g++ and the libraries of zstd and LZ4; nothing is downloaded. It prints a table and writes
# JSON to build/gpu; --keep copies that to bench/gpu/results, named by date and card. Exit status: 0 all was
# measured and right, 1 something was wrong, 3 there is no GPU or no compiler: then nothing is written.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
here=$root/bench/gpu
out=$root/build/gpu
keep=0
[ "${1:-}" = --keep ] && keep=1

missing() {
  echo "bench/gpu/run.sh: $*; nothing was measured" >&2
  exit 3
}
if [ -n "${CUDA_VISIBLE_DEVICES+set}" ] && [ -z "${CUDA_VISIBLE_DEVICES}" ]; then
  missing "no GPU: CUDA_VISIBLE_DEVICES hides every one"
fi
card=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -1)
[ -n "$card" ] || missing "no GPU: nvidia-smi lists none"
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null) || missing "no nvcc on this machine"
toolkit=$(cd "$(dirname "$(readlink -f "$nvcc")")/.." && pwd)
architecture=sm_$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -1 | tr -d .)

mkdir -p "$out"
lines=$out/figures.txt
: >"$lines"
wrong=0

# part NAME SECONDS COMMAND...: its figures join the rest; what it says goes to a log.
part() {
  local name=$1 limit=$2
  shift 2
  echo "-- $name" >&2
  timeout "$limit" "$@" >"$out/part.txt" 2>"$out/$name.log"
  local status=$?
  grep -P '^(figure|not run)\t' "$out/part.txt" >>"$lines"
  if [ $status -ne 0 ]; then
    printf 'not run\t%s\tended with %s: %s\t\n' "$name" $status "$(tail -1 "$out/$name.log")" >>"$lines"
    wrong=1
  fi
}

echo "-- building for $card ($architecture)" >&2
includes=(-I"$root/daemon" -I"$root/policies/include" -I"$root/client_lib/include" -I"$root/test" -I"$here")
sources=("$root"/daemon/device/cuda/*.cc "$root"/daemon/device/cuda/ptx/*.cc
  "$root"/daemon/device/preparation_line.cc)
host=(g++ -std=c++20 -O2 -g -isystem "$toolkit/include" "${includes[@]}")
libraries=(-L"$toolkit/lib64" -lcudart_static -lzstd -llz4 -lpthread -ldl -lrt)
"$nvcc" -std=c++17 -O2 -arch=compute_75 -ptx -o "$out/kernels.ptx" "$here/kernels.cu" &&
  "$nvcc" -std=c++17 -O2 -arch="$architecture" -o "$out/driver_figures" "$here/driver_figures.cu" &&
  "$nvcc" -std=c++17 -O2 -arch="$architecture" -o "$out/recovery" "$here/recovery.cu" ||
  { echo "bench/gpu/run.sh: the CUDA programs do not build" >&2; exit 1; }
# The device's sources once, side by side.
mkdir -p "$out/objects"
printf '%s\n' "${sources[@]}" | xargs -P "$(nproc)" -I{} sh -c \
  '"$@" -c "{}" -o "'"$out"'/objects/$(echo "{}" | md5sum | cut -c1-12).o"' sh "${host[@]}" ||
  { echo "bench/gpu/run.sh: the device does not build" >&2; exit 1; }
"${host[@]}" "$here/device_figures.cc" "$out"/objects/*.o -o "$out/device_figures" "${libraries[@]}" ||
  { echo "bench/gpu/run.sh: device_figures does not build" >&2; exit 1; }

if "${host[@]}" "$root/test/device/cuda_contract_test.cc" "$out"/objects/*.o -o "$out/contract" "${libraries[@]}" \
  -lgmock_main -lgmock -lgtest 2>"$out/contract_build.log"; then
  echo "-- contract" >&2
  timeout 60 "$out/contract" >"$out/contract.log" 2>&1
  status=$?
  # Where it could open no device every test is skipped.
  passed=$(grep -c '^\[       OK' "$out/contract.log")
  failed=$(grep -c '^\[  FAILED  \] .*ms)$' "$out/contract.log")
  printf 'figure\tdevice contract: tests passed\t%s\t\nfigure\tdevice contract: tests failed\t%s\t\n' \
    "$passed" "$failed" >>"$lines"
  [ $status -eq 0 ] && [ "$passed" -gt 0 ] || wrong=1
else
  printf 'not run\tdevice contract\tno GoogleTest to build it with\t\n' >>"$lines"
fi
part device_figures 90 "$out/device_figures" "$out/kernels.ptx"
part driver_figures 60 "$out/driver_figures"
part recovery 30 "$out/recovery"
daemon=$root/build/release/bin
if [ -x "$daemon/gpuschedd" ] && [ -x "$daemon/gpusched-gpu-shares" ]; then
  part shares 30 "$daemon/gpusched-gpu-shares" "$daemon/gpuschedd" "$out/kernels.ptx"
else
  printf 'not run\tshares through the daemon\tnot built: ./dev build\t\n' >>"$lines"
fi

# A figure that came to nothing (nan, inf, nothing at all) stands as "-", in JSON as null.
awk -F'\t' '{ printf "%-72s %12s %s\n", $2, ($1 != "figure" ? "not run" : $3 ~ /^-?[0-9]/ ? $3 : "-"), ($1 == "figure" ? $4 : $3) }' "$lines"
json=$out/figures.json
awk -F'\t' -v card="$card" -v date="$(date -u +%Y-%m-%d)" -v commit="$(git -C "$root" rev-parse --short HEAD 2>/dev/null)" '
  function quoted(text) { gsub(/\\/, "\\\\", text); gsub(/"/, "\\\"", text); return "\"" text "\"" }
  BEGIN { printf "{\"card\": %s, \"date\": %s, \"commit\": %s, \"figures\": [", quoted(card), quoted(date), quoted(commit) }
  { printf "%s\n  {\"what\": %s, ", (NR > 1 ? "," : ""), quoted($2)
    if ($1 == "figure") printf "\"value\": %s, \"unit\": %s}", ($3 ~ /^-?[0-9]/ ? $3 : "null"), quoted($4)
    else printf "\"not_run\": %s}", quoted($3) }
  END { print "\n]}" }' "$lines" >"$json"
echo "written to $json" >&2
if [ $keep -eq 1 ]; then
  mkdir -p "$here/results"
  cp "$json" "$here/results/$(date -u +%Y-%m-%d)-$(echo "${card%%,*}" | tr ' /' '--').json"
fi
exit $wrong
