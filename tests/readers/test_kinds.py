"""Files that are no text of a reader's kind are told by what they are."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import pickle
import sys
import tarfile
import zipfile

import numpy as np
import pytest

from structpe.errors import ReadError
from structpe.formats import read
from tests.together import together

TEXT = "one\tpartOf\ttwo\n" * 40


def zipped() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("facts.tsv", TEXT)
    return buffer.getvalue()


def tarred() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        member = tarfile.TarInfo("facts.tsv")
        member.size = len(TEXT)
        archive.addfile(member, io.BytesIO(TEXT.encode()))
    return buffer.getvalue()


def saved() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.arange(3))
    return buffer.getvalue()


FILES = {
    "gzip": (gzip.compress(TEXT.encode()), "the file is compressed by gzip, not text; unpack it first: gunzip FILE"),
    "bzip2": (bz2.compress(TEXT.encode()), "the file is compressed by bzip2, not text; unpack it first: bunzip2 FILE"),
    "xz": (lzma.compress(TEXT.encode()), "the file is compressed by xz, not text; unpack it first: unxz FILE"),
    "zstd": (b"\x28\xb5\x2f\xfd\x04\x00", "the file is compressed by zstd, not text; unpack it first: unzstd FILE"),
    "zip": (
        zipped(),
        "the file is a zip archive (such as .npz, .docx, .xlsx and .pt), not text; unpack it first: un",
    ),
    "tar": (tarred(), "the file is a tar archive, not text; unpack it first: tar -xf FILE"),
    "png": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "the file is a PNG image, not text; give a file with its text"),
    "jpeg": (b"\xff\xd8\xff\xe0\0\x10JFIF", "the file is a JPEG image, not text; give"),
    "pdf": (b"%PDF-1.7\n%\xb5\xb5\xb5\n1 0 obj", "the file is a PDF document, not text; give"),
    "parquet": (
        b"PAR1\x15\x04\x15\x20",
        "the file is a Parquet table, not text; if its rows are graphs, reader",
    ),
    "numpy": (saved(), "the file is an array of NumPy (.npy), not text; read it with numpy.load"),
    "pickle": (
        pickle.dumps(["a"]),
        "the file is a pickle of Python, not text; it is not opened, as it may run any code",
    ),
    "elf": (
        b"\x7fELF\x02\x01\x01" + b"\0" * 9,
        "the file is a program or library (ELF), not text; give a file of text",
    ),
    "utf-16": (
        TEXT.encode("utf-16"),
        "the text is in UTF-16, UTF-8 is needed; convert it first: iconv -f UTF-16 -t UT",
    ),
    "utf-16be": ("\ufeff".encode("utf-16-be") + "ž\tr\tč\n".encode("utf-16-be"), "the text is in UTF-16, UTF-8 is n"),
    "no mark": (TEXT.encode("utf-16-le"), "the text is in UTF-16LE, UTF-8 is needed; convert it first: iconv -f UTF-"),
    "other end": (TEXT.encode("utf-16-be"), "the text is in UTF-16BE, UTF-8 is needed; convert it first: iconv -f UT"),
    "utf-32": (TEXT.encode("utf-32"), "the text is in UTF-32, UTF-8 is needed; convert it first: iconv -f UTF-32 -t U"),
    "zeros": (b"ab\0" * 100, "100 of the first 300 bytes are 0; give a text file"),
    "html": (
        b"<!DOCTYPE html>\n<html>",
        "the file is a page of the web (HTML); download the file itself, for example",
    ),
    "lfs": (
        b"version https://git-lfs.github.com/spec/v1\n",
        "the file is a pointer of Git LFS, not the file; download",
    ),
}
READERS = ["a.tsv", "a.conllu", "a.amr", "a.ptb", "a.g6", "a.smi", "a.csv", "a.nt", "a.ttl", "a.tokens", "a.unknown"]


@together("kind", FILES)
def test_a_file_of_bytes_is_told_by_what_it_is(write, kind):
    content, message = FILES[kind]
    for name in READERS:
        path = write(name, content)
        with pytest.raises(ReadError) as caught:
            read(path)
        place, found, _ = str(caught.value).partition(message)
        assert found
        assert place in (f"{path}: ", f"{path}: item 1: "), name


@together("kind", sorted(set(FILES) - {"utf-16", "utf-16be", "no mark", "other end", "utf-32", "html", "lfs", "zeros"}))
@together("name", ["a.xml", "a.rdf"])
def test_so_is_what_should_be_xml(write, name, kind):
    content, message = FILES[kind]
    with pytest.raises(ReadError) as caught:
        read(write(name, content))
    assert message in str(caught.value)


def test_xml_may_be_in_utf_16(write):
    text = '<?xml version="1.0" encoding="utf-16"?><b><entry eid="1"><modifiedtripleset><mtriple>a | r | b</mtriple>'
    (item,) = read(write("a.xml", (text + "</modifiedtripleset></entry></b>").encode("utf-16")))
    assert item.structure.nodes == ("a", "b")


def test_the_program_that_runs_this_is_none_either(write):
    with open(sys.executable, "rb") as program:
        head = program.read(5000)
    with pytest.raises(ReadError, match="not text"):
        read(write("a.tokens", head))


@pytest.mark.parametrize(
    "text",
    [
        "PAR1 is a gene\n",
        "MZ was here\n",
        "BZh\n",
        "%PDF- is written so\n",
        "\ufeffword\n",
        "ab\n" * 341 + "é\n",
        "\t\x1b[0m x\n",
    ],
)
def test_a_text_that_begins_alike_is_read(write, text):
    (first, *_) = read(write("a.tokens", text))
    assert first.structure.nodes == tuple(text.lstrip("\ufeff").split("\n")[0].split())


def test_another_encoding_is_still_told(write):
    with pytest.raises(
        ReadError, match="byte 0xe9 at column 2 is not UTF-8; convert the file first, for example: iconv"
    ):
        read(write("a.tokens", "né\n".encode("latin-1")))
