"""SMILES: molecules as undirected graphs of atoms and bonds, from and to texts and RDKit.

``features="ogb"`` adds the features of the Open Graph Benchmark. The columns of an atom: atomic number, chirality,
degree with hydrogens, formal charge, hydrogens, radical electrons, hybridization, whether aromatic, whether in a ring.
Those of a bond: type, stereo, whether conjugated. Numbers and names have a last category for anything else.

With these features the inverse has the same canonical SMILES, including hydrogens, charges, radicals and stereo.
Isotopes and atom map numbers are lost; the coordinates of a conformer are the feature ``pos``. The inverse raises an
error for charges beyond 5, more than 8 hydrogens or 4 radical electrons, and other stereo than tetrahedral and
cis/trans, which the features cannot say. Without features the inverse needs ``neutral=True``: no charges and stereo,
and the hydrogens of the valence. Order, root, units and other features are lost.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from structpe.computed import computed
from structpe.errors import ReadError, StructureError, listed, needing
from structpe.formats.converting import ConversionError, add_converter
from structpe.formats.reading import Item, Yielded, attempt, reader
from structpe.formats.tables import rows
from structpe.formats.text import cut_off, ended_lines, shown
from structpe.formats.writing import WriteError, writer
from structpe.structure import Ids, Structure

__all__ = [
    "ATOM_CATEGORIES",
    "BOND_CATEGORIES",
    "SYMBOLS",
    "as_molecule",
    "atom_features",
    "bond_features",
    "from_rdkit",
    "molecule",
    "of_molecule",
    "parsed",
    "ring_bonds",
    "smiles",
    "smiles_text",
    "to_rdkit",
    "too_large",
]

ATOM_CATEGORIES = (119, 5, 12, 12, 10, 6, 6, 2, 2)
"""Number of categories of each column of an atom."""

BOND_CATEGORIES = (5, 6, 2)
"""Number of categories of each column of a bond."""

_SYMBOLS = (
    "H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br Kr "
    "Rb Sr Y Zr Nb Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd Pm Sm Eu Gd Tb Dy Ho Er Tm Yb Lu "
    "Hf Ta W Re Os Ir Pt Au Hg Tl Pb Bi Po At Rn Fr Ra Ac Th Pa U Np Pu Am Cm Bk Cf Es Fm Md No Lr "
    "Rf Db Sg Bh Hs Mt Ds Rg Cn Nh Fl Mc Lv Ts Og *"
)
SYMBOLS = tuple(_SYMBOLS.split())
"""Symbol of each category of the first column of an atom."""

CHIRALITY = {"CHI_UNSPECIFIED": 0, "CHI_TETRAHEDRAL_CW": 1, "CHI_TETRAHEDRAL_CCW": 2, "CHI_OTHER": 3}
HYBRIDIZATION = {"SP": 0, "SP2": 1, "SP3": 2, "SP3D": 3, "SP3D2": 4}
BONDS = {"SINGLE": 0, "DOUBLE": 1, "TRIPLE": 2, "AROMATIC": 3}
STEREO = {"STEREONONE": 0, "STEREOZ": 1, "STEREOE": 2, "STEREOCIS": 3, "STEREOTRANS": 4, "STEREOANY": 5}


def atom_features(atoms: Iterable[Any]) -> Ids:
    """(n, 9) categories of the atoms of an RDKit molecule."""
    return np.array([_atom(atom) for atom in atoms], dtype=np.int64).reshape(-1, len(ATOM_CATEGORIES))


def bond_features(bonds: Iterable[Any]) -> Ids:
    """(e, 3) categories of the bonds of an RDKit molecule.

    Raises:
        ReadError: a bond has a stereo without a category in OGB (an atropisomer).
    """
    return np.array([_bond(bond) for bond in bonds], dtype=np.int64).reshape(-1, len(BOND_CATEGORIES))


def _atom(atom: Any) -> tuple[int, ...]:
    return (
        _within(atom.GetAtomicNum(), 1, 118),
        CHIRALITY.get(atom.GetChiralTag().name, 4),
        _within(atom.GetTotalDegree(), 0, 10),
        _within(atom.GetFormalCharge(), -5, 5),
        _within(atom.GetTotalNumHs(), 0, 8),
        _within(atom.GetNumRadicalElectrons(), 0, 4),
        HYBRIDIZATION.get(atom.GetHybridization().name, 5),
        int(atom.GetIsAromatic()),
        int(atom.IsInRing()),
    )


def _bond(bond: Any) -> tuple[int, ...]:
    stereo = bond.GetStereo().name
    if stereo not in STEREO:
        raise ReadError(f"a bond has the stereo {stereo}, which is not among OGB's categories: {', '.join(STEREO)}")
    return BONDS.get(bond.GetBondType().name, 4), STEREO[stereo], int(bond.GetIsConjugated())


def _within(number: int, low: int, high: int) -> int:
    """The index of a number in low..high; one past the last for any other number."""
    return number - low if low <= number <= high else high - low + 1


ATOMS, RINGS = 3_000, 500
"""The largest molecule: many rings take RDKit a second, time grows with the cube, and it cannot be interrupted."""
UNKNOWN = {1: (3, "chirality"), 3: (11, "charge"), 4: (9, "number of hydrogens"), 5: (5, "number of radical electrons")}
"""Per column of atoms, the first category that means 'something else' and cannot be converted. The chirality
``CHI_OTHER`` can end the process within RDKit."""
CHIRAL_TAGS, STEREO_TAGS = tuple(CHIRALITY), tuple(STEREO)
SIDES = {"STEREOZ": "STEREOCIS", "STEREOE": "STEREOTRANS", "STEREOCIS": "STEREOCIS", "STEREOTRANS": "STEREOTRANS"}


def too_large(atoms: int, rings: int) -> str:
    """The reason why a molecule with these numbers of atoms and of bonds that close rings is too large; or ''."""
    for count, most, what in ((atoms, ATOMS, "atoms"), (rings, RINGS, "bonds that close rings")):
        if count > most:
            return f"has {count} {what}; a molecule has {most} at most, leave it out"
    return ""


def ring_bonds(structure: Structure) -> int:
    """The number of edges that close rings: those outside a spanning forest."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n, edges = structure.size, structure.edges
    parts, _ = connected_components(coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n, n)), False)
    return len(edges) - n + int(parts)


