"""Runs the ONNX models that Cella writes with ONNX Runtime, and compares the results.

Usage: python runtime_peer.py WRITE_MODELS FOLDER [RUN_ONNX]

With the example run_onnx the models are read and run by Cella again, as a user does.
"""

import subprocess
import sys
from pathlib import Path

import numpy
import onnxruntime

program, folder = sys.argv[1], Path(sys.argv[2])
subprocess.run([program, folder], check=True)
models = sorted(folder.glob("*.onnx"))
wrong = 0
for model in models:
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    x, expected = (numpy.load(model.with_suffix(f".{kind}.npy")) for kind in "xy")
    (y,) = session.run(None, {session.get_inputs()[0].name: x})
    results = {"ONNX Runtime": y}
    for run_onnx in sys.argv[3:]:
        given = f"{session.get_inputs()[0].name}={model.with_suffix('.x.npy')}"
        subprocess.run([run_onnx, model, "--input", given, "--output", folder / f"{model.stem}.of_"], check=True)
        (written,) = folder.glob(f"{model.stem}.of_*.npy")
        results["run_onnx"] = numpy.load(written)
    for name, y in results.items():
        difference = abs(y - expected).max() / abs(expected).max()
        print(f"{model.stem}, {name}: {y.shape}, differs by {difference:.1e} of the largest result")
        wrong += y.shape != expected.shape or not difference < 1e-5
if len(models) < 4:
    print(f"{program} wrote {len(models)} models instead of 4")
    wrong += 1
sys.exit(wrong != 0)
