"""One section of docs/benchmarks.md for each drill: what it claims, whether that held, and what was measured."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.words import Data, seconds, stamp, table

Section = Callable[[Data], str]


def sessions(data: Data) -> list[str]:
    """A drill of many browser sessions."""
    words = [
        f"{data['num_sessions']} sessions over web sockets{_how_long(data)}, {data['num_running']} of them with "
        f"sweeps: {data['num_runs_asked']} asked for, {data['num_jobs']} jobs, {data['points_computed']} points.",
        f"Idle sessions react in {_spread(data['idle_reaction'])}; a sweep takes {_spread(data['sweep'])}.",
        f"An idle server with its workers uses {data['idle_processor_share']:.1%} of one core.",
    ]
    if data.get("num_kills"):
        words.append(f"{data['num_kills']} workers were killed meanwhile.")
    if data.get("num_uploads"):
        words.append(
            f"{data['num_uploads']} files were brought and run; of {data['private_texts']} names, labels and runs in "
            f"them, {data['private_texts_seen_by_their_owner']} were shown to whom they belong to, and "
            f"{len(data['leaks'])} to anybody else."
        )
    return words


def _how_long(data: Data) -> str:
    """For drills that say it: for how long, and against which profile."""
    return f" for {data['minutes']:g} minutes, profile `{data['profile']}`" if data.get("minutes") else ""


def kills(data: Data) -> list[str]:
    """A drill of killed processes."""
    killed = " and ".join(f"{count} times the {name}" for name, count in data["kills"].items())
    return [
        f"`kill -9` at random moments, {killed}, while {data['num_sweeps']} sweeps ran: {data['num_told_points']} "
        f"points were told of, and all of them kept. {seconds(data['took_s'])} in all."
    ]


def stops(data: Data) -> list[str]:
    """A drill of Stop."""
    return [
        f"{data['stop']['count']} times Stop, over {len(data['by_figure'])} figures, while they compile, train and "
        f"take Hessians: {_spread(data['stop'])}."
    ]


def sweeps(data: Data) -> list[str]:
    """A drill of sweeps in a row."""
    growth, server = data["growth"], data["server_mib"]
    first, half, last = server[0], server[len(server) // 2], server[-1]
    return [
        f"{data['num_sweeps']} sweeps, one after the other. Resident memory from the first ones after the warm-up to "
        f"the last ones: server {growth['server']:+.1%} (medians), workers {growth['worker']:+.1%} (the largest; they "
        f"are replaced before they grow large). The server had {first} MiB after the first sweep, {half} "
        f"after half of them and {last} after the last: what it keeps for whoever looks next is bounded."
    ]


def gallery(data: Data) -> list[str]:
    """A drill of figures computed anew."""
    rows = data["entries"].values()
    numbers, equal = (sum(row[name] for row in rows) for name in ("numbers", "equal"))
    outside = sum(row["outside"] for row in rows)
    return [
        f"The cheapest point of each of {len(data['entries'])} figures, to its end with all its seeds: of {numbers:,} "
        f"numbers and words {equal:,} are the same to the last digit, {outside:,} differ by more than "
        f"{data['relative_tolerance']:.0%}."
    ]


def fuzzed_specs(data: Data) -> list[str]:
    """A drill of odd specs."""
    outcomes = ", ".join(f"{count:,} {name}" for name, count in sorted(data["outcomes"].items()))
    return [
        f"{data['count']:,} specs as nobody would write them: {outcomes}. The slowest took "
        f"{seconds(data['slowest_s'])} of processor time."
    ]


def attacker(data: Data) -> list[str]:
    """A drill of one attacker among visitors."""
    first, most, last = data["server_mib"]
    tried = ", ".join(
        f"{name} {told.get('done', 0):,} ({told.get('refused', 0):,} refused)" for name, told in data["attack"].items()
    )
    alone, attacked = data["server_busy_before_and_after"]
    return [
        f"One attacker among {data['num_visitors']} visitors, {seconds(data['took_s'])} in all, while other programs "
        f"kept {data['cores_busy_by_others']} cores busy: {tried}.",
        f"Visitors' pages react in {_spread(data['reaction'])}; before the attack in "
        f"{_spread(data['reaction_before'])}. "
        f"The server's process kept {alone:.0%} of a core busy before and {attacked:.0%} during the attack; it had "
        f"{first} MiB before, {most} at most and {last} at the end. Visitors asked for {data['num_jobs']} runs "
        f"({len(data['unfinished'])} not finished) and kept {data['num_kept']} sets of data.",
    ]


def poll(data: Data) -> list[str]:
    """A drill of a class in a poll."""
    return [
        f"{data['num_phones']} phones and {data['num_questions']} questions in {seconds(data['took_s'])}.",
        f"All at once, a phone joins in {_spread(data['joined'])}. It is told that its answer is in after "
        f"{_spread(data['answered'])}, and shows the answer or the next question {_spread(data['reached'])} after the "
        f"teacher has asked for it. The server's process kept {data['server_busy']:.0%} of a core busy and had "
        f"{data['server_mib']} MiB.",
    ]


def section(title: str, command: str, words: Callable[[Data], list[str]], environment: str = "") -> Section:
    """The section of the drill that ``python -m benchmarks.drills.<command>`` runs."""

    def written(data: Data) -> str:
        verdicts = [[claim, "holds" if holds else "**does not hold**"] for claim, holds in data["claims"].items()]
        return "\n\n".join(
            [
                f"## Drill: {title}",
                f"{' '.join(words(data))} `{environment}python -m benchmarks.drills.{command}`; {stamp(data)}",
                table(["claim", "here"], verdicts),
            ]
        )

    return written


DRILLS: dict[str, Section] = {
    "drill_sessions": section("a class at one machine", "sessions", sessions),
    "drill_sessions_hosted": section(
        "a hosted instance, with faults",
        "sessions --uploading 4 --minutes 10 --kill-every-s 30 --name sessions_hosted",
        sessions,
        "LINEARITY_LAB_PROFILE=hosted LINEARITY_LAB_MAX_JOBS_PER_ADDRESS=30 ",
    ),
    "drill_poll": section("a class in a poll", "poll", poll),
    "drill_kills": section("processes killed", "kills", kills),
    "drill_stops": section("Stop", "stops", stops),
    "drill_sweeps": section("a hundred sweeps", "sweeps", sweeps),
    "drill_gallery": section("the gallery computed anew", "gallery", gallery),
    "drill_attacker": section("one attacker among visitors", "attacker", attacker),
    "drill_fuzzed_specs": section("odd specs", "fuzzed_specs", fuzzed_specs),
}


def _spread(found: Data) -> str:
    return f"{seconds(found['median_s'])} in the median, {seconds(found['p95_s'])} at the 95th percentile"
