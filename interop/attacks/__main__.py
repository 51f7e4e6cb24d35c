"""Runs all attacks, or those whose name contains a word of the command line."""

import importlib
import pkgutil

import attacks
from attacks.case import CASES
from harness.report import Report


def main():
    report = Report("attacks")
    for module in pkgutil.iter_modules(attacks.__path__):
        if module.name != "__main__":
            importlib.import_module(f"attacks.{module.name}")
    for case in CASES:
        report.run(f"{case.name} ({case.attacker})", case.play)
    report.end()


if __name__ == "__main__":
    main()
