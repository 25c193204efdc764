// Reads a session's source of work from YAML, and the recordings that it names.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/scenario.h"
#include "sim/yaml_map.h"

namespace gpusched::sim {

// One of the sessions that a source makes: most make one, without a name.
struct ParsedSource {
  std::string name;
  bool real_time = false;
  std::uint32_t queues = 1;  // at least
  SourceSpec source;
};

class SourceParser {
 public:
  SourceParser(std::string folder, Complaints& complaints, std::vector<std::string>& remarks)
      : folder_(std::move(folder)), complaints_(complaints), remarks_(remarks) {}

  // What is wrong is among the complaints.
  std::vector<ParsedSource> Parse(const YAML::Node&);

 private:
  struct Located {
    std::string path;
    bool generate = false;  // the workloads' folder is not there
  };
  std::optional<Located> Locate(YamlMap&, const std::string& key);
  void SayGenerated(const std::string& instead_of);
  // Tells of a loader's error; true: there was none.
  template <typename T>
  bool Take(Result<T> result, T& to);

  void ReadWork(YamlMap&, SourceSpec&);
  void ReadRate(YamlMap&, SourceSpec&);
  void ReadTrace(YamlMap&, SourceSpec&);
  void ReadReplay(YamlMap&, ParsedSource&);
  void ReadSteps(YamlMap&, SourceSpec&);
  std::vector<ParsedSource> ReadServeGen(YamlMap&, const SourceSpec& common);
  std::vector<ParsedSource> ReadDisb(YamlMap&, const SourceSpec& common);

  std::string folder_;
  Complaints& complaints_;
  std::vector<std::string>& remarks_;
};

}  // namespace gpusched::sim
