// What in a source text forbids building it, or running its kernels in parts, read without
// compiling it.
//
// A source must be whole: what it includes would be the daemon's files, and the compiler quotes
// lines of them; that they exist is told by __has_include. Nor may it hide from this reading what
// the compiler sees, or overflow the compiler's stack: the compiler is in the daemon. Then two
// questions. Would the prelude's renaming be undone or seen? Then it must be left out, and nothing
// of the module can be cut. Might a block of some kernel wait for another block? Groups of one
// launch that run side by side may do so; in a chunk, the other may not have started. Told by the
// loops: one that is not counted and that reads, in its condition or its body, what only others can
// change (a volatile, an atomic that changes nothing). Retries of compare-and-exchange are no such
// wait. The source's own macros are seen through. In doubt a kernel runs whole, which is always
// right and only less polite.
//
// Time and memory grow as the source's length, whatever it holds.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

namespace gpusched::device {

struct SourceScan {
  // Where it reads a file of the daemon's host, or asks whether one is there; "" if nowhere.
  std::string reads_file;
  // Why it must not come before a compiler at all: it could read files unseen, or end the compiler
  // and the daemon with it. "" if it may.
  std::string refused;
  // Why the prelude cannot go in front of this source; "" if it can.
  std::string no_prelude;
  // Why any of its kernels may wait for other blocks, for all that can be told; "" if that can be.
  std::string unsure;
  // Functions, kernels or not, that may wait for other blocks, and why in words.
  std::map<std::string, std::string> waits;
  // All functions, under the names that the text gives them.
  std::set<std::string> functions;

  // Why kernel `name` may wait; "" if it does not. One whose name is not in the text, as the
  // compiler made it, may be any of them.
  std::string WaitOf(const std::string& name) const;
};

SourceScan Scan(std::string_view source);

}  // namespace gpusched::device
