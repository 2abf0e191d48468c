"""What `train` and `compress` print about the model that they wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from fairweight.lab.make.fitted import Made


def show_made(made: Made, console: Console) -> None:
    """Name, accuracy on the examples held out, size and speed, and what to know about them."""
    card, row = made.card, made.card.measured
    console.print(
        f"{card.variant}, seed {card.seed}: {100 * made.test_accuracy:.2f} % accurate on the "
        "examples held out",
        markup=False,
        highlight=False,
    )
    for line in _lines(row):
        console.print(f"  {line}", markup=False, highlight=False)
    for note in card.notes:
        console.print(f"  {note}", markup=False, highlight=False)
    console.print(f"Written to {made.path}", markup=False, highlight=False, soft_wrap=True)


def _lines(row: dict[str, Any]) -> list[str]:
    lines = [
        f"{row['n_params']:,} parameters, {row['n_nonzero']:,} of them not 0"
        f" ({100 * (row.get('sparsity') or 0.0):.1f} % of the layers' weights are 0)",
        f"{row['size_bytes'] / 1e6:.2f} MB, {row['compressed_bytes'] / 1e6:.2f} MB compressed",
    ]
    if row.get("flops"):
        lines.append(
            f"{_short(row['flops'])} FLOPs per image, {_short(row['flops_sparse'])} without zeros"
        )
    lines.append(
        f"{row['items_per_s']:,.0f} images per second ({row['engine']}, {row['threads']} thread"
        f"{'s' if row['threads'] > 1 else ''}, batches of {row['batch_size']}: median "
        f"{row['latency_ms']:.2f} ms, quartiles {row['latency_ms_low']:.2f} to "
        f"{row['latency_ms_high']:.2f})"
    )
    return lines


def _short(number: float) -> str:
    """
    >>> _short(3_640_000_000), _short(859_000)
    ('3.64 G', '859 k')
    """
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.3g}"
