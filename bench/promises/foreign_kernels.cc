// Kernels of piglit, which nobody here wrote, through daemon and library beside the driver itself.
#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

#include "promises/opencl_stage.h"
#include "promises/piglit_folder.h"
#include "promises/straight.h"
#include "promises/table.h"
#ifdef GPUSCHED_HAVE_OPENCL
#include "support/piglit_file.h"
#endif

namespace gpusched::bench {

#ifdef GPUSCHED_HAVE_OPENCL
namespace {

using test::PiglitArgument;
using test::PiglitTest;
using Verdicts = std::vector<double>;  // of a file's tests: 1 passed, 0 not

constexpr std::size_t kFiles = 60;
constexpr std::uint64_t kSeed = 60;
// The compiler takes half a second a kernel, on each side; a minute is short.
constexpr std::size_t kMostKernels = 6, kMostKernelsFull = 64;

std::size_t KernelsIn(const std::string& source) {
  std::size_t count = 0;
  for (std::size_t at = source.find("kernel"); at != source.npos;
       at = source.find("kernel", at + 6))
    ++count;
  // Also in the tests' own entries, one each.
  for (std::size_t at = source.find("kernel_name"); at != source.npos;
       at = source.find("kernel_name", at + 11))
    --count;
  return count;
}

struct Foreign {
  std::string path;
  test::PiglitFile file;
};

// Chosen by the seed among those that can be read.
std::vector<Foreign> Choose(const std::vector<std::string>& paths, std::size_t count,
                            std::size_t most_kernels) {
  std::vector<Foreign> readable;
  for (const std::string& path : paths) {
    Result<test::PiglitFile> file = test::ReadPiglitFile(path);
    if (!file || KernelsIn(file->source) > most_kernels) continue;
    readable.push_back({path, *std::move(file)});
  }
  Random random(kSeed);
  for (std::size_t i = 0; i + 1 < readable.size(); ++i) {
    std::swap(readable[i], readable[i + random.Below(readable.size() - i)]);
  }
  if (readable.size() > count) readable.resize(count);
  return readable;
}

// The file's tests through a session of their own.
class ForeignSession {
 public:
  ForeignSession(Session session, Module module)
      : session_(std::move(session)), module_(std::move(module)) {}

  bool Passes(const PiglitTest& test) {
    Job job;
    std::vector<Argument> arguments;
    std::vector<Buffer> buffers;
    std::vector<std::vector<std::uint8_t>> got(test.arguments.size());
    for (const PiglitArgument& argument : test.arguments) {
      switch (argument.kind) {
        case PiglitArgument::Kind::kLocal: arguments.emplace_back(Local{argument.in.size()}); break;
        case PiglitArgument::Kind::kValue: arguments.push_back(ValueOf(argument.in)); break;
        case PiglitArgument::Kind::kBuffer: {
          Result<Buffer> buffer = session_.Allocate(argument.in.size());
          if (!buffer.ok()) return false;
          job.Write(*buffer, argument.in);
          arguments.emplace_back(*buffer);
          buffers.push_back(*std::move(buffer));
        }
      }
    }
    const auto [grid, block] = ShapeOf(test);
    job.LaunchWith(module_.kernel(test.kernel), grid, block, arguments);
    for (std::size_t i = 0, buffer = 0; i < test.arguments.size(); ++i) {
      if (test.arguments[i].kind != PiglitArgument::Kind::kBuffer) continue;
      got[i].resize(test.arguments[i].in.size());
      job.Read(buffers[buffer++], got[i]);
    }
    operations_ += job.size();
    Result<Submission> submission = session_.Submit(job);
    if (!submission.ok()) return false;
    const Result<JobReport> report = submission->Wait();
    if (!report.ok() || report->outcome != Outcome::kDone) return false;
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (test.arguments[i].kind == PiglitArgument::Kind::kBuffer &&
          !test.arguments[i].Accepts(got[i])) {
        return false;
      }
    }
    return true;
  }

  bool CanCut(const std::string& kernel) const {
    const auto& all = module_.kernels();
    return std::any_of(all.begin(), all.end(),
                       [&](const auto& info) { return info.name == kernel && info.cuttable; });
  }
  std::uint64_t id() const { return session_.id(); }
  std::uint64_t operations() const { return operations_; }  // so far, of jobs submitted

 private:
  static Argument ValueOf(const std::vector<std::uint8_t>& bytes) {
    const auto as = [&bytes]<typename T>(T value) {
      std::copy(bytes.begin(), bytes.end(), reinterpret_cast<std::uint8_t*>(&value));
      return Argument(value);
    };
    if (bytes.size() == 1) return as(std::uint8_t{});
    if (bytes.size() == 2) return as(std::uint16_t{});
    if (bytes.size() == 4) return as(std::uint32_t{});
    if (bytes.size() == 8) return as(std::uint64_t{});
    if (bytes.size() == 16) return as(std::array<std::uint64_t, 2>{});
    if (bytes.size() == 32) return as(std::array<std::uint64_t, 4>{});
    if (bytes.size() == 64) return as(std::array<std::uint64_t, 8>{});
    return as(std::array<std::uint64_t, 16>{});
  }
  // Where the driver may choose a block, blocks of one thread are the most there can be.
  static std::pair<Dim3, Dim3> ShapeOf(const PiglitTest& test) {
    Dim3 grid, block;
    const auto set = [&](std::uint32_t& blocks, std::uint32_t& threads, std::size_t d) {
      if (d >= test.dimensions) return;
      threads = std::max(test.local[d], 1u);
      blocks = test.global[d] / threads;
    };
    set(grid.x, block.x, 0);
    set(grid.y, block.y, 1);
    set(grid.z, block.z, 2);
    return {grid, block};
  }

