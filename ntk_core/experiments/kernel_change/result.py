"""Results of ``kernel_change``: kernel change along training, for each width, output and seed."""

from typing import Literal

from ntk_core.experiments.kernel_change.spec import KernelChangeSpec
from ntk_core.runs import Outcome, RecordedTraining, ResultValue, Value, WidthPoint, finite_or_none


class KernelChangeRun(RecordedTraining):
    """One training run seen through one output: the kernel change and the loss at the recorded steps.

    Attributes:
        output: the output nonlinearity φ whose kernel is followed.
        seed: seed of the initialization w₀.
        learning_rate: η, as used; infinite where it is automatic and the network is dead.
        outcome: how it ended, see ``ntk_core.dynamics.outcomes.ended``.
        steps: recorded step indices, starting at 0; time is learning_rate × step.
        change: ΔK(t) = ‖K(w_t) − K(w₀)‖_F / ‖K(w₀)‖_F at those steps, over all (n, n, C, C) entries.
        loss: the mean training loss at those steps.
        infinite_distance: ‖K(w₀) − K_∞‖_F / ‖K_∞‖_F with the kernel K_∞ of infinite width; only for the linear
            output, and where the spec asks for it.
        error: standard errors of ``change`` at those steps over random vectors, where it is estimated; else empty.
        followed: φ(f(x_i)) of a few training points, (records, points); of the point's own class where there are
            several. Empty in results of older versions.
    """

    output: str
    seed: int
    learning_rate: float
    outcome: Outcome
    loss: tuple[float, ...]
    infinite_distance: float | None = None
    followed: tuple[tuple[float, ...], ...] = ()
    error: tuple[float, ...] = ()

    @property
    def sup_error(self) -> float:
        """Standard error of ΔK where it is largest; 0 where it is exact."""
        at = [error for change, error in zip(self.change, self.error, strict=False) if change == self.sup_change]
        return max(at, default=0.0)


class KernelAtStart(Value):
    """What is known of the kernel of one output before training.

    Attributes:
        velocity: ‖K̇₀‖_F / ‖K₀‖_F under gradient flow of the training loss, in 1/time; where the spec asks for it.
        ball_change: a lower bound of sup ‖K(w) − K(w₀)‖_F / ‖K(w₀)‖_F over a ball; where the spec asks for one.
    """

    output: str
    seed: int
    velocity: float | None = None
    ball_change: float | None = None


class KernelSnapshot(Value):
    """A kernel before and after training, small enough to draw.

    Attributes:
        initial: (n, n) mean over the outputs, (1/C) Σ_a K[i, j, a, a] at w₀; samples ordered by label.
        final: the same at the end of training.
        initial_eigenvalues: all n·C eigenvalues of K(w₀), descending.
        final_eigenvalues: the same at the end of training.
        infinite: (n, n) infinite-width kernel, where the spec asks for it.
    """

    output: str
    seed: int
    initial: tuple[tuple[float, ...], ...]
    final: tuple[tuple[float, ...], ...]
    initial_eigenvalues: tuple[float, ...]
    final_eigenvalues: tuple[float, ...]
    infinite: tuple[tuple[float, ...], ...] | None = None


class KernelChanges(WidthPoint):
    """All runs of one network of one width.

    Attributes:
        width: m.
        num_params: p, number of trained parameters.
        runs: one entry per output and seed.
        runtime_s: wall time of the computation, in seconds.
        snapshots: kernels of the first seed, one per output, where the spec asks for them.
        at_start: one entry per output and seed, where the spec asks for velocities or a ball.
    """

    num_params: int
    runs: tuple[KernelChangeRun, ...]
    snapshots: tuple[KernelSnapshot, ...] = ()
    at_start: tuple[KernelAtStart, ...] = ()

    def of(self, output: str) -> tuple[KernelChangeRun, ...]:
        """The runs seen through this output."""
        return tuple(run for run in self.runs if run.output == output)

    def rows(self, *, infinite_width: bool) -> list[dict[str, object]]:
        """One row per output and seed, as in ``points.csv``; with what the spec asks for beside training."""
        known = {(each.output, each.seed): _start_columns(each) for each in self.at_start}
        if not self.runs:
            size = {"width": self.width, "num_params": self.num_params}
            return [{**size, "output": output, "seed": seed, **more} for (output, seed), more in known.items()]
        return [
            {
                "width": self.width,
                "num_params": self.num_params,
                "output": run.output,
                "seed": run.seed,
                "sup_kernel_change": run.sup_change,
                **({"kernel_change_error": run.sup_error} if run.error else {}),
                "final_kernel_change": run.change[-1],
                "final_loss": run.loss[-1],
                "steps": run.num_steps,
                "learning_rate": finite_or_none(run.learning_rate),
                "outcome": run.outcome,
                **({"distance_to_infinite_width": run.infinite_distance} if infinite_width else {}),
                **known.get((run.output, run.seed), {}),
            }
            for run in self.runs
        ]


def _start_columns(each: KernelAtStart) -> dict[str, object]:
    columns = {"kernel_velocity": each.velocity, "ball_kernel_change": each.ball_change}
    return {name: value for name, value in columns.items() if value is not None}


class KernelChangePoint(KernelChanges):
    """A point of ``kernel_change``."""

    kind: Literal["kernel_change"] = "kernel_change"


class KernelChangeResult(ResultValue):
    """Everything a ``kernel_change`` run gave; ``points`` are in the order of the widths, some may be missing.

    ΔK = sup_t ‖K(w_t) − K(w₀)‖_F / ‖K(w₀)‖_F of every width, output and seed.

    Source: Liu, Zhu & Belkin 2020, §6 and Fig. 1.
    """

    spec: KernelChangeSpec
    points: tuple[KernelChangePoint, ...]

    def rows(self) -> list[dict[str, object]]:
        """One row per width, output and seed, as in ``points.csv``."""
        return [row for point in self.points for row in point.rows(infinite_width=self.spec.infinite_width)]
