from __future__ import annotations

import numpy as np
import pytest
from rdkit import Chem

from structpe.datasets.molecules import _scaffold, _without_tails, scaffold_split
from structpe.errors import ReadError, StructureError
from structpe.formats import as_structure, read, stream
from structpe.formats.smiles import (
    _plain,
    _with_any_valence,
    as_molecule,
    atom_features,
    bond_features,
    molecule,
    of_molecule,
    parsed,
)
from structpe.pictures.layout import form_of
from structpe.structure import Structure
from tests.datasets import SAMPLES, corpus
from tests.together import together


def test_a_molecule_is_an_undirected_graph():
    structure = molecule("C=CC#N", name="x:1")
    assert structure.nodes == ("C", "C", "C", "N")
    assert structure.edges.tolist() == [[0, 1], [1, 2], [2, 3]]
    assert structure.relations == ("double", "single", "triple")
    assert not structure.directed
    assert structure.order is None
    assert structure.root is None


def test_a_ring_is_aromatic_and_an_atom_alone_a_graph():
    assert molecule("c1ccccc1").relations == ("aromatic",) * 6
    assert molecule("[Ar]").edges.shape == (0, 2)
    assert molecule("CC(=O)[O-].[Na+]").nodes == ("C", "C", "O", "O", "Na")


def test_a_table_keeps_its_other_columns(write):
    (item,) = read(write("a.csv", 'name,smiles,note\nethanol,CCO," a, ""b"""\n\n'))
    assert item.metadata == {"name": "ethanol", "smiles": "CCO", "note": ' a, "b"'}
    assert (item.id, item.structure.name) == ("1", "a.csv:1")
    assert read(write("b.csv", "mol\nC\n"), column="mol")[0].structure.nodes == ("C",)


def test_a_list_has_names(write):
    items = read(write("a.smi", "CCO ethyl alcohol\n\nC\n"))
    assert [item.id for item in items] == ["ethyl alcohol", "2"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("smiles\nC\nC(C\n", "a.csv: item 2: line 3: 'C(C' is not a molecule that RDKit can read: it does not f"),
        ("smiles\nC(C)(C)(C)(C)C\n", "'C(C)(C)(C)(C)C' is not a molecule that RDKit can read: Explicit valence"),
        ("smiles,x\n,1\n", "item 1: line 2: the SMILES is empty; give one, or remove the line"),
        ("smiles,x\nC\n", "item 1: line 2: the row has 1 cells, the header 2; quote cells with commas"),
        ("name\nC\n", "line 1: there is no column 'smiles'; give column=, one of: 'name'"),
        ("", "a.csv: the file is empty; the first line of a CSV file names its columns"),
        ('"smiles\nC\n', "a.csv: line 1: not CSV: unexpected end of data; check the quotes"),
        ('smiles\nC\n"C"x\n', "line 3: not CSV: ',' expected after '\"'; check the quotes"),
    ],
)
def test_a_bad_row_is_named(write, content, message, capfd):
    with pytest.raises(ReadError) as caught:
        read(write("a.csv", content))
    assert message in str(caught.value)
    assert capfd.readouterr().err == ""


def test_the_sample_has_what_its_card_says():
    items = read(SAMPLES / "molecules_sample" / "molecules.csv")
    assert ("Ar",) in [item.structure.nodes for item in items]


def test_real_molecules():
    assert len(read(corpus("molecules/moleculenet/esol.csv"))) == 1128


@pytest.mark.slow
def test_molecules_that_are_none_are_skipped():
    reading = read(corpus("molecules/moleculenet/bbbp.csv"), on_error="skip")
    assert reading.report().startswith("skipped 11 of 2050 items:")


def _written_at_random(seed: int, count: int = 60) -> list[str]:
    """SMILES of the molecules of a sample, which begin at any atom, branch anywhere, and number rings anyhow."""
    rng = np.random.default_rng(seed)
    items = read(SAMPLES / "drugs_sample" / "molecules.csv")
    known = [item.metadata["smiles"] for item in items]
    found = []
    for text in rng.choice(known, count):
        drawn = Chem.MolFromSmiles(str(text))
        Chem.Kekulize(drawn, clearAromaticFlags=bool(rng.random() < 0.5))
        bonds, hydrogens, atom = rng.random() < 0.3, rng.random() < 0.2, int(rng.integers(drawn.GetNumAtoms()))
        options = {"canonical": False, "allBondsExplicit": bonds, "allHsExplicit": hydrogens, "rootedAtAtom": atom}
        found.append(Chem.MolToSmiles(drawn, **options))
    return found


