"""Prints the lines that `interop/run` reads: one per case, and a last one, which proves that the suite was
complete."""

import os
import sys
import traceback


class Report:
    def __init__(self, suite: str):
        self.suite = suite
        self.passed = 0
        self.failed = 0
        # Words on the command line select cases whose name contains them.
        self.patterns = sys.argv[1:]

    def wants(self, case: str) -> bool:
        return not self.patterns or any(pattern in case for pattern in self.patterns)

    def ok(self, case: str):
        self.passed += 1
        print(f"ok    {self.suite}: {case}", flush=True)

    def fail(self, case: str, why: str):
        self.failed += 1
        print(f"FAIL  {self.suite}: {case}", flush=True)
        for line in why.rstrip().splitlines():
            print(f"      {line}", flush=True)

    def run(self, case: str, function, *arguments, attempts: int = 1):
        """Runs one case, which fails by an exception. Several attempts are only for a reference server, never for
        the server under test."""
        if not self.wants(case):
            return
        for left in reversed(range(attempts)):
            try:
                function(*arguments)
            except Exception as error:
                # The innermost frame first. The outermost one is this function, and is omitted.
                frames = traceback.extract_tb(error.__traceback__)[:0:-1]
                where = ", ".join(f"line {frame.lineno} of {frame.name}" for frame in frames)
                why = f"{type(error).__name__}: {error} ({where})"
                if left == 0:
                    self.fail(case, why)
                else:
                    print(f"again {self.suite}: {case}: {why}", flush=True)
            else:
                self.ok(case)
                return

    def end(self):
        print(f"end   {self.suite}: {self.passed} passed, {self.failed} failed", flush=True)
        sys.exit(1 if self.failed else 0)


def check(condition, why: str):
    if not condition:
        raise AssertionError(why)


def equal(found, wanted, what: str):
    check(found == wanted, f"{what}: found {found!r}, wanted {wanted!r}")


def server_under_test() -> str:
    binary = os.environ.get("SERVER")
    if not binary:
        here = os.path.dirname(os.path.abspath(__file__))
        binary = os.path.join(here, "..", "..", "target", "release", "fanline")
    if not os.access(binary, os.X_OK):
        sys.exit(f"no server to test at {binary}: build it or set SERVER")
    return os.path.abspath(binary)


def reference_server() -> str:
    binary = os.environ.get("NATS_SERVER", "")
    if not os.access(binary, os.X_OK):
        sys.exit("NATS_SERVER must name a nats-server binary")
    return os.path.abspath(binary)


def is_reference() -> bool:
    """Returns whether the server under test is nats-server itself, to check the tests."""
    reference = os.environ.get("NATS_SERVER", "")
    return os.path.exists(reference) and os.path.samefile(reference, server_under_test())
