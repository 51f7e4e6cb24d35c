"""Runs all cases; words on the command line pick those whose name contains one of them."""

from harness.report import Report

from . import cuts, jetstream, settings, shapes, traffic, trouble
from .stage import Stage


def in_shapes(report: Report, made: dict, cases: dict, play):
    """Each shape is built once for all its cases, and only when one of them is wanted."""
    for where, make in made.items():
        wanted = [name for name in cases if report.wants(f"{where}: {name}")]
        if not wanted:
            continue
        with Stage() as stage:
            try:
                shape = make(stage)
                shapes.ready(shape)
            except Exception as error:
                report.fail(f"{where}: to be built at all", repr(error))
                continue
            for name in wanted:
                report.run(f"{where}: {name}", play, shape, cases[name])


def main():
    report = Report("leaf")
    in_shapes(report, shapes.SHAPES, traffic.CASES, traffic.in_both_directions)
    jetstream_shapes = {f"JetStream, {where}": make for where, make in jetstream.SHAPES.items()}
    in_shapes(report, jetstream_shapes, jetstream.CASES, jetstream.in_both_directions)
    settings.run(report)
    trouble.run(report)
    cuts.run(report)
    report.end()


main()
