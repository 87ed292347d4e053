"""Distributed training, v2: where a program started by MPI learns which trainer it is."""

# --- left out by the document
import os
if True:
# --- the document
    cluster_train_file = "./train_data_dir/train/train.txt"
    cluster_test_file = "./test_data_dir/test/test.txt"
    node_id = os.getenv("OMPI_COMM_WORLD_RANK")
    if not node_id:
        raise EnvironmentError("must provied OMPI_COMM_WORLD_RANK")
# --- left out by the document
import psrt.fluid.incubate.fleet.base.role_maker as role_maker

role = role_maker.MPISymetricRoleMaker()
