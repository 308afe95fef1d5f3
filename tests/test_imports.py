"""What may import what. The table is the architecture; whoever changes it changes that."""

from __future__ import annotations

from tests.modules import Import, Module, imports, is_foreign, modules

# Each package, and those right below it. Whatever is below these may be imported too, nothing else.
BELOW: dict[str, set[str]] = {
    "errors": set(),
    "faces": set(),
    "computed": set(),
    "code": set(),
    "registry": {"code", "errors"},
    "system": {"errors"},
    "plain": {"computed", "registry"},
    "spec": {"errors"},
    "structure": {"errors"},
    "terms": {"computed", "errors"},
    "dropout": set(),
    "precision": set(),
    "encodings": {"computed", "plain", "structure"},
    "attention": {"dropout", "precision", "registry", "terms"},
    "formats": {"plain", "system", "transforms"},
    "transforms": {"structure"},
    "positions": {"dropout", "encodings", "precision", "spec", "terms"},
    "data": {"attention", "faces", "plain", "positions", "formats"},
    "objectives": {"registry", "structure"},
    "datasets": {"data", "objectives"},
    "nn": {"data"},
    "adapters": {"data"},
    "parsing": {"data"},
    "tasks": {"adapters", "nn", "datasets", "parsing"},
    "pictures": {"tasks"},
    "serve": {"tasks"},
    "cli": {"tasks", "pictures", "serve"},
}
# The core; whatever else is imported inside a function, by whoever cannot do without it.
FOREIGN = {"torch", "numpy", "scipy", "threadpoolctl", "jaxtyping", "msgspec", "safetensors"}
# A subclass of Lightning's classes needs them when it is defined, the routes of the app when it is made, a component of
# spaCy when it is registered. Only what trains, shows or is in a pipeline imports these modules.
FOREIGN_IN = {
    "structpe.attention._triton_kernels": {"triton"},  # itself imported inside a function
    "structpe.tasks.training": {"lightning"},
    "structpe.pictures.app": {"jinja2", "starlette"},
    "structpe.serve.web": {"fastapi", "starlette"},
    "structpe.parsing.component": {"spacy"},
}
# Folders in which one file is one member of a registry, and the files and folders there that are for all of them.
REGISTRIES = ("attention", "cli", "datasets", "objectives")
SHARED = {
    "attend",
    "base",
    "classification",
    "gather",
    "layout",
    "reference",
    "rows",
    "build",
    "main",
    "levels",
    "metrics",
    "archives",
    "arrays",
    "catalogue",
    "downloads",
    "feature_maps",
    "fetching",
    "pickles",
    "own",
    "records",
}

PACKAGES = {module.name for module in modules() if module.path.name == "__init__.py"}


def below(package: str) -> set[str]:
    """All packages below one."""
    return set().union(*({lower} | below(lower) for lower in BELOW[package]))


def package_of(name: str) -> str:
    return name.partition(".")[2].partition(".")[0]


def own(module: Module) -> list[Import]:
    """What a module imports of structpe."""
    return [each for each in imports(module) if each.name.partition(".")[0] == "structpe"]


def where(module: Module, each: Import) -> str:
    return f"{module.name}, line {each.line}: {each.name}"


def test_every_package_has_its_place_in_the_table() -> None:
    assert set(BELOW) == {module.package for module in modules()} - {"", "__main__"}
    assert all(package not in below(package) for package in BELOW), "the table has a cycle"


def test_imports_go_downwards() -> None:
    # The package itself has public names, which are imported when they are used.
    upwards = [
        where(module, each)
        for module in modules()
        if module.package not in ("", "__main__")
        for each in own(module)
        if package_of(each.name) not in below(module.package) | {module.package, ""}
    ]
    assert not upwards, "\n".join(upwards)


def test_what_is_not_core_is_imported_inside_functions() -> None:
    at_once = [
        where(module, each)
        for module in modules()
        for each in imports(module)
        if each.at_once and is_foreign(each.name) and each.name.partition(".")[0] not in allowed_in(module)
    ]
    assert not at_once, "\n".join(at_once)


def allowed_in(module: Module) -> set[str]:
    return FOREIGN.union(*(more for place, more in FOREIGN_IN.items() if module.name.startswith(place)))


def test_members_of_a_registry_do_not_know_one_another() -> None:
    known = [
        where(module, each)
        for module in modules()
        if module.package in REGISTRIES and is_member(module.name)
        for each in own(module)
        if package_of(each.name) == module.package and is_member(each.name)
    ]
    assert not known, "share it in a file that begins with '_':\n" + "\n".join(known)


def is_member(name: str) -> bool:
    """Whether a file of a registry's folder, or of a folder in it, holds one member of the registry."""
    inside = name.split(".")[2:]
    return bool(inside) and name not in PACKAGES and SHARED.isdisjoint(inside) and not inside[-1].startswith("_")


SHARED_BY_FAMILIES = {
    *("base", "batch", "block", "build", "networks", "path_labels", "places", "sinusoids"),
    *("buckets", "by_rows", "row_sums", "spectra", "tables"),
}
"""Files of ``structpe/positions`` that families may import. ``rotary_axes`` may import ``rotary``: it is one family."""


def test_families_of_position_models_do_not_know_one_another() -> None:
    known = [
        where(module, each)
        for module in modules()
        if module.package == "positions"
        for each in own(module)
        if package_of(each.name) == "positions" and (family := each.name.split(".")[2:])
        if family[0] not in SHARED_BY_FAMILIES and not module.name.split(".")[-1].startswith(family[0])
    ]
    assert not known, "share it in a file of its own:\n" + "\n".join(known)


def test_position_models_know_no_kernel() -> None:
    assert "attention" not in below("positions")
    assert below("attention") == {"code", "computed", "dropout", "precision", "terms", "registry", "errors"}


def is_light(name: str) -> bool:
    """Whether a module of ours imports the standard library only, and little of it."""
    light = {"", "cli", "code", "errors", "registry", "spec"}
    system = tuple(f"structpe.system.{module}" for module in ("printing", "processes", "progress"))
    return package_of(name) in light or name.startswith(system)


def test_the_command_line_is_light() -> None:
    heavy = [
        where(module, each)
        for module in modules()
        if module.package == "cli"
        for each in imports(module)
        if each.at_once and (is_foreign(each.name) or (each in own(module) and not is_light(each.name)))
    ]
    assert not heavy, "help would be slow:\n" + "\n".join(heavy)
