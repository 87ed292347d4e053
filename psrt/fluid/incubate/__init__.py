"""Where Fluid keeps `fleet`: the import paths of programs written for it.

fleet/base/role_maker                                   who a process is
fleet/parameter_server/distribute_transpiler            `fleet`, the whole flow of a cluster
    runtime_configs → distributed_strategy → distributed_strategy_factory →
    transpiler_optimizer → distributed_transpiler
fleet/parameter_server/pslib                            refuses, and says what there is instead
fleet/collective                                        refuses, and says what there is instead
data_generator                                          users' own preprocessing
"""
