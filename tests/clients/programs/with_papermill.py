"""Each rank is a notebook of its own, which papermill runs in a kernel."""

import os
import sys

import nbformat
import papermill

source = nbformat.v4.new_notebook(
    cells=[
        nbformat.v4.new_code_cell("rank, port = 0, ''", metadata={"tags": ["parameters"]}),
        nbformat.v4.new_code_cell("import os\nfrom toy_training import train"),
        nbformat.v4.new_code_cell("print(train(rank, port))"),
    ],
    metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
)
name = "rank%s.ipynb" % os.environ["RANK"]
nbformat.write(source, name)
ran = papermill.execute_notebook(name, "out." + name, parameters={"rank": int(os.environ["RANK"]), "port": os.environ["PORT"]}, progress_bar=False)
sys.stdout.write("".join(one.get("text", "") for cell in ran.cells for one in cell.get("outputs", [])))