def as_molecule(structure: Structure, neutral: bool = False, strict: bool = True) -> Any:
    """The molecule of a structure, as from the reader ``smiles``: atoms by labels, bonds by relations.

    Hydrogens, charges, radicals and stereo are those of the features ``x`` and ``edge_x`` (``features="ogb"``). These
    lack isotopes, atom map numbers and conformers, and so does the molecule.

    Args:
        structure: undirected; labels are symbols, ``*`` for any atom, relations are types of bonds.
        neutral: True ignores features: atoms are neutral, without stereo, and have the hydrogens of their valence.
            False raises an error if features are missing.
        strict: whether a valence that RDKit does not permit raises an error.

    Raises:
        StructureError: edges are directed, there are more than 3,000 atoms or 500 rings, a label is not a symbol, a
            relation not a type of bond, two bonds join the same atoms, features are missing, contradict the labels or
            mean 'something else', or the valences are invalid.
    """
    with needing("rdkit", "mol"):
        from rdkit import Chem, rdBase
    if wrong := too_large(structure.size, ring_bonds(structure)):
        raise structure.error(f"this structure {wrong}")
    atoms, bonds = (None, None) if neutral else _feature_rows(structure)
    draft: Any = Chem.RWMol()
    for node, symbol in enumerate(structure.nodes):
        draft.AddAtom(_draft_atom(structure, node, symbol, None if atoms is None else atoms[node].tolist()))
    for edge, (source, target) in enumerate(structure.edges.tolist()):
        _draft_bond(structure, draft, edge, source, target)
    quiet = rdBase.BlockLogs()
    try:
        draft.UpdatePropertyCache(strict=False)
        Chem.SanitizeMol(draft, Chem.SANITIZE_ALL if strict else Chem.SANITIZE_ALL ^ Chem.SANITIZE_PROPERTIES)
        if bonds is not None:
            _set_stereo(structure, draft, bonds[:, 1])
        Chem.AssignStereochemistry(draft, cleanIt=True, force=True)
    except ValueError as error:  # including RDKit's own errors about molecules
        raise structure.error(
            f"this is not a molecule: {str(error).strip()}; correct it, or give strict=False"
        ) from None
    except (RuntimeError, KeyError) as error:  # if a check inside RDKit fails, or a rank has not been computed
        reason = shown(" ".join(str(error).split()))
        raise structure.error(f"this is not a molecule, RDKit fails with {reason}; correct it") from None
    finally:
        del quiet
    if structure.directed:
        raise structure.error("the edges are directed, and bonds have no direction; give Structure(directed=False)")
    return draft.GetMol()


