"""averages: means over queries, of collections that share a column, of tasks and of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from mirblab.errors import MirblabError


def means(values: pd.DataFrame, measures: Sequence[str], key: str) -> pd.DataFrame:
    """Return the means over queries, systems × *key*, both in the order of their first appearance."""
    found = values[values.measure.isin(measures)]
    long = found.assign(system=found.system.astype(str), **{key: found[key].astype(str)})
    means = long.groupby(["system", key], sort=False).value.mean().unstack(key)
    columns = list(measures) if key == "measure" else list(dict.fromkeys(long[key]))
    return means.loc[list(dict.fromkeys(long.system)), columns].rename_axis(columns=None)


def groups(
    values: pd.DataFrame, groups: Mapping[str, str], tasks: Mapping[str, str]
) -> tuple[dict[str, list[str]], dict[str, str], list[str]]:
    """Return the collections of each complete group, the tasks with theirs added, and what to say of groups."""
    here, whole, found, notes = list(values.collection.astype(str).unique()), {}, dict(tasks), []
    for name in dict.fromkeys(groups[collection] for collection in here if collection in groups):
        members = [collection for collection, group in groups.items() if group == name]
        missing = [member for member in members if member not in here]
        own = sorted({tasks.get(member, "") for member in members if member in here})
        if name in here:
            raise MirblabError(f"the group '{name}' has the name of a collection of the values; rename one of them")
        if len(own) > 1:
            raise MirblabError(f"the group '{name}' has collections of several tasks: {', '.join(own)}; it needs one")
        if missing:
            notes.append(f"{name} is not complete: {', '.join(missing)} is missing, so its parts stand apart.")
            continue
        whole[name], found[name] = members, own[0]
        notes.append(f"{name}: unweighted mean of {', '.join(members)}; tests are made on these, not on their mean.")
    return whole, found, notes


def grouped(means: pd.DataFrame, whole: Mapping[str, list[str]]) -> pd.DataFrame:
    """Return the means with one column per group, where the first of its collections stood."""
    name_of = {member: name for name, members in whole.items() for member in members}
    columns = dict.fromkeys(name_of.get(column, column) for column in means)
    shown = {name: means[whole[name]].mean(axis=1, skipna=False) if name in whole else means[name] for name in columns}
    return pd.DataFrame(shown, index=means.index) if whole else means


def with_averages(means: pd.DataFrame, tasks: Mapping[str, str]) -> tuple[pd.DataFrame, int]:
    """Return the means by task, followed by the averages of tasks with several collections and of all."""
    if means.shape[1] < 2:
        return means, 0
    groups = {task: [name for name in means if tasks.get(name, "") == task] for task in
              dict.fromkeys(tasks.get(name, "") for name in means)}  # fmt: skip
    parts = {(task, name): means[name] for task, names in groups.items() for name in names}
    averages = {
        ("Average", f"{task} ({len(names)})"): means[names].mean(axis=1, skipna=False)
        for task, names in groups.items()
        if task and len(names) > 1 and len(groups) > 1
    }
    averages["Average", f"all ({means.shape[1]})"] = means.mean(axis=1, skipna=False)
    return pd.DataFrame(parts | averages, index=means.index), len(averages)


def notes(means: pd.DataFrame, n_averages: int) -> list[str]:
    """Return what to say of averages, where there are some."""
    if not n_averages:
        return []
    missing = " A system without a value on a collection has no average." if means.isna().to_numpy().any() else ""
    return ["Averages are unweighted means of as many collections as stand in parentheses." + missing]
