// A template for the size that comes first, which is every size of the main job; jobs for others.
#include "support/virtual_work.h"

#include <optional>
#include <utility>

namespace gpusched::bench {
namespace {

class LaunchesOfTime final : public Work {
 public:
  LaunchesOfTime(Session& session, Module module, VirtualWorkOptions options)
      : session_(session), module_(std::move(module)), options_(std::move(options)) {}

  Result<Submission> Submit(Duration asked, const SubmitOptions& submit_options) override {
    const auto job = [&] {
      return LaunchesOf(module_.kernel(options_.kernel), asked, options_.longest);
    };
    if (!template_) {
      Result<Template> made = session_.RegisterTemplate(job());
      if (!made.ok()) return made.status();
      template_.emplace(*std::move(made));
      of_template_ = asked;
    }
    return asked == of_template_ ? session_.Submit(*template_, submit_options)
                                 : session_.Submit(job(), submit_options);
  }

  Duration KernelTime(Duration asked) const override { return asked; }

 private:
  Session& session_;
  Module module_;
  VirtualWorkOptions options_;
  std::optional<Template> template_;
  Duration of_template_{0};
};

}  // namespace

MakeWork VirtualWork(const VirtualWorkOptions& options) {
  return [options](Session& session) -> Result<std::unique_ptr<Work>> {
    Result<Module> module = session.LoadModule({.virtual_text = kWorkModule});
    if (!module.ok()) return module.status();
    return std::unique_ptr<Work>(
        std::make_unique<LaunchesOfTime>(session, *std::move(module), options));
  };
}

}  // namespace gpusched::bench