def _feature_rows(structure: Structure) -> tuple[Ids, Ids]:
    found = []
    for key, sizes, count in (
        ("x", ATOM_CATEGORIES, structure.size),
        ("edge_x", BOND_CATEGORIES, len(structure.edges)),
    ):
        if key not in structure.features:
            raise structure.error(
                f"there is no feature {key!r}, so charges, hydrogens and stereo are not known; read the molecule with "
                "features='ogb', or give neutral=True to take atoms as neutral and without stereo"
            )
        values = np.asarray(structure.features[key])
        if values.shape != (count, len(sizes)) or values.dtype.kind not in "iu":
            raise structure.error(
                f"feature {key!r} has shape {values.shape} and dtype {values.dtype}; OGB's are integers of shape "
                f"({count}, {len(sizes)}), give those, or neutral=True"
            )
        if ((values < 0) | (values >= np.array(sizes))).any():
            raise structure.error(f"feature {key!r} has values outside of OGB's categories, of which there are {sizes}")
        found.append(values)
    return found[0], found[1]


def _draft_atom(structure: Structure, node: int, symbol: str, row: list[int] | None) -> Any:
    from rdkit import Chem

    if symbol not in SYMBOLS:
        raise structure.error(f"the label of node {node} is {symbol!r}, which is not the symbol of an element")
    number = SYMBOLS.index(symbol)
    atom: Any = Chem.Atom(0 if symbol == "*" else number + 1)
    if row is None:
        return atom
    if row[0] != number:
        raise structure.error(f"node {node} is labelled {symbol!r}, but by feature 'x' it is {SYMBOLS[row[0]]!r}")
    for column, (unknown, what) in UNKNOWN.items():
        if row[column] >= unknown:
            raise structure.error(f"the {what} of node {node} ({symbol!r}) is not among OGB's categories, so not known")
    atom.SetChiralTag(Chem.ChiralType.names[CHIRAL_TAGS[row[1]]])
    atom.SetFormalCharge(row[3] - 5)
    atom.SetNumExplicitHs(row[4])
    atom.SetNoImplicit(True)
    atom.SetNumRadicalElectrons(row[5])
    atom.SetIsAromatic(bool(row[7]))
    return atom


def _draft_bond(structure: Structure, draft: Any, edge: int, source: int, target: int) -> None:
    from rdkit import Chem

    given = structure.relation(edge)
    kind = Chem.BondType.names.get(given.upper())
    if kind is None or given != given.lower():
        known = ", ".join(BONDS).lower()
        raise structure.error(f"the relation of edge {edge} is {given!r}; types of bonds are {known}, ...")
    if source == target or draft.GetBondBetweenAtoms(source, target) is not None:
        what = "a bond of an atom with itself" if source == target else "a second bond between the same atoms"
        raise structure.error(f"edge {edge}, {source} - {target}, is {what}; remove it")
    draft.AddBond(source, target, kind)
    if given == "aromatic":
        draft.GetBondBetweenAtoms(source, target).SetIsAromatic(True)
        for atom in (source, target):
            draft.GetAtomWithIdx(atom).SetIsAromatic(True)


def _set_stereo(structure: Structure, draft: Any, stereo: Ids) -> None:
    """Set the stereo of double bonds: Z and E are the sides of the neighbours of highest rank (CIP).

    Ranks may depend on the stereo of other bonds, so this is repeated until nothing changes.
    """
    from rdkit import Chem

    for edge, kind in enumerate(stereo.tolist()):
        if STEREO_TAGS[kind] == "STEREOANY":
            draft.GetBondWithIdx(edge).SetStereo(Chem.BondStereo.STEREOANY)
    waiting = [edge for edge, kind in enumerate(stereo.tolist()) if STEREO_TAGS[kind] in SIDES]
    while waiting:
        Chem.AssignStereochemistry(draft, cleanIt=False, force=True, flagPossibleStereoCenters=True)
        ready = {edge: ends for edge in waiting if (ends := _highest(draft.GetBondWithIdx(edge))) is not None}
        for edge, ends in ready.items():
            draft.GetBondWithIdx(edge).SetStereoAtoms(*ends)
            draft.GetBondWithIdx(edge).SetStereo(Chem.BondStereo.names[SIDES[STEREO_TAGS[int(stereo[edge])]]])
        if not ready:
            source, target = structure.edges[waiting[0]]
            wrong = f"edge {waiting[0]}, {source} - {target}, has stereo by feature 'edge_x'"
            raise structure.error(f"{wrong}, but an end has no neighbour of highest rank, which stereo needs")
        waiting = [edge for edge in waiting if edge not in ready]
    Chem.SetDoubleBondNeighborDirections(draft)  # from which RDKit reads stereo again, as it does from SMILES


