"""``python -m ntk_core`` names the command line, which is that of the lab."""

import sys

if __name__ == "__main__":
    sys.exit("python -m ntk_core is now python -m linearity_lab, or linearity-lab")
