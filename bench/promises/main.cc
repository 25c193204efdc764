// Command line of gpusched-promises: measures what the README promises, a line a figure.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "promises/report.h"
#include "promises/table.h"

namespace gpusched::bench {
namespace {

Told Measure(const Promise& promise, Length length) {
  const auto begin = std::chrono::steady_clock::now();
  Result<Measurement> measured = promise.measure(length);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  return {.promise = &promise, .measured = std::move(measured), .seconds = took.count()};
}

bool Wanted(const Promise& promise, const std::vector<std::string>& names) {
  return names.empty() || std::find(names.begin(), names.end(), promise.name) != names.end();
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const Promise& promise : AllPromises()) names.emplace_back(promise.name);
  return names;
}

void List() {
  for (const Promise& promise : AllPromises()) {
    std::cout << promise.name << ": " << promise.sentence << "\n";
  }
}

}  // namespace
}  // namespace gpusched::bench

int main(int argc, char** argv) {
  using namespace gpusched::bench;
  CLI::App app(
      "Measures what the README promises, from outside; exit status 0 only if none falls "
      "short.");
  std::vector<std::string> names;
  std::string json;
  bool full = false, list = false;
  app.add_option("name", names, "Only these promises")->check(CLI::IsMember(Names()));
  app.add_flag("--full", full, "As long as each promise says, not the short forms");
  app.add_option("--json", json, "Also write everything to this file, with machine and commit");
  app.add_flag("--list", list, "Name the promises and measure nothing");
  app.footer("Exit status: 0; 1 if a promise falls short; 2 for a wrong command line.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;  // --help is no mistake
  }
  if (list) {
    List();
    return 0;
  }

  const Length length = full ? Length::kFull : Length::kShort;
  std::vector<Told> all;
  for (const Promise& promise : AllPromises()) {
    if (!Wanted(promise, names)) continue;
    all.push_back(Measure(promise, length));
    TellPeople(std::cout, all.back());
  }
  TellSummary(std::cout, all);
  if (!json.empty()) {
    std::ofstream file(json);
    TellMachines(file, all, length);
    if (!file.flush()) {
      std::cerr << "gpusched-promises: cannot write " << json << "\n";
      return 1;
    }
  }
  return std::any_of(all.begin(), all.end(),
                     [](const Told& told) { return told.verdict() == Verdict::kFallsShort; });
}
