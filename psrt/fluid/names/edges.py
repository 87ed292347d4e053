"""Parts of Fluid that psrt will not have, with the names that belong to each.

A key is the beginning of a line of the table "What psrt will not have" in docs/reference/fluid.md;
its value holds names of `fluid` and `fluid.layers`, separated by spaces.
"""

from __future__ import annotations

EDGES = {
    "GPUs": """
        cudnn_lstm lstm inplace_abn device_guard load_op_library cuda_profiler nvprof
        mixed_precision collective _set_process_pid GradAllReduce LocalSGD
    """,
    "`fluid.dygraph`": "VarBase enable_dygraph disable_dygraph",
    "detection, segmentation and 3-D layers": """
        anchor_generator bipartite_match box_clip box_coder box_decoder_and_assign
        collect_fpn_proposals density_prior_box detection_output distribute_fpn_proposals
        generate_mask_labels generate_proposal_labels generate_proposals iou_similarity
        locality_aware_nms matrix_nms multi_box_head multiclass_nms polygon_box_transform prior_box
        prroi_pool psroi_pool retinanet_detection_output retinanet_target_assign roi_align
        roi_perspective_transform roi_pool rpn_target_assign sigmoid_focal_loss ssd_loss
        target_assign yolo_box yolov3_loss deformable_conv deformable_roi_pooling affine_channel
        affine_grid grid_sampler image_resize image_resize_short resize_bilinear resize_nearest
        resize_trilinear pixel_shuffle space_to_depth temporal_shift conv2d_transpose conv3d
        conv3d_transpose pool3d adaptive_pool3d crop_tensor random_crop im2sequence mean_iou
        instance_norm similarity_focus detection_map DetectionMAP multiclass_nms2
    """,
    "PSLib, BoxPS": """
        Fleet _pull_box_sparse _pull_sparse _pull_sparse_v2 PSLib BoxPSDataset
        FLEET_GLOBAL_DICT fleet_embedding search_pyramid_hash
    """,
    "ops of a transpiled program": """
        Send Recv listen_and_serv ListenAndServ program_utils details proto framework_pb2
        profiler_pb2 VarStruct VarsDistributed op_to_code program_to_code ProgramDesc BlockDesc
        OpDesc Graph Node AttrType ConditionalBlock select_input select_output
        op_proto_and_checker_maker get_grad_op_desc op_support_gpu get_op_attrs_default_value
        infer_no_need_buffer_slots set_feed_variable get_fetch_variable _find_op_path_
        _find_no_grad_vars _get_stop_gradients_ _append_grad_suffix_ _strip_grad_suffix_
        _get_valid_program append_regularization_ops error_clip_callback SelectedRows
    """,
    "sorting by length": """
        tensor_array_to_tensor lod_rank_table max_sequence_len reorder_lod_tensor_by_rank
        BasicDecoder BeamSearchDecoder dynamic_decode ParallelDo RNNCell GRUCell LSTMCell
        TrainingHelper GreedyEmbeddingHelper SampleEmbeddingHelper rnn_impl shrink_memory
        lod_tensor_to_array array_to_lod_tensor split_lod_tensor merge_lod_tensor
    """,
    "speech, and chunks of tags": """
        warpctc ctc_greedy_decoder edit_distance chunk_eval row_conv
        ChunkEvaluator EditDistance
    """,
    "tools around training": """
        debugger graphviz evaluator trainer_factory trainer_desc device_worker DataFeedDesc
        data_feed_desc recordio_writer install_check ExponentialMovingAverage ModelAverage
        net_drawer slim decoder trainer inferencer wrapped_decorator
        distribute_lookup_table layer_function_generator LookaheadOptimizer load_program
        TrainStatus fused_elemwise_activation
    """,
}

_LINES = {name: line for line, names in EDGES.items() for name in names.split()}


def edge_of(name: str) -> str:
    """Return the part of Fluid that a name belongs to, "" for none."""
    return _LINES.get(name, "")


__all__ = ["EDGES", "edge_of"]
