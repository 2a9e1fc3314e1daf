"""Makes metric families of prometheus-client from plain tables, and one of several that have the same name."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, UnknownMetricFamily
from prometheus_client.samples import Sample

logger = logging.getLogger(__name__)

#: Label values, in the order of the labels, to the value.
Table = Mapping[tuple[str, ...], float]

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


def gauge(name: str, documentation: str, labels: Sequence[str], values: Table) -> Metric:
    """A gauge for each row."""
    return _filled(GaugeMetricFamily(name, documentation, labels=labels), values)


def counter(name: str, documentation: str, labels: Sequence[str], values: Table) -> Metric:
    """A counter for each row; its name ends in ``_total``."""
    return _filled(CounterMetricFamily(name, documentation, labels=labels), values)


def untyped(name: str, documentation: str, labels: Sequence[str], values: Table) -> Metric:
    """A value for each row that is of no type."""
    return _filled(UnknownMetricFamily(name, documentation, labels=labels), values)


def histogram(name: str, documentation: str, labels: Sequence[str]) -> HistogramMetricFamily:
    """An empty histogram."""
    return HistogramMetricFamily(name, documentation, labels=labels)


def _filled(
    family: GaugeMetricFamily | CounterMetricFamily | UnknownMetricFamily, values: Table
) -> GaugeMetricFamily | CounterMetricFamily | UnknownMetricFamily:
    for labels, value in sorted(values.items()):
        family.add_metric(labels, value)
    return family


def merged(families: Iterable[Metric]) -> list[Metric]:
    """Each name once: of families that share one the samples are put together, the first of equal ones wins.

    Times of creation are left out, which the kubelet does not tell either. One that has another type than the first of
    its name is left out as a whole.
    """
    by_name: dict[str, Metric] = {}
    seen: dict[str, set[tuple[str, tuple[tuple[str, str], ...]]]] = {}
    for family in families:
        known = by_name.get(family.name)
        if known is None:
            known = by_name[family.name] = Metric(family.name, family.documentation, family.type, family.unit)
            seen[family.name] = set()
        elif known.type != family.type:
            logger.warning(
                "metric %s is a %s here and a %s there, which is left out", family.name, known.type, family.type
            )
            continue
        for sample in family.samples:
            identity = (sample.name, tuple(sorted(sample.labels.items())))
            if sample.name.endswith("_created") or identity in seen[family.name]:
                continue
            seen[family.name].add(identity)
            known.samples.append(sample)
    return list(by_name.values())


def checked(family: object) -> Metric:
    """The family of somebody else, in a form that every scraper understands.

    :raises ValueError: it has none.
    """
    if not isinstance(family, Metric):
        raise ValueError(f"a {type(family).__name__} is no metric family")  # noqa: TRY004 - whoever calls tells it so
    if not _NAME.fullmatch(family.name):
        raise ValueError(f"{family.name!r} is no name of a metric")
    result = Metric(family.name, str(family.documentation), family.type, family.unit)
    for sample in family.samples:
        if not _NAME.fullmatch(sample.name) or not sample.name.startswith(family.name):
            raise ValueError(f"{sample.name!r} is no sample of {family.name}")
        for label, value in sample.labels.items():
            if not _LABEL.fullmatch(label) or not isinstance(value, str):
                raise ValueError(f"{family.name} has the label {label!r}={value!r}")
        result.samples.append(Sample(sample.name, dict(sample.labels), float(sample.value)))
    return result
