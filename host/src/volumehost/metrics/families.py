"""Makes metric families of prometheus-client from plain tables, and one of several that have the same name."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, UnknownMetricFamily
from prometheus_client.samples import Sample

from volumehost.metrics.catalogue import CATALOGUE, COUNTER, GAUGE, UNTYPED

logger = logging.getLogger(__name__)

#: Label values, in the order of the labels, to the value.
Table = Mapping[tuple[str, ...], float]

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")

_Family = GaugeMetricFamily | CounterMetricFamily | UnknownMetricFamily

_KINDS: dict[str, type[_Family]] = {
    GAUGE: GaugeMetricFamily, COUNTER: CounterMetricFamily, UNTYPED: UnknownMetricFamily
}  # fmt: skip


def family(name: str, values: Table) -> Metric:
    """The metric of that name in the catalogue, with a value for each row."""
    described = CATALOGUE[name]
    made: _Family = _KINDS[described.kind](name, described.text, labels=described.labels)
    for labels, value in sorted(values.items()):
        made.add_metric(labels, value)
    return made


def single(name: str, value: float) -> Metric:
    """One without labels."""
    return family(name, {(): value})


def merged(families: Iterable[Metric]) -> list[Metric]:
    """Each name once: of families that share one the samples are put together, the first of equal ones wins.

    Times of creation are left out, which the kubelet does not tell either. One that has another type than the first of
    its name is left out as a whole.
    """
    by_name: dict[str, Metric] = {}
    seen: dict[str, set[tuple[str, tuple[tuple[str, str], ...]]]] = {}
    for each in families:
        known = by_name.get(each.name)
        if known is None:
            known = by_name[each.name] = Metric(each.name, each.documentation, each.type, each.unit)
            seen[each.name] = set()
        elif known.type != each.type:
            logger.warning("metric %s is a %s here and a %s there, which is left out", each.name, known.type, each.type)
            continue
        for sample in each.samples:
            identity = (sample.name, tuple(sorted(sample.labels.items())))
            if sample.name.endswith("_created") or identity in seen[each.name]:
                continue
            seen[each.name].add(identity)
            known.samples.append(sample)
    return list(by_name.values())


def checked(given: object) -> Metric:
    """The family of somebody else, in a form that every scraper understands.

    :raises ValueError: it has none.
    """
    if not isinstance(given, Metric):
        raise ValueError(f"a {type(given).__name__} is no metric family")  # noqa: TRY004 - one kind for all faults
    if not _NAME.fullmatch(given.name):
        raise ValueError(f"{given.name!r} is no name of a metric")
    result = Metric(given.name, str(given.documentation), given.type, given.unit)
    for sample in given.samples:
        if not _NAME.fullmatch(sample.name) or not sample.name.startswith(given.name):
            raise ValueError(f"{sample.name!r} is no sample of {given.name}")
        for label, value in sample.labels.items():
            if not _LABEL.fullmatch(label) or not isinstance(value, str):
                raise ValueError(f"{given.name} has the label {label!r}={value!r}")
        result.samples.append(Sample(sample.name, dict(sample.labels), float(sample.value)))
    return result