def _highest(bond: Any) -> tuple[int, int] | None:
    """The neighbour of highest rank at each end; None if an end has none."""
    ends = bond.GetBeginAtom(), bond.GetEndAtom()
    found = []
    for end, other in (ends, ends[::-1]):
        ranks = sorted(
            (int(a.GetProp("_CIPRank")), a.GetIdx()) for a in end.GetNeighbors() if a.GetIdx() != other.GetIdx()
        )
        if not ranks or (len(ranks) > 1 and ranks[-1][0] == ranks[-2][0]):
            return None
        found.append(ranks[-1][1])
    return found[0], found[1]


Kind = Literal["none", "ogb"]
Made = Callable[[str], Structure]
"""From a name to the structure."""
Plain: TypeAlias = tuple[tuple[str, ...], Ids, tuple[str, ...]]
"""Labels, edges and relations."""
TOGETHER = 125
"""How many SMILES are parsed at a time; a worker gets twice as many."""
LONGEST = 30_000
"""The largest number of characters of a SMILES, which is checked first."""
ATOM = re.compile(r"\[[^][]*]|Br?|Cl?|[NOPSFIbcnops*]")
BRACKETS = re.compile(r"\[[^][]*]")
CLOSURE = re.compile(r"%\([0-9]{1,5}\)|%[0-9]{2}|[0-9]")
LARGE = re.compile(r"[H+-][0-9]{3}")
"""An impossible number of hydrogens or charge of an atom: RDKit keeps them in a byte, so 260 would become 4."""
KEEP = "give strict=False to keep it with this valence, or on_error='skip' to skip it"


def molecule(smiles: str, name: str = "", features: Kind = "none", strict: bool = True) -> Structure:
    """A molecule: a node per heavy atom, labelled by its symbol, an undirected edge per bond, labelled by its type.

    Bond types are ``single``, ``double``, ``triple`` and ``aromatic`` (and RDKit's rarer ones). Hydrogens are implicit,
    unless the SMILES writes them as separate atoms. There is no reading order and no root.

    Args:
        smiles: the text.
        name: where it comes from, for error messages.
        features: ``ogb`` adds the features of the Open Graph Benchmark: ``x`` (n, 9) and ``edge_x`` (e, 3), integers
            of :data:`ATOM_CATEGORIES` and :data:`BOND_CATEGORIES`.
        strict: whether a valence that RDKit does not permit raises an error; see :func:`parsed`.

    Raises:
        ReadError: the text is not SMILES, a valence is invalid, or ``features`` is unknown.
    """
    _check(features)
    return _structure(smiles, name, features, strict, _plain([smiles])[0] if features == "none" else None)


def _structure(smiles: str, name: str, features: Kind, strict: bool, plain: Plain | None) -> Structure:
    if plain is None:
        return of_molecule(parsed(smiles, strict), name, features)
    labels, edges, relations = plain
    return Structure(labels, edges, relations, directed=False, name=name)


def of_molecule(found: Any, name: str = "", features: Kind = "none") -> Structure:
    """The structure of a molecule of RDKit, as in :func:`molecule`.

    Args:
        found: a sanitized ``rdkit.Chem.Mol``; atoms keep their numbers, explicit hydrogens are nodes.
        name: where it comes from, for error messages.
        features: as in :func:`molecule`.

    Raises:
        ReadError: ``features`` is unknown, or needs a sanitized molecule, or an atom is not an element.
    """
    _check(features)
    names, symbol, begin, end, kind = _of_rdkit()
    # In lists, since RDKit makes new objects at each access; by number, since each step of its iterators counts again.
    atoms = list(map(found.GetAtomWithIdx, range(found.GetNumAtoms())))
    bonds = list(map(found.GetBondWithIdx, range(found.GetNumBonds())))
    try:
        symbols = tuple(map(symbol, atoms))
    except RuntimeError:  # RDKit's
        numbers = listed(atom.GetAtomicNum() for atom in atoms if atom.GetAtomicNum() >= len(SYMBOLS))
        raise ReadError(f"there is no element of number {numbers}; correct the molecule") from None
    return Structure(
        symbols,
        np.array([list(map(begin, bonds)), list(map(end, bonds))], dtype=np.int64).T,
        tuple(map(names.__getitem__, map(kind, bonds))),
        directed=False,
        features=_features(atoms, bonds) if features == "ogb" else {},
        name=name,
    )


