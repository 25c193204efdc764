// A temporary folder that goes when the program has ended, however it ends.
#pragma once

#include <optional>

namespace gpusched::bench {

// Goes on in a child, whose TMPDIR is a new folder; waits here for its end and that of all it has
// started, and removes the folder. Passes on the signals that ask it to end. Only a SIGKILL of this
// very process leaves the folder; the child goes with it.
//
// The exit status here, 128 + the signal where one ended the child; nothing in the child, or where
// there is no place for a folder. Called before there are other threads.
std::optional<int> AwaitInScratchFolder();

}  // namespace gpusched::bench
