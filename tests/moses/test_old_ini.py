"""Inis of the old format, converted as Moses' own script converts them."""

from __future__ import annotations

from pathlib import Path

import pytest

from moses_feature.moses.ini import MosesIni
from moses_feature.moses.old_ini import converted
from moses_feature.runtime.errors import FormatError

OLD = """\
#########################
### MOSES CONFIG FILE ###

[input-factors]
0
[mapping]
0 T 0

# translation tables
[ttable-file]
0 0 0 5 /models/phrase-table.gz   # the first
1 0 0 5 /models/second

[ttable-limit]
20
0

[lmodel-file]
0 0 3 /models/lm.srilm
8 0 5 /models/lm.kenlm

[distortion-file]
0-0 wbe-msd-bidirectional-fe-allff 6 /models/reordering

[distortion-limit]
6
[weight-d]
0.3
0.1
0.2 0.3
0.4
0.5
0.6
[weight-l]
0.25
0.26
[weight-t]
0.01
0.02
0.03
0.04
0.05
1
2
3
4
5
[weight-w]
-1
"""

NEW = """\
#########################
### MOSES CONFIG FILE ###

[input-factors]
0
[mapping]
0 T 0

# translation tables
[distortion-limit]
6

[feature]
UnknownWordPenalty
WordPenalty
Distortion
PhraseDictionaryMemory name=TranslationModel0 num-features=5 path=/models/phrase-table.gz \
input-factor=0 output-factor=0 table-limit=20
PhraseDictionaryBinary name=TranslationModel1 num-features=5 path=/models/second \
input-factor=0 output-factor=0 table-limit=0
LexicalReordering name=LexicalReordering0 num-features=6 type=wbe-msd-bidirectional-fe-allff \
input-factor=0 output-factor=0 path=/models/reordering
KENLM name=LM0 factor=0 path=/models/lm.srilm order=3
KENLM name=LM1 factor=0 path=/models/lm.kenlm order=5

[weight]
UnknownWordPenalty0= 1
WordPenalty0= -1
Distortion0= 0.3
TranslationModel0= 0.01 0.02 0.03 0.04 0.05
TranslationModel1= 1 2 3 4 5
LexicalReordering0= 0.1 0.2 0.3 0.4 0.5 0.6
LM0= 0.25
LM1= 0.26
"""


def test_an_old_ini(run):
    Path("old.ini").write_text(OLD)
    run("system", "convert", "old.ini", "new.ini")
    assert Path("new.ini").read_text() == NEW
    ini = MosesIni.read("new.ini")
    assert [table.score_count for table in ini.tables()] == [5, 5]
    assert ini.weights["LM1"].values == (0.26,)
    refused = run("system", "convert", "new.ini", "newer.ini", exit_code=1)
    assert "new.ini: expected [ttable-file], an ini of the old format, found none" in refused.stderr
    assert not Path("newer.ini").exists()


def test_a_model_of_the_old_ini_is_not_overwritten(run):
    Path("old.ini").write_text(OLD.replace("/models/lm.srilm", "lm.arpa"))
    Path("lm.arpa").write_text("a model")
    refused = run("system", "convert", "old.ini", "lm.arpa", exit_code=2)
    assert "lm.arpa would be overwritten" in refused.stderr
    assert Path("lm.arpa").read_text() == "a model"


def test_a_reordering_model_given_the_source_alone(tmp_path):
    path = tmp_path / "old.ini"
    path.write_bytes(
        b"\xef\xbb\xbf" + OLD.replace("msd-bidirectional-fe", "msd-bidirectional-f").encode()
    )
    assert b"type=wbe-msd-bidirectional-f-allff input-factor=0 path=/models" in converted(path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[weight-w]", "[weight-x]", r"at line 48: expected one of .*found \[weight-x\]"),
        ("[distortion-limit]", "[generation-file]", r"at line 25: .*found \[generation-file\]"),
        ("8 0 5 ", "1 0 5 ", "at line 20: expected an implementation of 0, 8, 9, found 1"),
        ("8 0 5 ", "8 5 ", r"at line 20: expected 4 fields in \[lmodel-file\], found 3"),
        ("0-0 wbe", "0 wbe", "at line 23: expected factors of both sides, such as 0, found none"),
        ("0 0 0 5", "0 0 x 5", "at line 11: expected factors of both sides, such as 0, found x"),
        ("0 0 0 5", "0 0 0 \u00b2", "at line 11: expected a number, found \u00b2"),
        ("8 0 5 ", "8 0 x ", "at line 20: expected a number, found x"),
        ("20\n0\n", "20\n0\n3\n", r"at line 17: expected 2 lines in \[ttable-limit\], found more"),
        ("20\n0\n", "x\n0\n", "at line 15: expected a number, found x"),
        ("[distortion-limit]", "[weight-w]", r"at line 48: expected \[weight-w\] once, found it"),
        ("[weight-w]", "[weight-w", "at line 48: expected the name of a section in brackets"),
        ("\n0.25\n", "\nnan\n", "at line 35: expected a finite number, found nan"),
        ("0.5\n0.6\n", "0.5\n", r"expected 7 or more in \[weight-d\], found 6"),
        ("0.25\n", "0.25 3\n", r"expected 2 in \[weight-l\], found 3"),
        ("\n-1\n", "\n", r"expected 1 or more in \[weight-w\], found 0"),
    ],
)
def test_what_cannot_be_converted(old, new, message, tmp_path):
    assert OLD.count(old) == 1
    path = tmp_path / "old.ini"
    path.write_text(OLD.replace(old, new))
    with pytest.raises(FormatError, match=message):
        converted(path)