@cache
def _of_rdkit() -> tuple[dict[Any, str], Any, Any, Any, Any]:
    """The labels of the types of bonds, and the methods that are called for each atom and each bond."""
    from rdkit.Chem import Atom, Bond, BondType

    labels = {kind: name.lower() for name, kind in BondType.names.items()}
    return labels, Atom.GetSymbol, Bond.GetBeginAtomIdx, Bond.GetEndAtomIdx, Bond.GetBondType


_ATOM = (
    r"\[[0-9]*(?:[BCNOPSFIbcnops]|Br|Cl|Si|As|Se|Te|se|as|te)(?:@@?)?(?:H[0-9]?)?(?:[+-][0-9]?)?]"
    "|Br?|Cl?|[NOPSFIbcnops]"
)
PLAIN = re.compile(rf"(?:{_ATOM}|[-=#:/\\().0-9]|%[0-9]{{2}})+")
"""A SMILES of nonmetals without atoms of hydrogen: RDKit removes none of its atoms, and makes no bond dative."""
TOKEN = re.compile(rf"{_ATOM}|[().]")
SYMBOL = re.compile(r"\[?[0-9]*(Br|Cl|Si|As|Se|Te|se|as|te|[BCNOPSFIbcnops])")
ORDERS = {1.0: "single", 1.5: "aromatic", 2.0: "double", 3.0: "triple"}


def _plain(texts: Sequence[str]) -> list[Plain | None]:
    """Labels, edges and relations of most molecules, in half the time; None of those that :func:`parsed` has to read.

    To RDKit's objects for atoms and bonds goes as much time as to its chemistry, so only bonds that close rings are
    asked for. All others come first, in the order of the text, in which atoms are too; one matrix tells their types.
    Steps of RDKit that change none of these are left out: conjugation, hybridization and stereo. Many texts take half
    as long as each alone, as RDKit and Python then do not drive each other out of the processor's cache.
    """
    short = [text if len(text) <= RINGS and PLAIN.fullmatch(text) else None for text in texts]
    parse, orders, quiet = _quick()
    logs = quiet()
    found = [None if text is None else parse(text) for text in short]
    del logs
    return [
        None if molecule is None else _read_off(text, molecule, orders(molecule))
        for text, molecule in zip(texts, found, strict=True)
    ]


def _read_off(smiles: str, molecule: Any, orders: NDArray[np.float64]) -> Plain | None:
    """The same of a molecule, given (n, n) the orders of its bonds; None if it is not as written."""
    labels, before = _written(smiles)
    edges = [(last, atom) for atom, last in enumerate(before) if last >= 0]
    rings = [
        (bond.GetBeginAtomIdx(), bond.GetEndAtomIdx())
        for bond in map(molecule.GetBondWithIdx, range(len(edges), molecule.GetNumBonds()))
    ]
    if len(labels) != len(orders) or any(before[max(pair)] == min(pair) for pair in rings):
        return None
    edges += rings
    types = [ORDERS.get(orders.item(pair)) for pair in edges]
    known = tuple([each for each in types if each is not None])
    return (labels, np.array(edges, dtype=np.int64).reshape(-1, 2), known) if len(known) == len(types) else None


def _written(smiles: str) -> tuple[tuple[str, ...], list[int]]:
    """The labels of the atoms of a plain SMILES, and of each the atom before it in its chain; -1 of the first."""
    labels, before, branches, last = list[str](), list[int](), list[int](), -1
    for token in TOKEN.findall(smiles):
        label = _label(token)
        if label:
            before.append(last)
            last = len(labels)
            labels.append(label)
        elif token == "(":
            branches.append(last)
        else:
            last = branches.pop() if token == ")" else -1
    return tuple(labels), before


