"""Import paths of programs written for Fluid's `fleet`.

fleet/base/role_maker                                   the role of a process
fleet/parameter_server/distribute_transpiler            `fleet`, the whole flow of a cluster
    distributed_strategy → distributed_strategy_factory → transpiler_optimizer →
    distributed_transpiler
fleet/parameter_server/pslib                            raises errors that name a substitute
fleet/collective                                        raises errors that name a substitute
data_generator                                          users' own preprocessing
"""
