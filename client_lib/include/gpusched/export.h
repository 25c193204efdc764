// Marks what libgpusched.so shows to its users; everything else in it is hidden.
#pragma once

#define GPUSCHED_EXPORT __attribute__((visibility("default")))
