"""Runs all cases; words on the command line select cases whose name contains one of them."""

from harness.report import Report

from . import copies, cuts, interest, jetstream, settings, shapes, supercluster, traffic, trouble


def main():
    report = Report("leaf")
    shapes.run(report, shapes.SHAPES, traffic.CASES, traffic.in_both_directions)
    shapes.run(report, jetstream.SHAPES, jetstream.CASES, jetstream.in_both_directions)
    settings.run(report)
    trouble.run(report)
    cuts.run(report)
    copies.run(report)
    interest.run(report)
    supercluster.run(report)
    report.end()


main()
