"""Models on disk, and what is computed with them.

model_dir        layout of a saved model: names, manifest, checksums
replacement      a model takes the place of an earlier one; saves that were killed are finished
export           writes a model directory, complete or not at all
file_layout      the format of the files that a model is trained on, or applied to
saved_model      reads a model directory and its rows, without pservers
inference        models to predict with
finite_model     the check of parameters on their way into a saved model
periodic         models saved at intervals while training goes on
model_saver      a model as its cluster has it now, written to a directory
prediction_text  predictions as lines of text
measured_predictions  predictions against the labels of their files
predict          `psrt predict`: data files in, a line per example out
onnx_nodes       exporters of ops by family
onnx_export      a saved model as one ONNX file
"""

from psrt.trainer.models import export, inference, predict
from psrt.trainer.models.export import RowPages
from psrt.trainer.models.inference import (
    Predictor,
    load_inference_model,
    manifest_of,
    save_inference_model,
    save_parameters,
)
from psrt.trainer.models.model_dir import MANIFEST, Manifest
from psrt.trainer.models.model_saver import ModelSaver
from psrt.trainer.models.onnx_export import export_onnx, inputs_of
from psrt.trainer.models.periodic import Intervals, PeriodicSaves
from psrt.trainer.models.predict import check_target, writing
from psrt.trainer.models.saved_model import SavedModel, SavedTable, check_fits, load

__all__ = [
    "MANIFEST",
    "Manifest",
    "ModelSaver",
    "RowPages",
    "check_fits",
    "check_target",
    "load",
    "writing",
]
__all__ += ["export", "export_onnx", "inference", "predict", "writing"]
__all__ += ["load_inference_model", "manifest_of", "save_inference_model"]
__all__ += ["Intervals", "PeriodicSaves", "Predictor", "SavedModel", "SavedTable", "inputs_of"]
__all__ += ["save_parameters"]
