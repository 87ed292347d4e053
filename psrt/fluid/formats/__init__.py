"""PaddlePaddle's own files: saved vars, and programs (`__model__`). In reading order:

program_file_pb2  messages of protos/fluid, generated
tensor_files      saved vars
records           ops and vars of a program file as plain Python
op_readers        ops of a file as layer calls
layer_readers     the same for ops with parameters, and of sequences
program_reader    programs of files, to predict with
appending         ops that users append by Fluid's types
op_writers        ops of psrt as ops of a file
layer_writers     the same for ops with parameters, and of sequences
program_writer    files of programs
"""

from psrt.fluid.formats import layer_readers, layer_writers
from psrt.fluid.formats.appending import append_op
from psrt.fluid.formats.program_reader import ReadProgram, read_program
from psrt.fluid.formats.program_writer import write_program
from psrt.fluid.formats.tensor_files import read_tensors, write_tensors

__all__ = [
    "ReadProgram",
    "append_op",
    "layer_readers",
    "layer_writers",
    "read_program",
    "read_tensors",
    "write_program",
]
__all__ += ["write_tensors"]