_ODD = (
    "C=1CCCCC=1 C=1CCCCC1 C12CC1C2 C1.C1 C1CC1.C%11CC%11 C(C1)CC1 C.(C) C-1CC=1 C==C C()C CN(=O)=O [nH]1cccc1 C:C "
    "[se]1cccc1 [13CH3]C [H]C [2H]O C->[Fe] C~C C$C c1ccccc1c C1CC C1C1 C11CC1 (C) C..C [Cu]C C[NH2+]C C) O=[As](O)C "
    "[NH3]->[BH3]"
)
ODD = _ODD.split()


def test_plain_smiles_are_read_in_less_time_to_the_same_structure():
    texts = [*_written_at_random(0), *ODD, "", "CC |$a;b$|"]
    quick = _plain(texts)
    assert sum(each is not None for each in quick) > 60
    for text, found in zip(texts, quick, strict=True):
        if found is not None:
            whole = of_molecule(parsed(text))
            assert found[0] == whole.nodes
            assert found[1].tolist() == whole.edges.tolist()
            assert found[2] == whole.relations
            assert found[1].dtype == np.int64


def test_what_comes_before_the_error_of_a_file_is_read(write):
    rows = ["smiles", *("C" * (1 + each % 7) for each in range(130)), '"C']
    good: list[int] = []
    with pytest.raises(ReadError, match=r"not CSV.*nothing after this was read"):
        good.extend(item.structure.size for item in stream(write("a.csv", "\n".join(rows))))
    assert good == [1 + each % 7 for each in range(130)]


def test_features_of_the_open_graph_benchmark():
    structure = molecule("Cl[C@H](/C=C/C)Br", features="ogb")
    # Carbon, turning counterclockwise, 4 neighbours with hydrogens, charge 0, 1 hydrogen, no radical, SP3, open chain.
    assert structure.features["x"][1].tolist() == [5, 2, 4, 5, 1, 0, 2, 0, 0]
    assert structure.features["edge_x"][2].tolist() == [1, 2, 0]
    assert structure.relations[2] == "double"
    # Carbon of an aromatic ring; bonds of it are conjugated.
    benzene = molecule("c1ccccc1", features="ogb")
    assert benzene.features["x"].tolist() == [[5, 0, 3, 5, 1, 0, 1, 1, 1]] * 6
    assert benzene.features["edge_x"].tolist() == [[3, 0, 1]] * 6
    # An atom of no element, charges beyond 5 and no bond at all fall into the last categories.
    assert molecule("*", features="ogb").features["x"][0].tolist() == [118, 0, 0, 5, 0, 0, 5, 0, 0]
    assert molecule("[U+6]", features="ogb").features["x"][0, [0, 3]].tolist() == [91, 11]
    assert molecule("[Ar]", features="ogb").features["edge_x"].shape == (0, 3)


def test_a_table_may_be_read_with_features(write):
    (item,) = read(write("a.csv", "smiles\nCO\n"), features="ogb")
    assert item.structure.features["x"].tolist() == [[5, 0, 4, 5, 3, 0, 2, 0, 0], [7, 0, 2, 5, 1, 0, 2, 0, 0]]
    with pytest.raises(ReadError, match="'features' of reader 'smiles' takes one of 'none', 'ogb'; given is 'ecfp'"):
        read(write("a.csv", "smiles\nCO\n"), features="ecfp")


def test_a_valence_that_rdkit_does_not_permit_may_be_kept():
    text = "Cc1ccc([B-2]2(c3ccc(C)cc3)=NCCO2)cc1"
    with pytest.raises(ReadError, match="Explicit valence for atom # 5 B, 5, is greater than permitted"):
        molecule(text)
    structure = molecule(text, features="ogb", strict=False)
    assert structure.relations.count("aromatic") == 12
    assert structure.features["x"][5].tolist() == [4, 0, 4, 3, 0, 0, 2, 0, 1]
    with pytest.raises(ReadError, match="does not follow the grammar"):
        molecule("C(C", strict=False)
    with pytest.raises(ReadError, match="Can't kekulize"):
        molecule("c1cccc1", strict=False)


