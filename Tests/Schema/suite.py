"""Runs all suites in this folder on the SQLite library that this Python has. Usage: suite.py [VERSION]

With VERSION it is an error when the library is another one. With SQLITE_MODULE=pysqlite3 in the environment that
module, which brings a library of its own, stands in for `sqlite3`. The last line reads `N passed, M failed`.
"""

import importlib
import os
import pathlib
import sys

if "SQLITE_MODULE" in os.environ:
    sys.modules["sqlite3"] = importlib.import_module(os.environ["SQLITE_MODULE"])

import sqlite3
import unittest

FOLDER = pathlib.Path(__file__).resolve().parent


def main():
    if len(sys.argv) > 1 and sqlite3.sqlite_version != sys.argv[1]:
        sys.exit(f"expected SQLite {sys.argv[1]}, this is {sqlite3.sqlite_version}")
    sys.path.insert(0, str(FOLDER))
    tests = unittest.defaultTestLoader.discover(str(FOLDER), "test_*.py")
    count = tests.countTestCases()
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=1).run(tests)
    # A failed subtest or a broken class counts once for its test.
    failed = {case.id().split(" ")[0] for case, _ in result.failures + result.errors}
    failed.update(case.id() for case in result.unexpectedSuccesses)
    print(f"SQLite {sqlite3.sqlite_version}: {len(result.skipped)} skipped")
    print(f"{max(0, count - len(failed) - len(result.skipped))} passed, {len(failed)} failed")
    sys.exit(0 if result.wasSuccessful() and count else 1)


main()