@cache
def _label(token: str) -> str:
    """The symbol of an atom in a plain SMILES; none of brackets and dots."""
    found = SYMBOL.match(token)
    return found[1].capitalize() if found else ""


@cache
def _quick() -> tuple[Callable[[str], Any], Callable[[Any], NDArray[np.float64]], Any]:
    """For plain SMILES: the molecule, or None if there is a problem; the orders of its bonds; RDKit's silence."""
    with needing("rdkit", "mol"):
        from rdkit import Chem, rdBase
    options: Any = Chem.SmilesParserParams()
    options.sanitize = options.removeHs = False
    steps = Chem.SanitizeFlags
    left_out = steps.SANITIZE_SETCONJUGATION | steps.SANITIZE_SETHYBRIDIZATION | steps.SANITIZE_CLEANUPCHIRALITY
    needed = steps.SANITIZE_ALL ^ (left_out | steps.SANITIZE_CLEANUPATROPISOMERS | steps.SANITIZE_ADJUSTHS)

    def parse(smiles: str) -> Any:
        try:
            found: Any = Chem.MolFromSmiles(smiles, options)
            if found is None or Chem.SanitizeMol(found, needed, catchErrors=True) != steps.SANITIZE_NONE:
                return None
            return found
        except Exception:  # whatever it is, parsed() says it
            return None

    return parse, partial(Chem.GetAdjacencyMatrix, useBO=True), rdBase.BlockLogs


def _check(features: str) -> None:
    if features not in ("none", "ogb"):
        raise ReadError(f"there are no features {features!r} of molecules; known: 'none', 'ogb'")


def _features(atoms: list[Any], bonds: list[Any]) -> dict[str, Ids]:
    try:
        return {"x": atom_features(atoms), "edge_x": bond_features(bonds)}
    except RuntimeError:  # from RDKit, for missing properties
        raise ReadError("the molecule is not sanitized; call Chem.SanitizeMol of RDKit on it first") from None


@reader("smiles", ".csv .smi .smiles", parallel=True)
def smiles(path: Path, column: str = "smiles", features: Kind = "none", strict: bool = True) -> Iterator[Yielded]:
    """SMILES: a column of a CSV file with a header; in other files a SMILES per line, and after a space its name.

    The other columns become ``metadata``, and so does the SMILES.

    Args:
        path: a CSV file, with the suffix ``.csv``, or a list.
        column: the column of the CSV file with the SMILES.
        features: features of atoms and bonds, as in :func:`molecule`.
        strict: whether a valence that RDKit does not permit raises an error, as in :func:`molecule`.
    """
    found = _table(path, column) if path.suffix == ".csv" else _list(path)
    while True:
        some, waiting = _Together(features, strict), list[Yielded]()
        try:
            waiting.extend(map(some.add, islice(found, TOGETHER)))
        finally:  # the error of the file comes after what is good
            yield from waiting
        if not waiting:
            return


class _Row(NamedTuple):
    """A SMILES of a file, and what makes its item of what makes a structure of a name."""

    smiles: str
    item: Callable[[Made], Item]
    id: str
    line: int


class _Together:
    """SMILES that are parsed together, when the first of them is asked for.

    Args:
        features, strict: as of :func:`molecule`.
    """

    def __init__(self, features: Kind, strict: bool) -> None:
        self.features, self.strict = features, strict
        self.texts = list[str]()

    def add(self, row: _Row | ReadError) -> Yielded:
        """Add one, unless it is an error."""
        if isinstance(row, ReadError):
            return row
        self.texts.append(row.smiles)
        return attempt(partial(row.item, partial(self.structure, len(self.texts) - 1)), row.id, row.line)

    def structure(self, place: int, name: str) -> Structure:
        """The structure of one of them."""
        return _structure(self.texts[place], name, self.features, self.strict, self.plain[place])

    @computed
    def plain(self) -> list[Plain | None]:
        """What is found in less time."""
        _check(self.features)
        return _plain(self.texts) if self.features == "none" else [None] * len(self.texts)


def _table(path: Path, column: str) -> Iterator[_Row | ReadError]:
    found = rows(path)
    _, header = next(found)
    if column not in header:
        known = listed(map(shown, header))
        raise ReadError(f"there is no column {shown(column)}; give column=, one of: {known}").at("line 1")
    place = header.index(column)
    for number, (line, row) in enumerate(found, 1):
        smiles = row[place].strip() if place < len(row) else ""
        yield _Row(smiles, partial(_row, header, row, smiles, number, path.name), "", line)


