"""Streamlit's version has a cap as long as the server reads messages that Streamlit keeps for itself."""

from __future__ import annotations

import importlib.metadata
import re
from pathlib import Path

import streamlit
from packaging.requirements import Requirement
from packaging.version import Version
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from uvicorn.protocols.http.auto import AutoHTTPProtocol

ROOT = Path(__file__).resolve().parents[2]
CAP = "1.68"  # raise it together with requirements.txt, after what is named below was looked at in the new version


def test_the_cap_is_stated_while_private_messages_are_read():
    read = [path for path in (ROOT / "linearity_lab").rglob("*.py") if re.search(r"streamlit\.proto", path.read_text())]
    assert {path.name for path in read} == {"_refreshes.py", "_sessions.py"}
    lines = [line for line in (ROOT / "requirements.txt").read_text().splitlines() if line.startswith("streamlit")]
    (stated,) = map(Requirement, lines)
    assert [str(each) for each in stated.specifier if each.operator == "<"] == [f"<{CAP}"]
    assert Version(importlib.metadata.version("streamlit")) < Version(CAP)


def test_the_private_messages_have_the_parts_that_are_read():
    asked = BackMsg().rerun_script
    for part in ("is_auto_rerun", "query_string", "widget_states", "fragment_id"):
        assert part in asked.DESCRIPTOR.fields_by_name
    widget = asked.widget_states.widgets.add()
    for part in ("string_value", "json_value", "string_array_value"):
        assert part in widget.DESCRIPTOR.fields_by_name
    assert "script_finished" in ForwardMsg.DESCRIPTOR.fields_by_name
    assert ForwardMsg.FINISHED_EARLY_FOR_RERUN != ForwardMsg.FINISHED_SUCCESSFULLY


def test_connections_of_uvicorn_have_the_parts_that_are_bounded():
    for name in ("connection_made", "data_received", "connection_lost", "handle_websocket_upgrade"):
        assert callable(getattr(AutoHTTPProtocol, name))


def test_the_scripts_read_where_the_page_says_that_its_server_is():
    scripts = (Path(streamlit.__file__).parent / "static" / "static" / "js").glob("index.*.js")
    (read,) = [text for text in map(Path.read_text, scripts) if "BACKEND_BASE_URL" in text]
    assert "window.__streamlit" in read