  Session session_;
  Module module_;
  std::uint64_t operations_ = 0;
};

struct Tally {
  std::uint64_t tests = 0, passed = 0, can_be_cut = 0, operations = 0, commands = 0;
};

// A module that does not build fails every test, as straight.
Result<Verdicts> ThroughTheDaemon(OpenClStage& stage, const Foreign& foreign, Tally& tally) {
  const Result<Client> client = Client::Connect({.endpoint = stage.daemon().endpoint()});
  if (!client.ok()) return client.status();
  Result<Session> session = client->OpenSession({.name = "foreign"});
  if (!session.ok()) return session.status();
  Result<Module> module = session->LoadModule({.source = foreign.file.source});
  Verdicts verdicts(foreign.file.tests.size());
  if (!module.ok()) {
    const bool does_not_build = module.status().code() == StatusCode::kInvalidArgument;
    if (does_not_build) return verdicts;
    return module.status();
  }
  ForeignSession tests(*std::move(session), *std::move(module));
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    verdicts[i] = tests.Passes(foreign.file.tests[i]) ? 1 : 0;
    ++tally.tests;
    tally.passed += verdicts[i] == 1;
    tally.can_be_cut += tests.CanCut(foreign.file.tests[i].kernel);
  }
  const Result<std::vector<admin::Session>> sessions = stage.admin().Sessions();
  if (!sessions.ok()) return sessions.status();
  tally.operations += tests.operations();
  for (const admin::Session& each : *sessions) {
    if (each.id == tests.id()) tally.commands += each.commands;
  }
  return verdicts;
}

// Straight in a process of its own, which a kernel may take down.
class Reference {
 public:
  Result<Verdicts> Run(const Foreign& foreign) {
    if (!process_) {
      Result<std::unique_ptr<Straight>> started = Straight::Start();
      if (!started.ok()) return started.status();
      process_ = *std::move(started);
    }
    Result<Verdicts> verdicts = process_->Piglit(foreign.path);
    if (!verdicts.ok()) process_.reset();
    return verdicts;
  }

 private:
  std::unique_ptr<Straight> process_;
};

}  // namespace

Result<Measurement> MeasureForeignKernels(Length length) {
  const Result<std::vector<std::string>> paths = PiglitFiles();
  if (paths.status().code() == StatusCode::kNotFound) {
    return Measurement{{}, paths.status().message(), {}};
  }
  if (!paths.ok()) return paths.status();
  Result<std::unique_ptr<OpenClStage>> stage = OpenClStage::Raise();
  if (!stage.ok()) {
    if (auto lacks = LacksOpenCl(stage.status())) return Measurement{{}, *lacks, {}};
    return stage.status();
  }
  const bool full = length == Length::kFull;
  const std::vector<Foreign> chosen =
      Choose(*paths, full ? paths->size() : kFiles, full ? kMostKernelsFull : kMostKernels);
  Reference reference;
  Tally tally;
  double files = 0, different = 0;
  std::string remark;
  for (const Foreign& foreign : chosen) {
    const Result<Verdicts> straight = reference.Run(foreign);
    if (!straight.ok()) {  // it would take the daemon's device down, too
      remark += foreign.path + ": left out, it ends the process straight\n";
      continue;
    }
    Result<Verdicts> ours = ThroughTheDaemon(**stage, foreign, tally);
    if (!ours.ok()) return ours.status();
    if (*ours != *straight) {  // once more on both sides, for a flake
      const Result<Verdicts> again = reference.Run(foreign);
      Tally ignored;
      ours = ThroughTheDaemon(**stage, foreign, ignored);
      if (!ours.ok()) return ours.status();
      if (!again.ok() || *ours != *again) {
        ++different;
        remark += foreign.path + ": another verdict than straight\n";
      } else {
        remark += foreign.path + ": another verdict than straight at first, the same again\n";
      }
    }
    ++files;
  }
  char line[160];
  std::snprintf(
      line, sizeof line, "%llu tests, %llu passed; %llu of kernels that can be cut; %llu cuts made",
      static_cast<unsigned long long>(tally.tests), static_cast<unsigned long long>(tally.passed),
      static_cast<unsigned long long>(tally.can_be_cut),
      static_cast<unsigned long long>(tally.commands - tally.operations));
  return Measurement{
      .figures = {AtLeast("files compared", files, "", kFiles),
                  AtMost("files with another verdict", different, "", 0),
                  AtLeast("tests that pass",
                          100 * static_cast<double>(tally.passed) /
                              static_cast<double>(std::max<std::uint64_t>(1, tally.tests)),
                          "%", 50),
                  AtLeast("tests of kernels that can be cut",
                          100 * static_cast<double>(tally.can_be_cut) /
                              static_cast<double>(std::max<std::uint64_t>(1, tally.tests)),
                          "%", 90)},
      .not_run = {},
      .remark = remark + line};
}
#else
Result<Measurement> MeasureForeignKernels(Length) {
  return Measurement{
      {}, "built without OpenCL: apt-get install opencl-headers ocl-icd-opencl-dev", {}};
}
#endif

}  // namespace gpusched::bench