def _list(path: Path) -> Iterator[_Row | ReadError]:
    named = True  # every line so far
    for number, (line, text, ended) in enumerate((each for each in ended_lines(path) if each[1].strip()), 1):
        smiles, name = (*text.strip().split(None, 1), "")[:2]
        lacks = "it has no name, and all lines before have one" if named and number > 1 and not name else ""
        if not ended and (cut := cut_off(text, line, lacks)) is not None:
            yield cut
            return
        named = named and bool(name)
        yield _Row(smiles, partial(_item, name or str(number), {"smiles": smiles}, path.name), name, line)


def _row(header: list[str], row: list[str], smiles: str, number: int, file: str, made: Made) -> Item:
    if len(row) != len(header):
        raise ReadError(f"the row has {len(row)} cells, the header {len(header)}; quote cells with commas")
    cells = dict(zip(header, row, strict=True))
    return _item(cells.get("id", str(number)), {"smiles": smiles, **cells}, file, made)


def _item(id: str, metadata: Mapping[str, str], file: str, made: Made) -> Item:
    return Item(made(f"{file}:{id}"), id=id, metadata=metadata)


def parsed(smiles: str, strict: bool = True) -> Any:
    """A SMILES as a molecule of RDKit.

    Args:
        smiles: the text.
        strict: whether a valence that RDKit does not permit raises an error. RDKit permits fewer valences of boron and
            metals than in the past, so this affects molecules of older data sets. Without ``strict`` everything else
            that RDKit computes (rings, aromaticity, hybridization, stereo, hydrogens) is the same.

    Raises:
        ReadError: the text is not SMILES, or not a molecule, or it has more than 3,000 atoms or 500 rings, or 30,000
            characters.
    """
    with needing("rdkit", "mol"):
        from rdkit import rdBase
    if not smiles.strip():
        raise ReadError("the SMILES is empty; give one, or remove the line")
    if wraps := _check_size(smiles):
        problem = f"{shown(wraps)} has a number of three digits or more, which RDKit would take for a small one"
        raise ReadError(f"{shown(smiles)} is not a molecule: {problem}; correct or remove it")
    # RDKit's output becomes part of the error.
    quiet = rdBase.BlockLogs()
    try:
        found, reason = _read(smiles, strict)
    except MemoryError:
        raise
    except Exception as error:  # RuntimeError and others, if a check inside RDKit fails
        found, reason = None, f"{type(error).__name__}: {shown(' '.join(str(error).split()))}; correct or remove it"
    finally:
        del quiet
    if found is not None:
        return found
    raise ReadError(f"{shown(smiles)} is not a molecule that RDKit can read: {reason}")