def test_two_columns_of_one_name_are_refused(write):
    with pytest.raises(ReadError, match=r"a.csv: line 1: 'x' is more than once in the header; rename the columns"):
        read(write("a.csv", "smiles,x,x\nC,1,2\n"))
    assert read(write("a.csv", "smiles,,\nC,1,2\n"))[0].structure.size == 1


def test_a_wide_table_is_named_in_short(write):
    with pytest.raises(ReadError) as caught:
        read(write("a.csv", ",".join(f"column {i}" for i in range(590)) + "\n"))
    assert str(caught.value).endswith(
        "there is no column 'smiles'; give column=, one of: 'column 0', 'column 1', 'column 2', 'column 3', "
        "'column 4', 'column 5', 'column 6', 'column 7' and 582 more"
    )


@together("strict", [True, False])
@together("text", ["[#119]", "[#200]", "[CH2000000]", "[CH260]", "[C+300]", "C[N-1234]", "C[CH300:1]"])
def test_an_atom_that_rdkit_chokes_on_is_one_bad_item(write, text, strict):
    reading = read(write("a.smi", f"CCO\n{text} two\nCC\n"), on_error="skip", strict=strict)
    assert [item.structure.size for item in reading] == [3, 2]
    ((place, message),) = reading.skipped
    assert place.endswith("a.smi: item 2: 'two': line 2")
    assert message.startswith(f"'{text}' is not a molecule")
    assert "correct or remove it" in message


def test_a_text_that_is_no_text_is_no_molecule():
    with pytest.raises(ReadError, match=r"is not a molecule that RDKit can read: UnicodeEncodeError: "):
        molecule("C\ud800")


def test_the_error_of_a_valence_says_how_to_go_on(write):
    file = write("a.csv", "smiles\nCO\nO=CO[AlH3](OC=O)OC=O\nCC\n")
    with pytest.raises(ReadError) as caught:
        read(file)
    assert str(caught.value).endswith(
        "a.csv: item 2: line 3: 'O=CO[AlH3](OC=O)OC=O' is not a molecule that RDKit can read: Explicit valence for "
        "atom # 3 Al, 6, is greater than permitted; correct or remove it, or give strict=False to keep it with this "
        "valence, or on_error='skip' to skip it"
    )
    assert len(read(file, strict=False)) == 3
    assert len(read(file, on_error="skip")) == 2
    with pytest.raises(ReadError, match=r"Unkekulized atoms: 0 1 2 3 4; correct or remove it$"):
        molecule("c1cccc1")


@pytest.mark.parametrize("text", ["[2H]C([H])(O)/C=C/[C@@H](F)Cl", "c1ccc2[nH]ccc2c1.[Na+]", "C[N+](=O)[O-]", "[H][H]"])
def test_keeping_any_valence_changes_nothing_else(text):
    exact = molecule(text, features="ogb")
    kept = _with_any_valence(Chem.MolFromSmiles(text, sanitize=False))
    assert exact.nodes == tuple(atom.GetSymbol() for atom in kept.GetAtoms())
    assert exact.features["x"].tolist() == atom_features(kept.GetAtoms()).tolist()
    assert exact.features["edge_x"].tolist() == bond_features(kept.GetBonds()).tolist()


def closed(count, rings):
    """Atoms, each bound to all others by ring closures."""
    numbers = iter(range(10, 10 + rings))
    bonds = {i: [] for i in range(count)}
    for a in range(count):
        for b in range(a):
            mark = next(numbers, None)
            for atom in (a, b) if mark is not None else ():
                bonds[atom].append(f"%{mark}" if mark < 100 else f"%({mark})")
    return ".".join("*" + "".join(marks) for marks in bonds.values())


