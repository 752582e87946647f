"""Start nginx with ``nginx.conf`` beside this file, its ``${LAB_…}`` from the environment."""

import ipaddress
import os
import re
import shutil
import string
import sys
from pathlib import Path

CONFIGURATION = Path(__file__).with_name("nginx.conf")
DEFAULTS = {
    "LAB_APP": "127.0.0.1:8501",
    "LAB_LISTEN": "8080",
    "LAB_SCRATCH": "/tmp",
    "LAB_SESSIONS_PER_CLIENT": "20",
    "LAB_TLS_PROXY": "",  # no proxy is believed
}
MAX_SESSIONS = 65_535  # of limit_conn in nginx
ALLOWED_NETWORKS = (
    "addresses or networks such as 192.0.2.7 or 172.18.0.0/16, separated by commas, "
    "but not all addresses"
)


def find_nginx() -> str | None:
    """Path of nginx, which Debian installs outside a user's PATH."""
    return shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")


def write_configuration(values: dict[str, str]) -> list[str]:
    """Write the filled configuration below ``LAB_SCRATCH``; return the command that serves it.

    Raises:
        ValueError: if ``LAB_TLS_PROXY`` or ``LAB_SESSIONS_PER_CLIENT`` cannot be used, by name.
    """
    filled = {name: values.get(name, "").strip() or default for name, default in DEFAULTS.items()}
    _check_sessions(filled["LAB_SESSIONS_PER_CLIENT"])
    networks = trusted_networks(filled["LAB_TLS_PROXY"])
    filled["REAL_IP_LINES"] = "\n    ".join(f"set_real_ip_from {each};" for each in networks)
    filled["GEO_LINES"] = "\n        ".join(f"{each} yes;" for each in networks)
    file = Path(filled["LAB_SCRATCH"]) / "nginx.conf"
    template = string.Template(CONFIGURATION.read_text(encoding="utf-8"))
    file.write_text(template.safe_substitute(filled))
    return [find_nginx() or "nginx", "-c", str(file), "-p", filled["LAB_SCRATCH"], "-e", "stderr"]


def trusted_networks(given: str) -> list[str]:
    """Parse the networks of ``LAB_TLS_PROXY``, separated by commas or spaces.

    Raises:
        ValueError: for anything else, and for networks of all addresses, which would believe
            every client.
    """
    networks = []
    for text in re.split(r"[,\s]+", given.strip()):
        if text:
            networks.append(_network(text))
    # Collapsing joins halves: 0.0.0.0/1 and 128.0.0.0/1 are all addresses.
    version_4 = [each for each in networks if isinstance(each, ipaddress.IPv4Network)]
    version_6 = [each for each in networks if isinstance(each, ipaddress.IPv6Network)]
    merged: list[ipaddress.IPv4Network | ipaddress.IPv6Network] = [
        *ipaddress.collapse_addresses(version_4),
        *ipaddress.collapse_addresses(version_6),
    ]
    if any(network.prefixlen == 0 for network in merged):
        raise ValueError(_refusal("LAB_TLS_PROXY", given, ALLOWED_NETWORKS))
    return [str(network) for network in networks]


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    """Parse one address or network."""
    refusal = _refusal("LAB_TLS_PROXY", text, ALLOWED_NETWORKS)
    if "%" in text:  # nginx has no syntax for a scope, as in fe80::1%eth0
        raise ValueError(refusal)
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        raise ValueError(refusal) from None


def _check_sessions(given: str) -> None:
    """Require an integer that nginx accepts as a number of connections."""
    if not re.fullmatch(r"[1-9][0-9]{0,4}", given, re.ASCII) or int(given) > MAX_SESSIONS:
        allowed = f"an integer from 1 to {MAX_SESSIONS:,}"
        raise ValueError(_refusal("LAB_SESSIONS_PER_CLIENT", given, allowed))


def _refusal(name: str, given: str, allowed: str) -> str:
    """Name the variable, the value and what is allowed.

    compose.yaml passes the variables ``LINEARITY_LAB_…``.
    """
    variable = name.replace("LAB_", "LINEARITY_LAB_", 1)
    return f"{name} (in compose.yaml {variable}): {given} cannot be used; use {allowed}"


if __name__ == "__main__":
    try:
        command = write_configuration(dict(os.environ))
    except ValueError as error:
        sys.exit(str(error))
    os.execv(command[0], command)
