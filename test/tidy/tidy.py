"""Keeps the house in order: reads the sources and says which rule of daemon/README.md a line breaks.

Usage: tidy.py floors|calls|comments|words|size|readme|format|selftest ROOT
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77  # ctest shows it as skipped

SOURCES = (".h", ".cc", ".c")
OURS = ("bench", "client_lib", "daemon", "policies", "proto", "samples", "test")

# ---------------------------------------------------------------------------------------------------
# Floors: what the files of a folder may include. The longest folder that is a prefix decides. A name
# is one of our include roots' paths, or a system header's; a trailing "/" or "*" stands for anything.
STATUS = ["gpusched/status.h", "gpusched/reasons.h", "gpusched/units.h"]
POLICY_API = STATUS + ["gpusched/policy/"]
POLICIES = POLICY_API + ["catalog.h", "params.h", "round_robin.h", "weighted_share.h",
                         "preemptive_priority.h"]
PUBLIC = ["gpusched/*.h"]
WIRE = ["gpusched/v1/", "grpc/", "grpcpp/", "google/protobuf/", "grpc++/"]
POSIX = ["arpa/", "netinet/", "sys/", "dirent.h", "fcntl.h", "grp.h", "poll.h", "pthread.h", "pwd.h",
         "sched.h", "signal.h", "unistd.h", "linux/"]

FLOORS = {
    "client_lib/include": PUBLIC,
    "policies/include": POLICY_API,
    "policies": POLICIES,
    "daemon/core": POLICIES + ["core/"],
    "daemon/device": STATUS + POSIX + ["gpusched/policy/types.h", "device/", "yaml-cpp/"],
    "daemon/device/opencl": STATUS + POSIX + ["gpusched/policy/types.h", "device/", "CL/"],
    "daemon/device/cuda": STATUS + ["gpusched/policy/types.h", "device/", "cuda_runtime_api.h",
                                    "nvrtc.h", "dlfcn.h", "cxxabi.h"],
    "daemon/device/cuda/ptx": STATUS + ["gpusched/policy/types.h", "device/device.h",
                                        "device/cuda/ptx/", "zstd.h", "lz4.h"],
    "daemon/sim": POLICIES + ["core/", "sim/", "device/device.h", "device/virtual/", "yaml-cpp/",
                               "CLI/", "unistd.h", "sys/wait.h"],
    "daemon/telemetry": STATUS + ["gpusched/policy/types.h", "telemetry/", "spdlog/"],
    "daemon/executor": POLICY_API + POSIX + ["core/", "device/device.h", "executor/", "telemetry/",
                                             "boost/"],
    "daemon/control": POLICIES + POSIX + ["boost/", "core/", "device/device.h", "executor/", "control/",
                                          "telemetry/"],
    "daemon/rpc": POLICIES + POSIX + WIRE + ["core/", "device/device.h", "executor/", "control/",
                                             "rpc/", "telemetry/"],
    "client_lib/src": PUBLIC + WIRE + POSIX + ["src/"],
    "client_lib/ctl": PUBLIC + WIRE + POSIX + ["ctl/", "CLI/"],
    "samples": PUBLIC + ["gpusched/policy/", "common/", "kernels/"],
}
# Headers of the standard library that floors 0 to 2 may not use: a thread, lock, clock, file or random
# number there should be an event or an action.
NOT_IN_A_VALUE = ["thread", "mutex", "shared_mutex", "condition_variable", "future", "semaphore",
                  "atomic", "random", "ctime", "iostream", "fstream", "filesystem"]
VALUES = ("policies", "daemon/core")

# ---------------------------------------------------------------------------------------------------
# Banned calls: (name, pattern, folders, {file or folder allowed: why}).
CALLS = [
    ("a clock read",
     r"\b(steady_clock|system_clock|high_resolution_clock)\s*::\s*now\b|\bclock_gettime\s*\(|"
     r"\bgettimeofday\s*\(|\bstd::time\s*\(",
     ("daemon", "policies"),
     {
         "daemon/executor/clock.h": "the one now()",
         "daemon/device/device_clock.h": "the same clock, for a device's own waiter threads",
     }),
    ("a sleep", r"\b(sleep_for|sleep_until|usleep|nanosleep|sleep)\s*\(",
     ("daemon", "policies", "client_lib", "test"), {}),
    ("a random number", r"\b(rand|srand|random_device|mt19937(_64)?)\b",
     ("policies", "daemon/core", "daemon/executor", "daemon/control", "daemon/rpc"), {}),
    ("a thread, lock or log",
     r"\bstd::(thread|jthread|mutex|shared_mutex|recursive_mutex|lock_guard|unique_lock|scoped_lock|"
     r"condition_variable|atomic)\b|\bspdlog\b|\bprintf\s*\(|\bstd::c(out|err)\b",
     VALUES, {"daemon/core/check.h": "the last words of a process that found itself broken"}),
    ("floating point", r"\b(double|float)\b", VALUES,
     {"policies/params": "reads an operator's fraction and shows it again"}),
]

# A switch over an enum names every value, so that the compiler finds the one that is missing. Enums
# from the wire are open: any number may arrive, so there a default belongs.
OPEN_ENUMS = ("client_lib/src", "daemon/rpc")

# Words that promise later work; spelt apart so that this file does not hold them.
WORDS = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK"]) + r")\b")
WORDS_IN = SOURCES + (".py", ".sh", ".md", ".proto", ".txt", ".yaml", ".cmake", ".in", "")

# A sentence may begin with these.
NAMES_IN_LOWER_CASE = ("gpusched", "spdlog", "asio", "gRPC", "inotify")

# One file, one idea: beyond this it holds two.
MOST_LINES = 700


def ours(root, suffixes=SOURCES):
    """Every source of ours, as (path, path relative to the root)."""
    for folder in OURS:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and path.suffix in suffixes:
                yield path, path.relative_to(root).as_posix()


def is_within(name, folder):
    return name == folder or name.startswith(folder + "/") or (
        "." not in folder.rsplit("/", 1)[-1] and name.startswith(folder + "."))


def code_lines(text):
    """The lines with comments and the inside of literals blanked out."""
    pattern = re.compile(
        r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', re.DOTALL)

    def blank(match):
        found = match.group(0)
        newlines = "\n" * found.count("\n")
        return newlines if found.startswith(("/", "R")) else '""' + newlines
    return pattern.sub(blank, text).splitlines()


def matches(include, allowed):
    for name in allowed:
        if name.endswith("/") and include.startswith(name):
            return True
        if "*" in name and pathlib.PurePosixPath(include).match(name) and \
                include.count("/") == name.count("/"):
            return True
        if include == name:
            return True
    return False


def check_floors(root):
    for path, name in ours(root):
        folders = [folder for folder in FLOORS if is_within(name, folder)]
        if not folders:
            continue  # test, bench and the composition root may use everything
        allowed = FLOORS[max(folders, key=len)]
        is_value = any(is_within(name, folder) for folder in VALUES)
        for number, line in enumerate(path.read_text().splitlines(), 1):
            found = re.match(r'\s*#\s*include\s*(["<])([^">]+)[">]', line)
            if not found:
                continue
            quoted, include = found.group(1) == '"', found.group(2)
            if quoted and "/" not in include and (path.parent / include).exists():
                continue  # a neighbour
            if not quoted and "/" not in include and not include.endswith(".h"):
                if is_value and include in NOT_IN_A_VALUE:
                    yield f"{name}:{number}: <{include}> on a floor that is a value; " \
                          "make it an event or an action"
                continue  # standard library
            if not matches(include, allowed):
                yield f"{name}:{number}: {include} is not on a floor this folder may use"


def check_calls(root):
    for path, name in ours(root):
        lines = code_lines(path.read_text())
        for what, pattern, folders, exceptions in CALLS:
            if not any(is_within(name, folder) for folder in folders):
                continue
            if any(is_within(name, allowed) for allowed in exceptions):
                continue
            for number, line in enumerate(lines, 1):
                if re.search(pattern, line):
                    yield f"{name}:{number}: {what} has no place here: {line.strip()}"
        if name.startswith(("daemon/", "policies/", "client_lib/")) and \
                not name.startswith(OPEN_ENUMS):
            yield from defaults_over_enums(name, lines)
        if any(is_within(name, folder) for folder in VALUES):
            yield from walks_of_unordered(path, name, lines)


def defaults_over_enums(name, lines):
    over_enum = False
    for number, line in enumerate(lines, 1):
        if re.search(r"\bswitch\s*\(", line):
            over_enum = False
        if re.search(r"\bcase\s+(\w+::|k[A-Z])", line):
            over_enum = True
        if over_enum and re.search(r"\bdefault\s*:", line):
            yield f"{name}:{number}: a default in a switch over an enum hides a missing case"


def walks_of_unordered(path, name, lines):
    """A decision must be the same everywhere, so nothing walks a hash table; looking up is fine."""
    declared = set()
    for suffix in SOURCES:
        twin = path.with_suffix(suffix)
        if twin.exists():
            declared.update(re.findall(r"\bunordered_\w+<.*>\s+(\w+)\s*[;{=]", twin.read_text()))
    for number, line in enumerate(lines, 1):
        walked = re.findall(r"\bfor\s*\([^;)]*:\s*(\w+)\s*\)|\b(\w+)\.c?begin\(\)", line)
        for table in (first or second for first, second in walked):
            if table in declared:
                yield f"{name}:{number}: walks the unordered {table}: {line.strip()}"


def check_comments(root):
    for path, name in ours(root, SOURCES + (".proto",)):
        comment = []
        for line in path.read_text().splitlines():
            if not line.startswith("//") or line.strip() == "//":
                break
            comment.append(line[2:].strip())
        sentence = " ".join(comment)
        if not comment:
            yield f"{name}:1: begins without a comment that says its one idea"
        elif sentence[0].islower() and not sentence.startswith(NAMES_IN_LOWER_CASE):
            yield f"{name}:1: the first comment is not a sentence: {sentence}"
        elif not sentence.endswith((".", ":")):
            yield f"{name}:1: the first comment does not end as a sentence: {sentence}"


def check_words(root):
    for path in [root / "dev", root / "README.md", root / "CMakeLists.txt"] + \
            [path for path, _ in ours(root, WORDS_IN)]:
        if not path.exists():
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            if WORDS.search(line):
                yield f"{path.relative_to(root)}:{number}: do it or delete it: {line.strip()}"


def check_size(root):
    for path, name in ours(root):
        lines = len(path.read_text().splitlines())
        if lines > MOST_LINES and not name.startswith("test/"):
            yield f"{name}: {lines} lines; what two ideas does it hold?"


def check_readme(root):
    """What the programs know, the README tells: configuration keys, policies, promises, commands."""
    readme = (root / "README.md").read_text() if (root / "README.md").exists() else ""
    told_by = [
        ("configuration key", "daemon/config_keys.cc", r'ConfigKey\{\s*"([\w.]+)"'),
        ("policy", "policies/*.cc", r'\.name = "(\w+)"'),
        ("promise", "bench/promises/registry.cc", r'\{\s*(?:\.name = )?"(\w+)"'),
        ("command of ./dev", "dev", r"^  (\w+)(?: \|.*)?\) (?:run_|build|format)"),
    ]
    for what, where, pattern in told_by:
        for path in sorted(root.glob(where)):
            for name in re.findall(pattern, path.read_text(), re.MULTILINE):
                if not re.search(r"[`/ ]" + re.escape(name) + r"\b", readme):
                    yield f"README.md does not tell the {what} '{name}' of {path.relative_to(root)}"


def check_format(root):
    clang_format = shutil.which("clang-format")
    if clang_format is None:
        print("clang-format is not installed (Debian: clang-format)")
        sys.exit(SKIPPED)
    files = [str(path) for path, _ in ours(root)]
    result = subprocess.run([clang_format, "--dry-run", "-Werror", *files], capture_output=True,
                            text=True, check=False)
    for line in result.stderr.splitlines():
        if "error:" in line:
            yield line.replace(str(root) + "/", "") + " (./dev format mends it)"


# Every rule with a source that breaks it: (check, file, text).
MUTANTS = [
    ("floors", "daemon/core/a.cc", '// An idea.\n#include "device/device.h"\n'),
    ("floors", "daemon/core/a.cc", "// An idea.\n#include <mutex>\n"),
    ("floors", "daemon/core/a.cc", "// An idea.\n#include <spdlog/spdlog.h>\n"),
    ("floors", "policies/a.cc", '// An idea.\n#include "core/scheduler.h"\n'),
    ("floors", "daemon/device/a.cc", '// An idea.\n#include "core/job.h"\n'),
    ("floors", "daemon/device/virtual/a.cc", "// An idea.\n#include <CL/cl.h>\n"),
    ("floors", "daemon/device/a.cc", "// An idea.\n#include <cuda_runtime_api.h>\n"),
    ("floors", "daemon/executor/a.cc", "// An idea.\n#include <grpcpp/grpcpp.h>\n"),
    ("floors", "daemon/executor/a.cc", '// An idea.\n#include "device/backends.h"\n'),
    ("floors", "daemon/control/a.cc", '// An idea.\n#include "gpusched/v1/admin.pb.h"\n'),
    ("floors", "client_lib/src/a.cc", '// An idea.\n#include "catalog.h"\n'),
    ("floors", "client_lib/include/gpusched/a.h", "// An idea.\n#include <grpcpp/grpcpp.h>\n"),
    ("floors", "samples/a/a.cc", '// An idea.\n#include "core/job.h"\n'),
    ("calls", "daemon/rpc/a.cc", "// An idea.\nauto t = std::chrono::steady_clock::now();\n"),
    ("calls", "test/a.cc", "// An idea.\nvoid f() { std::this_thread::sleep_for(d); }\n"),
    ("calls", "daemon/core/a.cc", "// An idea.\nint f() { return rand(); }\n"),
    ("calls", "policies/a.cc", "// An idea.\nstd::mutex m;\n"),
    ("calls", "daemon/core/a.cc", "// An idea.\ndouble share;\n"),
    ("calls", "daemon/core/a.cc", "// An idea.\nstd::unordered_map<int, int> m;\nfor (auto& e : m) {\n"),
    ("calls", "daemon/core/a.cc", "// An idea.\nswitch (e) {\n  case E::kA: break;\n  default: break;\n}\n"),
    ("comments", "daemon/core/a.cc", "#include <map>\n"),
    ("comments", "daemon/core/a.cc", "// no sentence\n"),
    ("words", "daemon/core/a.cc", "// An idea.\n// TO" + "DO: later.\n"),
    ("readme", "daemon/config_keys.cc", 'ConfigKey{"device.unheard_of", false'),
    ("size", "daemon/core/a.cc", "// An idea.\n" * (MOST_LINES + 1)),
    ("format", "daemon/core/a.cc", "// An idea.\nint   a ;\n"),
]
# And what none of them may take for a breach.
CLEAN = [
    ("daemon/core/a.cc", '// An idea: "steady_clock::now()" and rand() in words.\n'
                         '#include "core/job.h"\n#include "gpusched/policy/policy.h"\n\n'
                         "#include <map>\n\nstd::unordered_map<int, int> m;\n// rand(), double.\nconst char* text = \"sleep(1)\";\n"),
    ("daemon/executor/clock.h", "// An idea.\n#pragma once\nauto t = std::chrono::steady_clock::now();\n"),
    ("daemon/sim/a.cc", "// An idea.\nswitch (n) {\n  case 1: break;\n  default: break;\n}\n"),
    ("samples/a/a.cc", "// An idea.\n#include <gpusched/client.h>\n"),
]


def check_selftest(_root):
    own_format = pathlib.Path(__file__).resolve().parents[2] / ".clang-format"

    def breaches(check, name, text):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            shutil.copy(own_format, root / ".clang-format")
            (root / name).parent.mkdir(parents=True)
            (root / name).write_text(text)
            return list(CHECKS[check](root))
    for check, name, text in MUTANTS:
        if check == "format" and shutil.which("clang-format") is None:
            continue
        if not breaches(check, name, text):
            yield f"the check '{check}' misses this in {name}: {text[:80]!r}"
    for name, text in CLEAN:
        for check in ("floors", "calls", "comments", "words", "size"):
            for breach in breaches(check, name, text):
                yield f"the check '{check}' is wrong about {name}: {breach}"


CHECKS = {
    "floors": check_floors,
    "calls": check_calls,
    "comments": check_comments,
    "words": check_words,
    "size": check_size,
    "readme": check_readme,
    "format": check_format,
    "selftest": check_selftest,
}


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in CHECKS:
        print(__doc__)
        return 2
    breaches = list(CHECKS[sys.argv[1]](pathlib.Path(sys.argv[2]).resolve()))
    for breach in breaches:
        print(breach)
    return 1 if breaches else 0


sys.exit(main())
