import os
from pathlib import Path
import nbformat, pytest
from notebook_tools import NOTEBOOKS
N=os.environ.get("SHOT","01_load_everything.ipynb")
def test_shots(tmp_path, monkeypatch, open_notebook):
    monkeypatch.setenv("LARGER_THAN_RAM_SCALE", os.environ.get("SHOT_SCALE","test"))
    monkeypatch.setenv("LARGER_THAN_RAM_DATA", "/tmp/ltrdata")
    nb=nbformat.read(NOTEBOOKS/N,as_version=4)
    path=tmp_path/N; nbformat.write(nb,path)
    lab=open_notebook(path)
    lab.page.set_viewport_size({"width":1024,"height":768})
    lab.run_all()
    out=Path("/tmp/shots"); out.mkdir(exist_ok=True)
    last=len(nb.cells)-2
    lab.wait_for_cell(max(i for i,c in enumerate(nb.cells) if c.cell_type=="code"),seconds=400)
    for i,c in enumerate(nb.cells):
        if c.cell_type=="code" and any(w in c.source for w in ("before_after(","draw_","sweep(","shown(","predict(","= run(","= cold(","run(\n")):
            cell=lab.cell(i); cell.scroll_into_view_if_needed()
            lab.page.wait_for_timeout(300)
            lab.page.screenshot(path=str(out/f"{N[:2]}_{i:02d}.png"))
