"""The dashboard of Linearity Lab: charts, pages, jobs and the server behind them.

``linearity-lab app`` starts it, and ``linearity-lab --help`` lists the other commands. In Python and in notebooks,
begin with the library: ``import ntk_core`` and ``ntk_core.compute("liu-fig1-left")``.
"""

from ntk_core._version import __version__ as __version__
