"""A marimo app that shows structures with encodings and position models. ``structpe app FILE`` starts it."""

import marimo

app = marimo.App(width="full", app_title="structpe")


@app.cell
def _():  # type: ignore[no-untyped-def]  # marimo reads names of arguments and results
    import json

    import marimo as mo

    from structpe.encodings import ENCODINGS
    from structpe.errors import StructPEError
    from structpe.formats import READERS
    from structpe.pictures.app_callbacks import ANY, picture, structures
    from structpe.positions import MODELS, Dims

    return ANY, Dims, ENCODINGS, MODELS, READERS, StructPEError, json, mo, picture, structures


@app.cell
def _(ANY, READERS, mo):  # type: ignore[no-untyped-def]
    given = mo.cli_args()
    file = mo.ui.text(value=str(given.get("file") or ""), label="file", full_width=True)
    reader = mo.ui.dropdown([ANY, *READERS], value=str(given.get("reader") or ANY), label="reader")
    mo.vstack([mo.md("## A structure and its positions"), mo.hstack([file, reader], widths=[3, 1])])
    return file, given, reader


@app.cell
def _(StructPEError, file, given, json, mo, reader, structures):  # type: ignore[no-untyped-def]
    try:
        options = {} if file.value != str(given.get("file") or "") else json.loads(str(given.get("options") or "{}"))
        found, wrong = structures(file.value, reader.value, str(given.get("on_error") or "raise"), options), ""
    except StructPEError as error:
        found, wrong = [], str(error)
    index = mo.ui.number(0, max(len(found) - 1, 0), value=0, label=f"which of {len(found)}")
    mo.callout(wrong, kind="danger") if wrong else index
    return found, index


@app.cell
def _(ENCODINGS, MODELS, mo):  # type: ignore[no-untyped-def]
    encodings = mo.ui.multiselect(sorted(ENCODINGS), label="encodings")
    position = mo.ui.dropdown(sorted(MODELS), value=None, allow_select_none=True, label="position model")
    quantity = mo.ui.dropdown(["bias", "scores", "attention"], value=None, allow_select_none=True, label="of heads")
    heads = mo.ui.slider(1, 8, value=4, label="heads", show_value=True)
    layers = mo.ui.slider(1, 4, value=1, label="layers", show_value=True)
    mo.hstack([encodings, position, quantity, heads, layers], justify="start", wrap=True)
    return encodings, heads, layers, position, quantity


@app.cell
def _(  # type: ignore[no-untyped-def]
    Dims, StructPEError, encodings, found, heads, index, layers, mo, picture, position, quantity
):
    mo.stop(not found)
    try:
        dims = Dims(24 * heads.value, heads.value, layers.value)
        drawn = picture(found, index.value, encodings.value, position.value or "", dims, quantity.value)
        out = mo.image(drawn)
    except StructPEError as error:
        out = mo.callout(str(error), kind="danger")
    mo.output.replace(out)
    return


if __name__ == "__main__":
    app.run()
