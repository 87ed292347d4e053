"""config: settings of every process, declared in `sections`, filled by `load`, printed by `render`.

Reading order:

    settings         one declared setting, and the check of its values
    sections         the settings, a dataclass for each section of a TOML file
    validate         rejection of names that are not declared
    older_variables  older environment variables, translated into the newest names
    roles            the role of a process, from variables of its launcher
    group_roles      the place of a process among trainers without pservers
    host_files       configuration files of a host
    overrides        settings of this process that override its environment
    assignments      settings given as section.key=value
    load             sections filled from flags, environment and TOML
    reload           settings that are read again while a process runs
    warm_rules       the file of a warm start's rules
    older_flags      flags of PaddlePaddle's v2, and what to write instead
    init             `psrt.init`
    render           configuration as text
"""
