"""The command line: it reads, calls, and prints. A module for each command.

What takes time to load is imported inside the commands, so that `sateen --help` answers at once.
"""

from __future__ import annotations

import click

from sateen import __version__
from sateen.cli.calibrate import calibrate
from sateen.cli.check import check
from sateen.cli.group import Commands
from sateen.cli.init import init
from sateen.cli.inspect import inspect
from sateen.cli.learn import learn
from sateen.cli.monitor import monitor
from sateen.cli.paper import paper
from sateen.cli.plan import plan
from sateen.cli.predict import predict
from sateen.cli.report import report
from sateen.cli.run import run
from sateen.cli.simulate import simulate

__all__ = ["main"]


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 for success, 1 for a problem with what was given, 2 for wrong usage, 130 after Ctrl-C. "
    'In JSON an infinite number is the text "inf" or "-inf".',
)
@click.version_option(__version__, prog_name="sateen", message="%(prog)s %(version)s")
def main() -> None:
    """Stochastic models, and the temporal properties of their runs."""


# In the order of the work.
for command in (inspect, init, run, report, simulate, monitor, check, learn, predict, plan, calibrate, paper):
    main.add_command(command)
