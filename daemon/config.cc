// Walks the document, key by key of the table, and gathers every fault with its place.
#include "config.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "catalog.h"
#include "config_keys.h"
#include "device/backends.h"

namespace gpusched::daemon {
namespace {

constexpr int kVersion = 1;

class Reader {
 public:
  explicit Reader(const Overrides& overrides) : overrides_(overrides) {}

  ReadConfig Read(const std::optional<std::string>& text) {
    std::vector<YAML::Node> documents;
    try {
      if (text) documents = YAML::LoadAll(*text);
    } catch (const YAML::Exception& broken) {
      Fault("", broken.msg, broken.mark);
      return std::move(read_);
    }
    if (text) ReadFirst(documents);
    Override();
    CheckPolicy();
    CheckDevice();
    std::stable_sort(read_.faults.begin(), read_.faults.end(), [](const auto& a, const auto& b) {
      return std::pair(a.line, a.column) < std::pair(b.line, b.column);
    });
    return std::move(read_);
  }

 private:
  Config& config() { return read_.config; }

  void Fault(const std::string& key, const std::string& message, const YAML::Mark& mark) {
    read_.faults.push_back({key, message, mark.line + 1, mark.column + 1});
  }

  void ReadFirst(const std::vector<YAML::Node>& documents) {
    if (documents.empty() || documents.front().IsNull()) {
      return Fault("version", "is missing, the document is empty; write version: 1", YAML::Mark());
    }
    ReadDocument(documents.front());
    if (documents.size() > 1) {
      Fault("", "a second document follows after ---; a file holds one", documents[1].Mark());
    }
  }

  void ReadDocument(const YAML::Node& document) {
    if (!document.IsMap()) return Fault("", "the document must be a map of keys", document.Mark());
    bool versioned = false;
    ForEach(document, "",
            [&](const std::string& key, const YAML::Node& at, const YAML::Node& value) {
              marks_[key] = at.Mark();
              if (key == "version") {
                versioned = true;
                if (!value.IsScalar() || value.Scalar() != std::to_string(kVersion)) {
                  Fault(key, "must be " + std::to_string(kVersion) + ", the only version there is",
                        value.Mark());
                }
              } else if (key == "policy") {
                ReadPolicy(value);
              } else if (IsSection(key)) {
                ReadSection(key, value);
              } else {
                ReadKey(key, at, value);
              }
            });
    if (!versioned) Fault("version", "is missing; write version: 1", document.Mark());
  }

  static bool IsSection(const std::string& name) {
    return std::any_of(ConfigKeys().begin(), ConfigKeys().end(),
                       [&](const ConfigKey& key) { return key.name.starts_with(name + "."); });
  }

  void ReadSection(const std::string& section, const YAML::Node& value) {
    if (value.IsNull()) return;
    if (!value.IsMap()) return Fault(section, "must be a map of keys", value.Mark());
    ForEach(value, section + ".",
            [&](const std::string& key, const YAML::Node& at, const YAML::Node& item) {
              ReadKey(key, at, item);
            });
  }

  void ReadKey(const std::string& name, const YAML::Node& at, const YAML::Node& value) {
    const auto keys = ConfigKeys();
    const auto key = std::find_if(keys.begin(), keys.end(), [&](const ConfigKey& candidate) {
      return candidate.name == name;
    });
    if (key == keys.end()) return Fault(name, UnknownKey(name), at.Mark());
    marks_[name] = value.Mark();
    if (const std::string fault = key->read(value, config()); !fault.empty()) {
      Fault(name, fault, value.Mark());
    }
  }

  // A section's keys are listed once.
  std::string UnknownKey(const std::string& name) {
    const std::string section = name.substr(0, name.find('.') + 1);
    if (!listed_.insert(section).second) return "is no key";
    std::string known;
    for (const ConfigKey& key : ConfigKeys()) {
      if (!section.empty() && !key.name.starts_with(section)) continue;
      known += (known.empty() ? "" : ", ") + std::string(key.name);
    }
    if (section.empty()) known = "version, policy, " + known;
    return "is no key; there are " + known;
  }

  // `policy:` holds the kind and, beside it, that kind's parameters.
  void ReadPolicy(const YAML::Node& value) {
    if (!value.IsMap()) return Fault("policy", "must be a map with a kind", value.Mark());
    ForEach(value, "policy.",
            [&](const std::string& key, const YAML::Node& at, const YAML::Node& item) {
              const std::string name = key.substr(key.find('.') + 1);
              marks_[key] = item.Mark();
              if (!item.IsScalar()) {
                Fault(key, "must be a single value", at.Mark());
              } else if (name == "kind") {
                config().policy.kind = item.Scalar();
              } else {
                config().policy.parameters[name] = item.Scalar();
              }
            });
  }

