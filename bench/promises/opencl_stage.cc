// Starts the daemon on OpenCL and opens sessions that spin.
#include "promises/opencl_stage.h"

#include <utility>

namespace gpusched::bench {
namespace {

constexpr std::uint32_t kMostBlocks = 8'192;

}  // namespace

std::optional<std::string> LacksOpenCl(const Status& status) {
  // The driver's own words: the daemon, or a program straight on it, names the package.
  if (status.message().find("pocl-opencl-icd") == std::string::npos) return std::nullopt;
  return "no OpenCL platform: apt-get install pocl-opencl-icd";
}

Job SpinWorker::JobOf(const std::vector<Spin>& launches) const {
  Job job;
  for (const Spin& spin : launches) {
    job.Launch(module_.kernel("spin"), Dim3{spin.blocks}, Dim3{kSpinBlock}, buffer_, spin.rounds);
  }
  return job;
}

Result<std::unique_ptr<OpenClStage>> OpenClStage::Raise(std::vector<std::string> flags,
                                                        std::string yaml) {
  test::DaemonOptions options;
  options.flags = std::move(flags);
  options.flags.push_back("--device=opencl");
  options.yaml = std::move(yaml);
  Result<std::unique_ptr<test::DaemonProcess>> daemon =
      test::DaemonProcess::Start(std::move(options));
  if (!daemon.ok()) return daemon.status();
  Result<admin::AdminClient> admin = admin::AdminClient::Connect((*daemon)->admin_endpoint());
  if (!admin.ok()) return admin.status();
  return std::unique_ptr<OpenClStage>(new OpenClStage(*std::move(daemon), *std::move(admin)));
}

Result<std::unique_ptr<SpinWorker>> OpenClStage::Open(const std::string& name,
                                                      const DeclaredShare& share) {
  const Result<Client> client = Client::Connect({.endpoint = daemon_->endpoint()});
  if (!client.ok()) return client.status();
  Result<Session> session = client->OpenSession({.name = name, .share = share});
  if (!session.ok()) return session.status();
  Result<Module> module = session->LoadModule({.source = kSpinSource});
  if (!module.ok()) return module.status();
  Result<Buffer> buffer = session->Allocate(kMostBlocks * kSpinBlock * sizeof(float));
  if (!buffer.ok()) return buffer.status();
  return std::unique_ptr<SpinWorker>(
      new SpinWorker(*std::move(session), *std::move(module), *std::move(buffer)));
}

}  // namespace gpusched::bench
