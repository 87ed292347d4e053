"""Best practices of distributed training on CPU: details of a strategy."""

# --- left out by the document
from psrt.fluid import DistributeTranspilerConfig
from psrt.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy_factory import DistributedStrategyFactory
# --- the document
strategy = DistributedStrategyFactory.create_sync_strategy()

# Mode 1 (recommended):
config = strategy.get_program_config()
config.min_block_size = 81920
# --- left out by the document
in_place = strategy.get_program_config().min_block_size
strategy = DistributedStrategyFactory.create_sync_strategy()
# --- the document

# Mode 2
config = DistributeTranspilerConfig()
config.min_block_size = 81920
# --- left out by the document
strategy.set_program_config(config)
replaced = strategy.get_program_config().min_block_size
strategy = DistributedStrategyFactory.create_sync_strategy()
# --- the document
# config = dict()
# config['min_block_size'] = 81920
# --- left out by the document
config = dict()
config['min_block_size'] = 81920
strategy.set_program_config(config)
by_dict = strategy.get_program_config().min_block_size
