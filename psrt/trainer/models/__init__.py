"""models: files in reading order.

model_dir        The layout of a saved model directory: names, manifest, checksums
export           Writes a trained model into a directory that is either complete or not there
saved_model      Reads a model directory and answers row pulls from it, as a pserver would,
                 without any pserver
inference        Models to predict with: saved as the part of a program that computes the
                 fetches, and run
prediction_text  Predictions as lines of text, one an example: plain values, or a JSON object
predict          `psrt predict`: the lines of data files in, one line of predictions each out,
                 in the same order
onnx_nodes       Exporters by family of ops; importing this package fills the table `EXPORTS`
onnx_export      Writes a saved model as one ONNX file, for runtimes that are not psrt
"""

from __future__ import annotations

from psrt.trainer.models import export, inference, predict
from psrt.trainer.models.export import RowPages
from psrt.trainer.models.inference import load_inference_model, prediction_of, save_inference_model
from psrt.trainer.models.model_dir import Manifest
from psrt.trainer.models.onnx_export import export_onnx
from psrt.trainer.models.predict import check_target, writing
from psrt.trainer.models.saved_model import check_fits, load

__all__ = [
    "Manifest",
    "RowPages",
    "check_fits",
    "check_target",
    "export",
    "export_onnx",
    "inference",
    "load",
    "load_inference_model",
    "predict",
    "prediction_of",
    "save_inference_model",
    "writing",
]
