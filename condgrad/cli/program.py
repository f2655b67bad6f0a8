"""The parser, and the handling of errors: one sentence, and an exit code that scripts can use."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from condgrad.cli import bench, complete, convert, cv, fit, path, predict, theory, warmup
from condgrad.cli._outputs import close_output, complain, write_text
from condgrad.cli.listings import LOSSES, SETS, SOLVERS

CONVERGED, NOT_CONVERGED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130
_COMMANDS = (fit, path, cv, complete, predict, convert, theory, SOLVERS, LOSSES, SETS, warmup, bench)
_DESCRIPTION = """\
Constrained linear models and matrices of low rank without projections, each result with a
certificate: the Frank-Wolfe gap, a bound of how far the objective is from its optimum.

  condgrad fit train.svm --loss logistic --set l1 --radius 10 --out model.npz
  condgrad predict model.npz test.svm --out predictions.csv
  condgrad complete ratings.csv --radius 5000 --loss huber --out model.npz
"""
_EPILOG = """\
exit codes:
  0    done; every result is certified to the tolerance
  1    a limit (time, epochs, steps) was reached first; the result so far is written
  2    bad input or options, or a file could not be written; a sentence on stderr says
       what, where, and what to do
  130  interrupted by Ctrl-C; the certified result so far is written

`condgrad COMMAND --help` lists the options of a command.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    >>> main(["losses", "--names"])  # doctest: +ELLIPSIS
    binomial
    expectile
    ...
    0
    """
    args = make_parser().parse_args(argv)
    try:
        code = args.run(args)
        write_text("")
        return code
    except KeyboardInterrupt:
        return _complain(args, "interrupted; nothing was written.", INTERRUPTED)
    except BrokenPipeError:  # the reader of the output has closed it, as `| head` does
        close_output()
        return NOT_CONVERGED
    except MemoryError as error:
        return _complain(args, f"this does not fit into memory: {error}.", BAD_INPUT)
    except (ValueError, TypeError, OSError, ImportError) as error:
        return _complain(args, str(error), BAD_INPUT)


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("condgrad", description=_DESCRIPTION, epilog=_EPILOG, formatter_class=formatter)
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in _COMMANDS:
        name = command.__name__.rsplit(".", 1)[-1]
        about, _, details = (command.__doc__ or "").partition("\n")
        below = commands.add_parser(
            name,
            help=about.rstrip(".")[0].lower() + about.rstrip(".")[1:],
            description=f"{about}\n{details.rstrip()}",
            epilog=command.EPILOG,
            formatter_class=formatter,
        )
        command.add_options(below)
        below.set_defaults(run=command.run, command=name)
    return parser


class _Version(argparse.Action):
    def __call__(self, parser, namespace, values, option_string=None):
        from condgrad import __version__

        print(f"condgrad {__version__}")
        parser.exit()


def _complain(args: argparse.Namespace, sentence: str, code: int) -> int:
    complain(args, sentence)
    return code
