"""The command line, as `python -m sateen`."""

from __future__ import annotations

from sateen.cli import main

if __name__ == "__main__":
    main()