TOO_LARGE = [
    ("C" * 3001, "has 3001 atoms; a molecule has 3000 at most, leave it out"),
    ("[CH2]" * 3001, "has 3001 atoms"),
    ("ClBrcnops*" * 376, "has 3008 atoms"),
    ("C1CC1" * 501, "has 501 bonds that close rings; a molecule has 500 at most"),
    ("C%10CC%10" * 501, "has 501 bonds that close rings"),
    ("C%(100)CC%(100)" * 501, "has 501 bonds that close rings"),
    (closed(40, 780), "has 780 bonds that close rings"),
    ("C" * 30_001, "the SMILES has 30001 characters; 30000 at most"),
    ("[" * 10**7, "the SMILES has 10000000 characters"),
]


@pytest.mark.parametrize(("text", "said"), TOO_LARGE, ids=[text[:9] for text, _ in TOO_LARGE])
@pytest.mark.parametrize("way", ["molecule", "reader", "converter", "scaffold"])
def test_what_would_keep_rdkit_busy_is_refused_before_it_sees_it(text, said, way, write, monkeypatch):
    monkeypatch.setattr(Chem, "MolFromSmiles", lambda *_, **__: pytest.fail("RDKit sees it"))
    ways = {
        "molecule": lambda: molecule(text),
        "reader": lambda: read(write("a.smi", text + "\n")),
        "converter": lambda: as_structure(text, kind="smiles"),
        "scaffold": lambda: scaffold_split([text]),
    }
    with pytest.raises(ReadError, match=said):
        ways[way]()


def test_large_molecules_are_read_and_numbers_in_brackets_are_neither_atoms_nor_rings():
    assert molecule("C" * 3000).size == 3000
    assert molecule("[13CH3:12345][C@@H2]" + "[12CH2:123]" * 1001 + "C").size == 1004
    with pytest.raises(ReadError, match="bonds that close rings"):
        molecule("[H" + "1" * 29_000)


def test_structures_that_are_too_large_do_not_become_molecules():
    nodes, hub = ("*",) * 40, [(a, b) for a in range(40) for b in range(a)]
    for structure, said in (
        (Structure(("C",) * 3001, [], directed=False), "this structure has 3001 atoms; a molecule has 3000 at most"),
        (Structure(nodes, hub, ("single",) * 780, directed=False), "this structure has 741 bonds that close rings"),
        (Structure(nodes + ("*",) * 999, hub, ("single",) * 780, directed=False), "has 741 bonds that close rings"),
    ):
        with pytest.raises(StructureError, match=said):
            as_molecule(structure, neutral=True)
        assert form_of(structure) != "molecule"


@pytest.mark.parametrize("seed", range(5))
def test_scaffolds_are_those_of_rdkit_though_tails_are_taken_off_before(seed):
    random = np.random.default_rng(seed)
    pieces = ["C", "CC", "C=C", "N", "C(=O)N", "[C@H](Cl)", "c1ccccc1", "C1CCCC1", "c1c[nH]cc1", "C(=C(C)C)", "C1CC1"]
    pieces += ["C1(=C(C)CC)CC1", "C1=CC(=O)C=C1", "S(=O)(=O)", "C(=C=CC)", "C(=NO)", "[N+](C)(C)", "CCCC(CCC)"]
    found = 0
    while found < 30:
        text = "".join(random.choice(pieces) for _ in range(random.integers(1, 7)))
        mol = Chem.MolFromSmiles(text)
        if mol is None:
            continue
        found += 1
        whole = Chem.MurckoDecompose(mol)
        whole.ClearComputedProps()
        whole.UpdatePropertyCache(strict=False)
        Chem.GetSymmSSSR(whole)
        assert _scaffold(_without_tails(mol)) == Chem.MolToSmiles(whole, isomericSmiles=False), text


def test_scaffolds_of_long_tails_are_found_and_large_ones_refused():
    """RDKit takes off tails in time that grows with the cube."""
    assert scaffold_split(["C" * 2900 + "c1ccccc1", "c1ccccc1", "C" * 3000], shares=(0.7, 0.0)).train.tolist() == [0, 1]
    with pytest.raises(ReadError, match="has 602 atoms in rings and what connects them; a scaffold has 600 at most"):
        scaffold_split(["C1CC1" + "C" * 596 + "C1CC1"])