  template <typename Visit>
  void ForEach(const YAML::Node& map, const std::string& prefix, Visit visit) {
    std::set<std::string> seen;
    for (const auto& entry : map) {
      if (!entry.first.IsScalar()) {
        Fault(prefix, "a key must be a single word", entry.first.Mark());
        continue;
      }
      const std::string key = prefix + entry.first.Scalar();
      if (!seen.insert(key).second) {
        Fault(key, "is given twice", entry.first.Mark());
        continue;
      }
      visit(key, entry.first, entry.second);
    }
  }

  void OverrideKey(const std::string& name, const std::optional<std::string>& text,
                   const char* flag) {
    if (!text) return;
    for (const ConfigKey& key : ConfigKeys()) {
      if (key.name != name) continue;
      const std::string fault = key.read(YAML::Node(*text), config());
      if (!fault.empty()) read_.faults.push_back({flag, fault, 0, 0});
    }
  }

  // The command line wins over the document.
  void Override() {
    OverrideKey("device.kind", overrides_.device, "--device");
    OverrideKey("device.costs", overrides_.costs, "--costs");
    if (!overrides_.endpoints.empty()) config().listen.endpoints = overrides_.endpoints;
    OverrideKey("admin.endpoint", overrides_.admin, "--admin");
    OverrideKey("device.preemption_bound", overrides_.preemption_bound, "--preemption-bound");
    OverrideKey("log.level", overrides_.log_level, "--log-level");
    if (overrides_.devices) {
      OverrideKey("device.count", std::to_string(*overrides_.devices), "--devices");
    }
    if (!overrides_.policy) return;
    const std::string& text = *overrides_.policy;
    const std::size_t comma = text.find(',');
    config().policy.kind = text.substr(0, comma);
    std::vector<FieldError> errors;
    config().policy.parameters = comma == std::string::npos
                                     ? ParameterText{}
                                     : SplitParameters(text.substr(comma + 1), errors);
    for (const FieldError& error : errors) {
      read_.faults.push_back({"--policy " + error.field, error.message, 0, 0});
    }
  }

  void CheckPolicy() {
    const BuiltPolicy built = BuildPolicy(config().policy.kind, config().policy.parameters);
    for (const FieldError& error : built.errors) {
      const std::string key = "policy." + error.field;
      const auto mark = marks_.find(key);
      Fault(overrides_.policy ? "--policy " + error.field : key, error.message,
            mark == marks_.end() ? PolicyMark() : mark->second);
    }
    if (!built.ok()) return;
    config().policy.parameters = built.parameters;
    config().policy.canonical = built.canonical;
  }

  YAML::Mark PolicyMark() const {
    const auto mark = marks_.find("policy");
    return mark == marks_.end() ? YAML::Mark::null_mark() : mark->second;
  }

  void CheckDevice() {
    const std::vector<std::string> kinds = device::BackendKinds();
    const std::string& kind = config().device.kind;
    if (kind == "auto" || std::find(kinds.begin(), kinds.end(), kind) != kinds.end()) return;
    std::string known = "auto";
    for (const std::string& name : kinds) known += ", " + name;
    const auto mark = marks_.find("device.kind");
    Fault(overrides_.device ? "--device" : "device.kind",
          "'" + kind + "' is no kind of device; there are " + known,
          mark == marks_.end() || overrides_.device ? YAML::Mark::null_mark() : mark->second);
  }

  const Overrides& overrides_;
  ReadConfig read_;
  std::map<std::string, YAML::Mark> marks_;
  std::set<std::string> listed_;  // sections
};

}  // namespace

ReadConfig Read(const std::optional<std::string>& text, const Overrides& overrides) {
  return Reader(overrides).Read(text);
}

std::vector<std::string> NeedsRestart(const Config& running, const Config& next) {
  std::vector<std::string> keys;
  for (const ConfigKey& key : ConfigKeys()) {
    if (!key.live && key.show(running) != key.show(next)) keys.emplace_back(key.name);
  }
  return keys;
}

std::string KeyTable() {
  const Config defaults;
  std::string table = "key | values | default | live | meaning\n";
  table += "version | 1 | - | - | of this document; required\n";
  for (const ConfigKey& key : ConfigKeys()) {
    const std::string preset = key.show(defaults);
    table += std::string(key.name) + " | " + std::string(key.range) + " | " +
             (preset.empty() ? "-" : preset) + " | " + (key.live ? "yes" : "restart") + " | " +
             std::string(key.meaning) + "\n";
  }
  table += "policy.kind | " + PolicyNames() + " | " + defaults.policy.kind +
           " | yes | who gets the device; its parameters stand beside it\n";
  return table;
}

std::string Text(const ConfigFault& fault) {
  std::string text;
  if (fault.line > 0) {
    text = "line " + std::to_string(fault.line) + ", column " + std::to_string(fault.column) + ": ";
  }
  return text + fault.key + (fault.key.empty() ? "" : ": ") + fault.message;
}

}  // namespace gpusched::daemon
