"""moses.ini: read, changed where asked, refused where Moses would refuse it."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.files import SHARED, needs_shared, write_gz
from hypothesis import given
from hypothesis import strategies as st

from moses_feature.moses.features import FeatureSet
from moses_feature.moses.ini import MosesIni
from moses_feature.runtime.errors import FormatError, MosesFeatureError, UsageError
from moses_feature.tables.add_to_ini import add_to_ini

INI = b"""\
# a comment
[weight]
TranslationModel0= 0.2 0.2\t0.3 0.1   # tuned = yes
LM0= 0.5
Distortion0= 0.3

[input-factors]
0
[feature]
  Distortion
UnknownWordPenalty
PhraseDictionaryMemory name=TranslationModel0 num-features=4 path=/old/table.gz input-factor=0\r
KENLM name=LM0 path=lm.arpa order=3
[distortion-limit]
6"""

TABLE = b"a ||| A ||| 0.1 0.2 0.3 0.4 0.5 1 ||| 0-0 ||| 1 1 1 ||| |||\n"


def ini(content: bytes = INI) -> MosesIni:
    return MosesIni(Path("moses.ini"), content)


def test_what_is_read():
    read = ini()
    assert [feature.name for feature in read.features] == [
        "Distortion0",
        "UnknownWordPenalty0",
        "TranslationModel0",
        "LM0",
    ]
    assert read.weights["TranslationModel0"].values == (0.2, 0.2, 0.3, 0.1)
    assert read.settings == {"input-factors": ["0"], "distortion-limit": ["6"]}
    assert read.table().arguments["path"] == "/old/table.gz"


LINE = st.sampled_from(
    [b"", b"# x", b"[mapping]", b"0 T 0 # y", b"\t", b"[search-algorithm]", b"1\r", b"\xe9"]
)


@given(st.lists(LINE), st.sampled_from([b"", b"\n", b"\r\n"]))
def test_what_is_read_and_written_is_identical(lines, end):
    content = b"\n".join(lines) + end
    assert ini(content).content() == content


def test_only_the_table_and_its_weights_change():
    read = ini()
    changed = read.with_scores(read.table(), Path("/new/t.gz"), [0.1, 0.25])
    expected = INI.replace(b"num-features=4 path=/old/table.gz", b"num-features=6 path=/new/t.gz")
    expected = expected.replace(b"0.3 0.1   # tuned", b"0.3 0.1 0.1 0.25   # tuned")
    assert changed.content() == expected
    assert changed.table().score_count == 6
    assert read.content() == INI


def test_tuneable_components_grow():
    read = ini(
        INI.replace(b"num-features=4", b"tuneable-components=true,false,true,true num-features=4")
    )
    changed = read.with_scores(read.table(), Path("/t"), [0.1])
    assert b"tuneable-components=true,false,true,true,true num-features=5" in changed.content()


def test_a_score_of_weight_zero_is_not_tuned():
    changed = ini().with_scores(ini().table(), Path("/t"), [0.1, 0.0])
    assert b"tuneable-components=true,true,true,true,true,false" in changed.content()
    assert changed.weights["TranslationModel0"].values[4:] == (0.1, 0.0)


def test_weights_and_paths_can_be_replaced():
    tuned = ini().with_weights({"LM0": [0.1234567]}, ["tuned\nby hand"])
    expected = INI.replace(b"LM0= 0.5", b"LM0= 0.123457")
    assert tuned.content() == b"# tuned by hand\n" + expected
    moved = ini().with_files({"/old/table.gz": "/x.gz"})
    assert moved.content() == INI.replace(b"path=/old/table.gz", b"path=/x.gz")


REFUSED = {
    "too few weights": (
        b"0.3 0.1   #",
        b"#",
        "line 3: expected 4 weights for TranslationModel0 of line 12",
    ),
    "weights without feature": (b"LM0= 0.5", b"LM1= 0.5", "line 4: expected the name of a feature"),
    "weights twice": (b"LM0= 0.5", b"LM0= 0.5\nLM0= 0.1", "line 5: .*LM0 twice"),
    "weights that are words": (b"LM0= 0.5", b"LM0= half", "line 4: expected weights"),
    "no space after =": (b"LM0= 0.5", b"LM0=0.5", "line 4: expected a line like Name= 0.2"),
    "name with a hyphen": (b"LM0", b"LM-0", "line 13: expected a feature name"),
    "name with a line": (b"LM0", b"RNN_TM", "line 13: expected a feature name"),
    "name twice": (b"name=LM0", b"name=Distortion0", "line 13: .*Distortion0 twice"),
    "key twice": (b"order=3", b"order=3 order=4", "line 13: expected each key once"),
    "key without value": (b"order=3", b"order", "line 13: expected key=value, found 'order'"),
    "unknown key": (b"input-factor=0", b"input_factor=0", "line 12: expected keys of Phrase"),
    "comment in the path": (b"/old/table.gz", b"/old#1/table.gz", None),
    "no path": (b" path=/old/table.gz", b"", "line 12: expected path=… for TranslationModel0"),
    "num-features of words": (b"num-features=4", b"num-features=x", "line 12: expected num-fe"),
    "old format": (b"[input-factors]", b"[ttable-file]", "line 7: .*convert-moses-ini-to-v2.perl"),
    "components": (
        b"num-features=4",
        b"num-features=4 tuneable-components=true,true",
        "line 12: expected 4 tuneable-components",
    ),
    "components not tuneable": (
        b"num-features=4",
        b"num-features=4 tuneable=false tuneable-components=true,true,true,true",
        "line 12: .*both of them",
    ),
    "tuneable, perhaps": (b"order=3", b"order=3 tuneable=maybe", "line 13: expected tuneable=true"),
    "no finite weight": (b"LM0= 0.5", b"LM0= 1e999", "line 4: expected weights .finite numbers."),
    "no weight": (b"LM0= 0.5", b"LM0= \f", "line 4: expected weights .finite numbers."),
    "another space": (b"LM0= 0.5", b"LM0=\xc2\xa00.5", "line 4: expected a line like Name= 0.2"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_moses_would_refuse(case):
    before, after, message = REFUSED[case]
    changed = INI.replace(before, after)
    assert changed != INI
    if message is None:  # Moses reads the path up to the comment sign, and so do we
        assert ini(changed).table().arguments["path"] == "/old"
        return
    with pytest.raises(FormatError, match=message):
        ini(changed).check_names()


def test_tuneable_as_moses_reads_it():
    for value in ("No", "n", "FALSE", "0"):
        read = ini(INI.replace(b"order=3", b"order=3 tuneable=" + value.encode()))
        assert "LM0_0" not in FeatureSet.of_ini(read).names
    assert "LM0_0" in FeatureSet.of_ini(ini(INI.replace(b"order=3", b"tuneable=YES"))).names
    components = INI.replace(b"num-features=4", b"num-features=4 tuneable-components=y,NO,Yes,1")
    assert ini(components).table().tuneable_components == (True, False, True, True)


def test_only_blanks_and_tabs_part_the_arguments_of_a_feature():
    read = ini(INI.replace(b"/old/table.gz", "/old\N{NO-BREAK SPACE}/table.gz".encode()))
    assert read.table().path == "/old\N{NO-BREAK SPACE}/table.gz"


def two_tables() -> bytes:
    line = b"PhraseDictionaryMemory name=TM1 num-features=1 path=/b\nKENLM"
    return INI.replace(b"KENLM", line).replace(b"LM0= 0.5", b"LM0= 0.5\nTM1= 1")


def test_several_tables_are_told_apart_by_name():
    read = ini(two_tables())
    with pytest.raises(UsageError, match="found TranslationModel0, TM1: choose one by name"):
        read.table()
    with pytest.raises(UsageError, match="no phrase table 'TM2'"):
        read.table("TM2")
    changed = read.with_scores(read.table("TM1"), Path("/c"), [0.1])
    assert b"name=TM1 num-features=2 path=/c" in changed.content()
    assert b"\nTM1= 1 0.1\n" in changed.content()
    with pytest.raises(UsageError, match="found none"):
        ini(b"").table()


def test_binary_tables_and_paths_that_moses_cannot_read():
    compact = ini(INI.replace(b"PhraseDictionaryMemory", b"PhraseDictionaryCompact"))
    with pytest.raises(MosesFeatureError, match="binarise the augmented table with 5 scores"):
        compact.with_scores(compact.table(), Path("/t"), [0.1])
    with pytest.raises(MosesFeatureError, match="white space or #"):
        ini().with_scores(ini().table(), Path("/a b/t"), [0.1])
    without = ini(INI.replace(b"TranslationModel0= 0.2 0.2\t0.3 0.1", b""))
    with pytest.raises(MosesFeatureError, match="expected weights for TranslationModel0"):
        without.with_scores(without.table(), Path("/t"), [0.1])


def test_add_to_ini(tmp_path):
    (tmp_path / "moses.ini").write_bytes(INI)
    table = write_gz(tmp_path / "out.gz", TABLE)
    output = tmp_path / "new.ini"
    assert add_to_ini(tmp_path / "moses.ini", output, table) == [0.1, 0.1]
    assert f"path={table}".encode() in output.read_bytes()
    with pytest.raises(UsageError, match="expected 2 weights"):
        add_to_ini(tmp_path / "moses.ini", output, table, weights=[0.1])
    with pytest.raises(MosesFeatureError, match="expected more than the 6 scores"):
        add_to_ini(output, output, table)
    (tmp_path / "out.features.json").write_text('{"columns": [{"name": "p", "index": 3}]}')
    with pytest.raises(FormatError, match=r"expected new columns \[4, 5\]"):
        add_to_ini(tmp_path / "moses.ini", output, table)
    (tmp_path / "out.features.json").write_text('{"columns": [{"name": "p", "index": 5}]}')
    assert add_to_ini(tmp_path / "moses.ini", output, table) == [0.1, 0.1]  # augmented twice
    with pytest.raises(MosesFeatureError, match="empty file"):
        add_to_ini(tmp_path / "moses.ini", output, write_gz(tmp_path / "e.gz", b""))
    with pytest.raises(MosesFeatureError, match="No such file"):
        add_to_ini(tmp_path / "none.ini", output, table)


@needs_shared
@pytest.mark.parametrize("name", ["moses.ini", "tuned.ini"])
def test_inis_that_moses_made(name):
    path = SHARED / "multi30k-en-fr" / name
    read = MosesIni.read(path)
    assert read.content() == path.read_bytes()
    assert read.table().score_count == 4
    assert len(read.weights["LexicalReordering0"].values) == 6
