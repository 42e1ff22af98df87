"""What was built, with the library's digest, so that who depends on it reruns with new kernels."""

import argparse
import hashlib
from pathlib import Path

import online_softmax
from experiment import command, tables


def stamp():
    """The operator's build facts and the SHA-256 of its library."""
    facts = online_softmax.build_info()
    library = Path(online_softmax.__file__).with_name(facts["library"])
    return facts | {"sha256": hashlib.sha256(library.read_bytes()).hexdigest()}


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="experiment.build", description=__doc__.split("\n")[0])
    parser.add_argument("--out", required=True, help="the JSON file to write")
    tables.write_json(parser.parse_args(arguments).out, stamp())


if __name__ == "__main__":
    command(main)
