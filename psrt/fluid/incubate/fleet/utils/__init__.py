"""Helpers of fleet programs under Fluid's paths. In reading order:

fs                  files of this host
hdfs                files of a Hadoop file system, by the command `hadoop`
fleet_barrier_util  a meeting of trainers by files
fleet_util          metrics and logs over all workers
"""
