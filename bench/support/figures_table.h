// Prints windows' figures as one table for people.
#pragma once

#include <string>
#include <vector>

#include "support/beside_update.h"
#include "support/percentile.h"

namespace gpusched::bench {

class FiguresTable {
 public:
  FiguresTable();
  // A row for each service of the window.
  void Add(const std::string& run, const WindowFigures& figures);
  std::string Text() const;

 private:
  void AddService(const std::string& run, const ServiceFigures& figures);
  std::vector<std::vector<std::string>> rows_;
};

// "12.3 ms", "> 4.2 s" where it is only known to be longer, "no answer", "-" of nothing.
std::string FormatLatency(const Measured& latency, std::size_t of);
// "12.3 %".
std::string FormatPart(double part);

}  // namespace gpusched::bench