def _check_size(smiles: str) -> str:
    """Check that RDKit can parse a text within about a second; return an atom with too large a number, or ''.

    Raises:
        ReadError: it is too long, or has too many atoms or rings.
    """
    if len(smiles) <= RINGS and LARGE.search(smiles) is None:  # most: too short for many atoms and rings
        return ""
    if len(smiles) > LONGEST:
        raise ReadError(f"the SMILES has {len(smiles)} characters; {LONGEST} at most, leave the molecule out")
    atoms = ATOM.findall(smiles)
    if wrong := too_large(len(atoms), len(CLOSURE.findall(BRACKETS.sub("", smiles))) // 2):
        raise ReadError(f"{shown(smiles)} {wrong}")
    return next((atom for atom in atoms if LARGE.search(atom)), "")


def _read(smiles: str, strict: bool) -> tuple[Any, str]:
    """The molecule, or None and an error message."""
    from rdkit import Chem

    found: Any = Chem.MolFromSmiles(smiles)
    if found is not None:
        return found, ""
    draft: Any = Chem.MolFromSmiles(smiles, sanitize=False)
    if draft is None:
        return None, "it does not follow the grammar; correct or remove it"
    problems = list(Chem.DetectChemistryProblems(draft))
    valence = all(problem.GetType() == "AtomValenceException" for problem in problems)
    if problems and valence and not strict:
        return _with_any_valence(draft), ""
    keep = f", or {KEEP}" if problems and valence else ""
    return None, f"{problems[0].Message() if problems else 'no reason is given'}; correct or remove it{keep}"


def _with_any_valence(draft: Any) -> Any:
    """The steps of ``MolFromSmiles`` after parsing, without the check of valences."""
    from rdkit import Chem

    draft.UpdatePropertyCache(strict=False)
    Chem.SanitizeMol(draft, Chem.SANITIZE_ALL ^ Chem.SANITIZE_PROPERTIES)
    found: Any = Chem.RemoveHs(draft, sanitize=False)
    found.UpdatePropertyCache(strict=False)  # removed hydrogens become implicit
    Chem.AssignStereochemistry(found, cleanIt=True, force=True)
    return found


@writer("smiles", ".smi .smiles")
def smiles_text(item: Item, neutral: bool = False, strict: bool = True) -> str:
    """A canonical SMILES by RDKit, and after a space the id of the item, one molecule per line.

    Args:
        item: a molecule from the reader ``smiles`` with ``features="ogb"``, which contain charges, hydrogens and
            stereo. Isotopes and atom map numbers are lost.
        neutral: whether atoms of a structure without features are neutral and without stereo.
        strict: whether a valence that RDKit does not permit raises an error.

    Raises:
        WriteError: the structure is not a molecule or lacks the features, or the id contains a line end.
    """
    try:
        molecule = as_molecule(item.structure, neutral, strict)
    except StructureError as error:
        raise WriteError(error.message).at(*error.places) from None
    if item.id.splitlines() not in ([], [item.id]):
        raise WriteError(f"the id {item.id!r} contains a line end; give another")
    from rdkit import Chem

    return f"{Chem.MolToSmiles(molecule)} {item.id}".rstrip() + "\n"


def from_rdkit(mol: Any, features: Kind = "none", conformer: int | Literal["only"] | None = "only") -> Structure:
    """The structure of an ``rdkit.Chem.Mol``: a node per atom, labelled by its symbol, an edge per bond.

    Args:
        mol: a molecule; its name (property ``_Name``) becomes that of the structure.
        features: ``ogb`` adds the features of the Open Graph Benchmark, ``x`` (n, 9) and ``edge_x`` (e, 3).
        conformer: number of the conformer whose coordinates, in angstroms, are the feature ``pos`` (n, 3); ``only``:
            the only one, if there is one; None: none.

    Raises:
        ConversionError: there is no such conformer, or there are several and ``conformer`` does not say which.
        ReadError: the molecule is not sanitized, which features need.
        StructureError: it has no atom.
    """
    name = mol.GetProp("_Name") if mol.HasProp("_Name") else ""
    structure = of_molecule(mol, name, features)
    known = [each.GetId() for each in mol.GetConformers()]
    if conformer is None or (conformer == "only" and not known):
        return structure
    if conformer == "only":
        conformer = known[0]
        if len(known) > 1:
            wrong = f"the molecule has {len(known)} conformers, and a structure holds the coordinates of one"
            raise ConversionError(f"{wrong}; give conformer= one of {listed(known)}, or None for none")
    if conformer not in known:
        has = listed(known) if known else "none; AllChem.EmbedMolecule(mol) of RDKit makes one"
        raise ConversionError(f"the molecule has no conformer {conformer}; it has: {has}")
    places = np.array(mol.GetConformer(conformer).GetPositions(), dtype=np.float64)
    return replace(structure, features={**structure.features, "pos": places})


def to_rdkit(structure: Structure, neutral: bool = False, strict: bool = True) -> Any:
    """The structure as an ``rdkit.Chem.Mol``, sanitized.

    Args:
        structure: undirected; labels are symbols of elements, relations types of bonds such as ``double``.
        neutral: whether atoms of a structure without OGB's features are neutral and without stereo.
        strict: whether a valence that RDKit does not permit raises an error.

    Raises:
        ConversionError: it is not a molecule, or lacks required features.
    """
    try:
        mol = as_molecule(structure, neutral, strict)
    except StructureError as error:
        raise ConversionError(error.message).at(*error.places) from None
    if (places := np.asarray(structure.features.get("pos", ()))).shape == (structure.size, 3):
        from rdkit import Chem

        conformer = Chem.Conformer(len(places))
        for atom, place in enumerate(places.astype(np.float64).tolist()):
            conformer.SetAtomPosition(atom, place)
        mol.AddConformer(conformer)
    if structure.name:
        mol.SetProp("_Name", structure.name)
    return mol


add_converter("rdkit", "rdkit.Mol", "molecules, and back", from_rdkit, to_rdkit)
