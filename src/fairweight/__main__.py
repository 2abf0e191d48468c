"""`python -m fairweight` is the command `fairweight`."""

from __future__ import annotations

from fairweight.cli import main

if __name__ == "__main__":
    main()
